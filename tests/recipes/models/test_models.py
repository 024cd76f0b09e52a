"""All of recipes/models, from the data folder to its figures, with tiny models on made-up data."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.data.writing import write_table
from recipes.models import __main__ as command
from recipes.models import across, balance, encoder, lists, pairs, reranker
from recipes.models.medicine import in_korean
from tests.recipes.models import small_data

WORDS = ["river", "museum", "engine", "harvest", "bridge", "orchard", "library", "harbour"]


def sentences(count: int) -> Iterator[str]:
    """Different sentences, long enough for every source."""
    for number in range(count):
        first, second = WORDS[number % 8], WORDS[number // 8 % 8]
        yield f"The {first} of town {number} was built beside the {second} in the year {1800 + number}."


def parts(count: int) -> Iterator[str]:
    """Passages of Korean articles, three of which are a page."""
    buildings = ["박물관", "도서관", "기차역", "우체국", "시장", "병원"]
    for number in range(count):
        yield " ".join(
            f"{number}번 마을의 {building}을 {1700 + 9 * number + at}년에 오래된 다리 옆의 강가에 새로 지었다."
            for at, building in enumerate(buildings * 2)
        )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Add the files that questions and pages are made of."""
    folder = small_data.write(tmp_path / "data")
    texts = list(sentences(120))
    blocks = [" ".join(texts[at : at + 4]) for at in range(0, 120, 4)]
    questions = [f"When was the {WORDS[at % 8]} of town {4 * at} built?" for at in range(30)]
    medical = [f"What are the symptoms of disease {at} ?" for at in range(30)]
    korean = [f"{4 * at}번 마을의 강가에 있는 박물관은 언제 지었는가?" for at in range(30)]
    pages = [f"{4 * at}번 마을의 박물관은 {1800 + 4 * at}년에 강가에 지었다. 많은 사람이 찾는다." for at in range(30)]
    for name, columns in (
        ("qa/korean-precedents", {"question": korean, "passage": pages, "field": ["민사"] * 30}),
        ("qa/korean-boolq", {"question": korean, "passage": pages}),
        ("qa/arxiv", {"query": questions, "passage": blocks}),
        ("qa/scitldr", {"query": questions, "passage": blocks}),
        ("text/ko-wiki", {"title": [f"마을 {at // 3}" for at in range(90)], "text": list(parts(90))}),
        ("qa/medquad", {"question": medical, "answer": blocks}),
    ):
        write_table(folder / f"{name}.tsv", columns)
    (folder / "retrieval/korquad/corpus.tsv.xz").unlink()
    ids = [f"d{at}" for at in range(30)]
    write_table(folder / "retrieval/korquad/corpus.tsv", {"id": ids, "title": ["산"] * 30, "text": ["산은 높다."] * 30})
    return folder


@pytest.fixture
def small_model(make: Callable[..., Path]) -> Path:
    return make("xlm-roberta")


def test_the_best_of_words_and_vectors_comes_first(small_model: Path) -> None:
    model = BiEncoder.load(small_model, "cpu", "float32")
    passages = list(sentences(40))
    nearest = lists.fused(model, passages[:5], passages)
    assert nearest[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert all(len(set(row)) == 40 for row in nearest.tolist())


def test_word_scores_are_bm25(small_model: Path) -> None:
    model = BiEncoder.load(small_model, "cpu", "float32")
    passages, query = list(sentences(6)), "The river of town 3"
    found = lists.Words(model, passages, model.device).scores([query])[0].tolist()

    def ids(text: str) -> list[int]:
        flat: list[int] = model.tokenizer.bodies([text])[0].tolist()
        return flat

    tokens = [ids(passage) for passage in passages]
    mean = np.mean([len(each) for each in tokens])
    for passage, score in zip(tokens, found, strict=True):
        wanted = 0.0
        for token in set(ids(query)):
            holding, count = sum(token in each for each in tokens), passage.count(token)
            idf = np.log(1 + (len(tokens) - holding + 0.5) / (holding + 0.5))
            wanted += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(passage) / mean))
        assert score == pytest.approx(wanted, abs=1e-4)


def test_negatives_never_answer_the_question(small_model: Path, tmp_path: Path) -> None:
    passages = list(sentences(40))
    (tmp_path / "pairs").mkdir()
    columns = {"query": ["a river", "a river", "a museum"], "passage": [passages[0], passages[1], passages[2]]}
    others = {"query": passages[3:], "passage": passages[3:]}
    write_table(tmp_path / "pairs/some.tsv", {name: columns[name] + others[name] for name in columns})
    lists.mine(BiEncoder.load(small_model, "cpu", "float32"), tmp_path)
    found = lists.read_lists(tmp_path, "some")
    own = {"a river": {passages[0], passages[1]}, "a museum": {passages[2]}}
    rows = list(zip(*found.examples().texts, strict=True))
    assert len(rows) > 30
    for query, right, *wrong in rows:
        answers = own.get(query, {query})
        assert right in answers
        assert answers.isdisjoint(wrong)
        assert len(set(wrong)) == lists.NUM_NEGATIVES


def test_language_tells_nothing_about_the_right_passage() -> None:
    rows = np.arange(4000)[:, None] + np.array([0, 1, 2])
    queries, passages = across.put_in_languages(rows, 5000, [at < 100 for at in range(4000)], np.random.default_rng(1))
    assert (queries % 5000 == rows[:, 0]).all()
    assert (passages % 5000 == rows).all()
    asked_in_korean, in_korean_NK = queries >= 5000, passages >= 5000
    is_other_NK = in_korean_NK != asked_in_korean[:, None]
    assert asked_in_korean.mean() == pytest.approx(0.5, abs=0.03)
    assert is_other_NK[100:, 0].mean() == pytest.approx(0.75, abs=0.03)
    assert is_other_NK[:100, 0].all(), "a sentence is not its own answer"
    mixed = is_other_NK[100:, 1:].any(1) & ~is_other_NK[100:, 1:].all(1)
    assert mixed.mean() == pytest.approx(0.375, abs=0.03)


