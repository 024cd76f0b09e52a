"""Sentences, passages and English questions that are put beside the data folder."""

import io
import json
import lzma
import tarfile
from pathlib import Path

import pytest

from munjang.data.reading import read_examples
from munjang.errors import InputError
from recipes.models.gather import KOSBI, PARALLEL, SQUARE, WIKI, gather
from recipes.models.sources import everyday, read_table
from recipes.models.wiki import LENGTHS, encyclopaedia, wiki
from tests.recipes.models import small_data

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
    gather(repositories, data)
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


def test_what_is_missing_is_left_out(repositories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repositories / SQUARE[0]).unlink()
    data = small_data.write(tmp_path / "data")
    gather(repositories, data)
    assert "square: left out" in capsys.readouterr().out
    assert "Why is that so?" not in everyday(data)[0]
    with pytest.raises(InputError, match="none of the files"):
        gather(tmp_path / "nowhere", data)


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
    gather(repositories, data)
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
