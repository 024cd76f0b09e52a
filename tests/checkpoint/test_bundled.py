"""The bundled models: by name and without one, wherever there is a default; clear words where they are missing."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import CrossEncoder as TheirCrossEncoder
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder, Index, checkpoint
from munjang.checkpoint.bundled import BUNDLED, FOLDER, is_there, name_of
from munjang.cli import main
from munjang.errors import CheckpointError

TEXTS = ["a fox", "서울은 대한민국의 수도이다", "", "나는 오늘 school에 갔다"]


def test_without_a_name_and_by_name(bundled: Path) -> None:
    model, named = BiEncoder.load(), BiEncoder.load("ko-en-small")
    assert model.model.folder == named.model.folder == bundled / "ko-en-small"
    assert np.array_equal(model.encode(TEXTS), named.encode(TEXTS))
    scorer = CrossEncoder.load()
    assert scorer.model.folder == CrossEncoder.load("ko-en-reranker").model.folder == bundled / "ko-en-reranker"
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint
    assert checkpoint.kind("ko-en-small") == "bi"
    assert checkpoint.kind("ko-en-reranker") == "cross"
    with pytest.raises(CheckpointError, match="is a bi-encoder; load it with"):
        CrossEncoder.load("ko-en-small")


def test_a_folder_of_that_name_comes_first(
    bundled: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/ko-en-small").symlink_to(tiny_bert)
    monkeypatch.chdir(tmp_path / "here")
    assert BiEncoder.load("ko-en-small").fingerprint == BiEncoder.load(tiny_bert).fingerprint


def test_a_checkout_without_weights(unbundled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckpointError, match=r"No model is bundled here .*models/ko-en-small holds no weights"):
        BiEncoder.load()
    with pytest.raises(CheckpointError, match=r"No re-ranker is bundled here .*models/ko-en-reranker holds no weights"):
        CrossEncoder.load()
    with pytest.raises(CheckpointError, match="'ko-en-small' is a model of the package, but"):
        BiEncoder.load("ko-en-small")
    assert main(["info"]) == 0
    assert capsys.readouterr().out.count("its weights are not in this copy") == len(BUNDLED)


def test_a_new_index_takes_it_and_keeps_its_name(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lancedb")
    with Index.open(tmp_path / "index") as index:
        index.add(TEXTS[:2])
        assert index.info()["model"] == "ko-en-small"
    bundled.rename(tmp_path / "elsewhere")  # as a new version of the package in another environment
    monkeypatch.setattr("munjang.checkpoint.bundled.FOLDER", tmp_path / "elsewhere")
    with Index.open(tmp_path / "index") as index:
        assert index.search(TEXTS[0], k=1)[0].text == TEXTS[0]
    with Index.open(tmp_path / "second", BiEncoder.load()) as index:
        assert index.info()["model"] == "ko-en-small"


def test_name_of(bundled: Path, tiny_bert: Path) -> None:
    assert name_of(bundled / "ko-en-small") == "ko-en-small"
    assert name_of(bundled / "another") is None
    assert name_of(tiny_bert) is None


def test_export_gives_the_same_vectors(bundled: Path, tmp_path: Path) -> None:
    (bundled / "ko-en-small/NOTICE").write_text("whose work it is")
    assert main(["export", "ko-en-small", "-o", str(tmp_path / "bi")]) == 0
    theirs = SentenceTransformer(str(tmp_path / "bi"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - BiEncoder.load(dtype="float32").encode(TEXTS)).max() < 1e-5
    assert (tmp_path / "bi/NOTICE").read_text() == "whose work it is"
    assert main(["export", "ko-en-reranker", "-o", str(tmp_path / "cross")]) == 0
    pairs = [(TEXTS[0], text) for text in TEXTS]
    theirs = TheirCrossEncoder(str(tmp_path / "cross"), device="cpu").predict(pairs)
    assert np.abs(theirs - CrossEncoder.load(dtype="float32").predict(pairs)).max() < 1e-5


def real(name: str) -> str:
    """A bundled model of this copy, or a reason to skip."""
    if not is_there(name):
        pytest.skip(f"{FOLDER / name} holds no weights: this checkout has no bundled models")
    return name


def test_they_are_small_and_have_cards() -> None:
    names = [real(name) for name in BUNDLED]
    files = [path for name in names for path in (FOLDER / name).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 80_000_000
    for name in names:
        card = (FOLDER / name / "README.md").read_text(encoding="utf-8")
        assert card.startswith("---\nlicense: ")
        assert f"# {name}" in card
        assert "multilingual-e5-small" in card
        assert "MIT License" in (FOLDER / name / "NOTICE").read_text(encoding="utf-8")


def test_like_is_nearer_than_unlike() -> None:
    """Paraphrases in Korean, in English and across both above what has nothing to do with them."""
    model = BiEncoder.load(real("ko-en-small"))
    korean = ["고양이가 소파에서 자고 있다.", "소파 위에서 고양이가 잠을 잔다."]
    english = ["A cat is sleeping on the sofa.", "The kitten naps on the couch."]
    unlike = ["주식 시장이 크게 하락했다.", "The stock market fell sharply."]
    for left, right in (korean, english, (korean[0], english[0]), (korean[1], english[1])):
        assert model.similarity(left, right) > model.similarity([left, right], unlike).max() + 0.2


def test_answers_are_above_others() -> None:
    scorer = CrossEncoder.load(real("ko-en-reranker"))
    passages = [
        "서울은 대한민국의 수도이며 약 940만 명이 산다.",
        "Seoul is the capital of South Korea.",
        "김치찌개는 김치와 돼지고기를 넣고 끓인다.",
        "A cat is sleeping on the sofa.",
    ]
    for question in ("대한민국의 수도는 어디인가?", "What is the capital of South Korea?"):
        assert {hit.index for hit in scorer.rank(question, passages, top_k=2)} == {0, 1}


@pytest.mark.slow  # real weights
def test_export_of_a_real_folder(real_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole multilingual-e5-small in the place of the bundled one: compact, and float again."""
    monkeypatch.setattr("munjang.checkpoint.bundled.FOLDER", tmp_path)
    BiEncoder.load(real_models / "e5-small", "cpu", "float32").save(tmp_path / "ko-en-small", format="munjang-int8")
    assert main(["export", "ko-en-small", "-o", str(tmp_path / "float")]) == 0
    theirs = SentenceTransformer(str(tmp_path / "float"), device="cpu").encode(TEXTS, normalize_embeddings=True)
    ours = BiEncoder.load(device="cpu", dtype="float32").encode(TEXTS, normalize=True)
    assert np.abs(theirs - ours).max() < 1e-5


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    some = [text for text in TEXTS if text]
    rows = "".join(f"{text}\ta fox\t{score}\n" for score, text in enumerate(some))
    written = {"texts.txt": "a fox\n서울\na dog\n", "sts.tsv": f"sentence1\tsentence2\tscore\n{rows}"}
    written["pairs.tsv"] = "anchor\tpositive\na fox\ta dog\n서울\t수도\n나무\tb tree\n"
    for name, text in written.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in written}