def test_medical_questions_have_a_korean_form() -> None:
    assert in_korean("Is Gout inherited ?") == "통풍은 유전되나요?"
    assert in_korean("How to prevent Rett syndrome ?") == "Rett syndrome는 어떻게 예방하나요?"
    assert in_korean("How old is it?") is None


def test_held_out_questions_do_not_train(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = pairs.SOURCES["arxiv"]
    monkeypatch.setattr(pairs, "SOURCES", {"arxiv": source})
    monkeypatch.setattr(pairs, "is_held", lambda query: query.endswith(("0 built?", "8 built?")))
    pairs.collect(data, tmp_path)
    trained = set((tmp_path / "pairs/arxiv.tsv").read_text().splitlines()[1:])
    held = (tmp_path / "dev/arxiv/queries.tsv").read_text().splitlines()[1:]
    assert len(trained) + len(held) == 30
    assert len(held) >= 5
    assert not {row.split("\t")[0] for row in trained} & {row.split("\t")[1] for row in held}


def test_probabilities_are_mixed_by_weight() -> None:
    teacher = reranker.shares(np.array([[0.0, np.log(3.0), 0.0]]))
    assert teacher.round(2).tolist() == [[0.2, 0.6, 0.2]]
    mixed = np.exp(reranker.mixed([(0.5, reranker.first_is_right((1, 3))), (0.25, teacher), (0.25, teacher)]))
    assert mixed.round(2).tolist() == [[0.6, 0.3, 0.1]]


def test_a_score_above_half_means_yes(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu", "float32")
    texts = list(sentences(12))
    numbers = np.arange(4)
    some = lists.Lists("some", texts[:4], texts, numbers, np.stack([numbers, numbers + 4, numbers + 8], axis=1))
    before = reranker.logits_of(scorer, some)
    reranker.centre(scorer, [some])
    after = reranker.logits_of(scorer, some)
    assert after[:, 0].mean() + after[:, 1:].max(1).mean() == pytest.approx(0, abs=1e-5)
    np.testing.assert_allclose(after - before, (after - before)[0, 0], atol=1e-5)


@pytest.mark.slow  # every stage of the recipe: half a minute
def test_from_the_data_to_the_figures(
    data: Path, make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kiwipiepy")
    monkeypatch.setattr(pairs, "is_held", lambda query: sum(query.encode()) % 4 == 0)
    for module in (command, reranker):
        monkeypatch.setattr(module, "CONFIG", replace(reranker.CONFIG, max_length=64))
    monkeypatch.setattr(command, "BALANCE", replace(balance.CONFIG, max_length=64, batch_size=8))
    monkeypatch.setattr(command, "ENCODER", replace(encoder.CONFIG, max_length=64, matryoshka=()))
    monkeypatch.setattr(balance, "NUM_HELD", 4)
    start, work = make("xlm-roberta"), tmp_path / "work"
    options = ["--start", str(start), "--device", "cpu", "--teacher-updates", "2", "--updates", "2"]
    options += ["--balance-updates", "2", "--encoder-updates", "2", "--nli-updates", "3"]
    monkeypatch.setattr(sys, "argv", ["models", str(data), str(work), *options, "--stages", *command.STAGES])
    command.main()
    scorer = CrossEncoder.load(work / "reranker", "cpu")
    assert scorer.predict(("언제 지었는가?", "1800년에 지었다.")).shape == ()
    words = [BiEncoder.load(start, "cpu", "float32").network, scorer.network]
    words.append(BiEncoder.load(work / "encoder", "cpu", "float32").network)
    tables = [each.encoder.own.embeddings.word.weight for each in words if each.encoder.own is not None]
    assert all(each.equal(tables[0]) for each in tables)
    shipped = (
        BiEncoder.load(work / "models/ko-en-small", "cpu", "float32"),
        CrossEncoder.load(work / "models/ko-en-reranker", "cpu"),
    )
    assert shipped[0].ranges is not None
    assert (shipped[0].encode(["a river"]) * BiEncoder.load(work / "encoder", "cpu").encode(["a river"])).sum() > 0.99
    assert shipped[1].predict(("언제 지었는가?", "1800년에 지었다.")).shape == ()
    assert {"korsts-dev", "crossed-dev"} < set(json.loads((work / "encoder-dev.json").read_text()))
    record = json.loads((work / "run.json").read_text())
    assert set(record["seconds"]) == set(command.STAGES)
    trained = [name for name, source in pairs.SOURCES.items() if source.trains]
    assert set(record["tables"]) == {f"{name}.tsv" for name in (*trained, *pairs.UNITS, "decisions", "sentences")}
    written = (work / "encoder/model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(sys, "argv", ["models", str(data), str(work), *options])
    command.main()
    assert (work / "encoder/model.safetensors").stat().st_mtime_ns == written, "nothing is left to do"
    shipped_at = (work / "models/ko-en-small/munjang_int8.safetensors").stat().st_mtime_ns
    for stages in (["--stages", "encoder"], []):  # what was made of the encoder before is made again
        monkeypatch.setattr(sys, "argv", ["models", str(data), str(work), *options, *stages])
        command.main()
    assert (work / "models/ko-en-small/munjang_int8.safetensors").stat().st_mtime_ns > shipped_at
    monkeypatch.setattr(sys, "argv", ["models", str(data), str(work), *options, "--seed", "6"])
    with pytest.raises(SystemExit, match="another seed"):
        command.main()
