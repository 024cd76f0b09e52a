"""Sentences of public repositories, as files that look like theirs."""

import io
import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest

from munjang.data.reading import read_examples
from munjang.errors import InputError
from recipes.ko_en_small.asked import analysed, korean_query
from recipes.ko_en_small.bills import MAX_PASSAGE, bills, ended, passage_of
from recipes.ko_en_small.data import everyday, headlines, read, read_table, translations
from recipes.ko_en_small.judges import korean_texts
from recipes.ko_en_small.more import BILLS, HEADLINES, KOSBI, PARALLEL, SQUARE, WIKI, more
from recipes.ko_en_small.wiki import LENGTHS, encyclopaedia, wiki
from tests.recipes import small_data

NEWS = {"en": "The minister resigned.\nPrices rose.\n", "ko": "장관이 사임했다.\n물가가 올랐다.\n"}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    folder = tmp_path / "repositories"
    for path in SQUARE:
        put(folder / path, json.dumps([{"question": "왜  그런가?", "question_en": "Why is\tthat so?"}]))
    said = {
        "context": "비가 온다.",
        "context_en": "It rains.",
        "sentence": "우산이 없다.",
        "sentence_en": "No umbrella.",
    }
    for path in KOSBI:
        put(folder / path, json.dumps([said, {**said, "sentence": "", "sentence_en": "Nothing."}]))
    topics = ["짧다", "한국 축구 대표팀 승리", "한국 축구 대표팀 승리", "서울시장 선거 결과 발표"]
    put(folder / HEADLINES, json.dumps([{"sensitive_topic": topic} for topic in topics]))
    for language in NEWS:
        put(folder / f"{PARALLEL}/korean-english-jhe/jhe-koen-eval.{language}", "\n".join(["one", "two"]))
    archive = folder / f"{PARALLEL}/korean-english-news-v1/korean-english-park.test.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as made:
        for language, text in NEWS.items():
            member = tarfile.TarInfo(f"park.{language}")
            member.size = len(text.encode())
            made.addfile(member, io.BytesIO(text.encode()))
    put(
        folder / "UD_Korean-PUD/ko_pud-ud-test.conllu",
        "# sent_id = 1\n# text = 눈이 왔다.\n# text_en = It snowed.\n1\t눈이\t_\n",
    )
    put(folder / "TALPCo/eng/data_eng.txt", "1\tHe is a student.\n3\tAlone.\n")
    put(folder / "TALPCo/kor/data_kor.txt", "1\t그는 학생이다.\n2\t혼자.\n")
    return folder


def test_they_stand_beside_the_data(repositories: Path, tmp_path: Path) -> None:
    data = small_data.write(tmp_path / "data")
    english, korean = everyday(data)
    before = len(translations(data, 100, 1)[0]), len(korean_texts(data))
    more(repositories, data)
    found = list(zip(*everyday(data), strict=True))
    assert found[: len(english)] == list(zip(english, korean, strict=True))
    assert found[len(english) :] == [
        ("Why is that so?", "왜 그런가?"),
        ("It rains.", "비가 온다."),
        ("No umbrella.", "우산이 없다."),
        ("The minister resigned.", "장관이 사임했다."),
        ("Prices rose.", "물가가 올랐다."),
        ("one", "one"),
        ("two", "two"),
        ("It snowed.", "눈이 왔다."),
        ("He is a student.", "그는 학생이다."),
    ]
    assert headlines(data) == ["한국 축구 대표팀 승리", "서울시장 선거 결과 발표"]
    assert (len(translations(data, 100, 1)[0]), len(korean_texts(data))) == (before[0] + 9, before[1] + 1)


def test_what_is_missing_is_left_out(repositories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repositories / SQUARE[0]).unlink()
    (repositories / HEADLINES).unlink()
    data = small_data.write(tmp_path / "data")
    more(repositories, data)
    assert "square: left out" in capsys.readouterr().out
    assert "Why is that so?" not in everyday(data)[0]
    assert headlines(data) == []
    with pytest.raises(InputError, match="none of the files"):
        more(tmp_path / "nowhere", data)


