"""Sentences of public repositories, as files that look like theirs."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from munjang.errors import InputError
from recipes.ko_en_small.data import everyday, headlines, translations
from recipes.ko_en_small.judges import korean_texts
from recipes.ko_en_small.more import HEADLINES, KOSBI, PARALLEL, SQUARE, more
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