COMMANDS: dict[str, Callable[[dict[str, str], Path], list[str]]] = {
    "encode": lambda files, out: [files["texts.txt"], "-o", str(out / "vectors.npy")],
    "similarity": lambda files, out: ["a fox", "a dog"],
    "search": lambda files, out: ["a fox", files["texts.txt"], "--lines", "--rerank", "ko-en-reranker"],
    "index": lambda files, out: ["build", str(out / "index"), files["texts.txt"]],
    "rerank": lambda files, out: ["a fox", files["texts.txt"]],
    "negatives": lambda files, out: [files["pairs.tsv"], "-o", str(out / "triplets.jsonl"), "--num-negatives", "1"],
    "evaluate": lambda files, out: ["--data", files["sts.tsv"]],
    "bench": lambda files, out: ["--count", "2", "--rounds", "1", "--dtypes", "float32"],
    "info": lambda files, out: ["ko-en-small"],
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_commands_need_no_model(
    verb: str, bundled: Path, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, *COMMANDS[verb](files, tmp_path)]) == 0, capsys.readouterr().err


def test_the_server_takes_both(bundled: Path) -> None:
    from munjang.cli.serve import Options, limits_of, load
    from munjang.server.loading import Loader

    service = load(Options(), Loader(), limits_of(Options()))
    assert {each.name for each in (*service.embedders, *service.rerankers)} == {"ko-en-small", "ko-en-reranker"}