def test_bills(repositories: Path, tmp_path: Path) -> None:
    """Whole passages without the articles in brackets, and a question from one sentence of each."""
    pytest.importorskip("kiwipiepy")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    one = (
        "현행법은 8세 미만의 아동에게 매월 10만원의 아동수당을 지급하도록 하고 있음.\n"
        "그런데 물가가 3.5퍼센트 올라 가정마다 경제적 부담이 증가하고 있다는 지적이 있음. "
        "이에 지급대상을 18세 미만까지 확대하려는 것임(안 제4조 등)."
    )
    others = [one.replace("8세", f"{age}세") for age in range(9, 17)]
    short = "이에 제목을 바꾸려는 것임."
    (repositories / BILLS).parent.mkdir(parents=True)
    parquet.write_table(
        pyarrow.table({"propose_reason": [one, one, None, short, *others]}),
        repositories / BILLS,
    )
    data, silver = small_data.write(tmp_path / "data"), tmp_path / "silver"
    more(repositories, data)
    kept = read_examples(data / "text/ko-bills.tsv", texts=("text",)).texts[0]
    assert list(kept[:2]) == [" ".join(one.replace("(안 제4조 등)", "").split()), short]
    assert len(kept) == 2 + len(others)
    assert passage_of(kept[0]) == [
        "현행법은 8세 미만의 아동에게 매월 10만원의 아동수당을 지급하도록 하고 있음.",
        "그런데 물가가 3.5퍼센트 올라 가정마다 경제적 부담이 증가하고 있다는 지적이 있음.",
        "이에 지급대상을 18세 미만까지 확대하려는 것임.",
    ]
    many = passage_of("가나다라. " * 1000)
    assert set(many) == {"가나다라."}
    assert MAX_PASSAGE - 10 < sum(map(len, many)) <= MAX_PASSAGE
    silver.mkdir()
    for name in ("asked", "gathered"):
        (silver / f"{name}.tsv").write_text("query\tpassage\n" + f"무엇을 {name}?\t답이다.\n" * 3, "utf-8")
    before = read(data, silver)
    bills(data, silver / "bills.tsv")
    made = read_examples(silver / "bills.tsv", texts=("query", "passage"))
    assert 0 < len(made) <= 1 + len(others)
    assert set(made.texts[1]) <= set(kept) - {short}  # which is no passage
    assert all(query not in passage for query, passage in zip(*made.texts, strict=True))
    after = read(data, silver)
    assert [each.name for each in before.alone] == ["gathered"]
    assert [each.name for each in after.alone] == ["gathered", "bills"]
    assert [each.name for each in after.documents] == [each.name for each in before.documents]


def test_a_noun_at_the_end() -> None:
    pytest.importorskip("kiwipiepy")
    sentence = "현행법은 도시철도 건설 용역에 대하여 부가가치세의 영세율 적용 특례를 부여하고 있음."
    tokens = analysed([sentence])[0]
    assert [token.tag for token in tokens[-2:]] == ["ETN", "SF"]
    assert [token.tag for token in ended(tokens)[-2:]] == ["EF", "SF"]
    assert [token.form for token in ended(tokens)] == [token.form for token in tokens]
    queries = [korean_query(ended(tokens), np.random.default_rng(seed)) for seed in range(20)]
    assert any(query and query.endswith("?") for query in queries)
    assert ended(tokens[:1]) == [(tokens[0].form, tokens[0].tag)]


ARTICLE = """<doc id="{number}" url="https://ko.wikipedia.org/wiki?curid={number}" title="{title}">
{title}

{title}(, 1924년 ~ )는 &lt;한국&gt;의 {number}번째 등대이다. {filler}
역사.
{title}는 {number}년에 강가의 작은 마을에서 처음 세워졌다. {filler}
{title}를 찾는 사람은 해마다 {number}만 명이 넘는다. {filler}
</doc>
"""


def test_an_encyclopaedia(repositories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Passages of articles that KorQuAD has neither the title nor a part of, each with a question."""
    pytest.importorskip("kiwipiepy")
    data, silver = small_data.write(tmp_path / "data"), tmp_path / "silver"
    filler = "이 등대는 배들이 밤에도 길을 찾도록 빛을 멀리 보낸다. " * 12
    measured = "고래섬 등대는 사람들이 손으로 돌을 날라 만들었다고 전해진다."
    with lzma.open(data / "retrieval/korquad/corpus.tsv.xz", "wt", encoding="utf-8") as made:
        made.write(f"id\ttitle\ttext\na\t범섬_등대\t범섬이다.\nb\t다른 것\t{measured}\n")
    titles = ["범섬 등대", "소섬 등대 (1924년)", "고래섬 등대", "새섬 등대"]
    texts = [ARTICLE.format(number=number, title=title, filler=filler) for number, title in enumerate(titles, 10)]
    texts[2] = texts[2].replace(
        "역사.\n", f"역사.\n그런데 {measured}\n"
    )  # within a paragraph, as another revision has it
    short = '<doc id="9" url="x" title="돌섬">\n돌섬\n\n돌섬은 섬이다.\n</doc>\n'
    put(repositories / WIKI / "AA/wiki_00", short + "".join(texts))
    more(repositories, data)
    table = read_table(data / "text/ko-wiki.tsv", ("title", "text"))
    assert table["title"] == ["소섬 등대 (1924년)"] * 3 + ["새섬 등대"] * 3
    assert table["text"][0].startswith("소섬 등대 (1924년)(1924년 ~ )는 <한국>의 11번째 등대이다.")
    assert all(len(text) in LENGTHS and "역사." not in text for text in table["text"])
    assert "6 passages of 2 articles, 2 left out" in capsys.readouterr().out
    silver.mkdir()
    wiki(data, silver / "wiki.tsv")
    made_of = read_examples(silver / "wiki.tsv", texts=("query", "passage"))
    assert 0 < len(made_of) <= 6
    assert set(made_of.texts[1]) <= set(table["text"])
    assert "(1924년)은" not in "".join(made_of.texts[0])  # titles are named without what tells them apart
    with pytest.raises(InputError, match="no AA/wiki_00"):
        encyclopaedia(tmp_path / "nowhere", data)
