"""munjang topics: found with a map, kept, and new texts assigned to them."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from munjang.cli import main
from tests.tasks.topics.made import made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts, their years and their vectors."""
    monkeypatch.chdir(tmp_path)
    texts, vectors = made(0)
    lines = ["text,year", *(f'"{text}",{2020 + row % 2}' for row, text in enumerate(texts))]
    Path("texts.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.save("vectors.npy", vectors)
    return tmp_path


def rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("place")
def test_topics_map_times_and_new_texts(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["topics", "texts.csv", "-o", "topics.csv", "--vectors", "vectors.npy"]
    assert main([*command, "--html", "map.html", "--save", "kept", "--times", "year"]) == 0
    found = rows("topics.csv")
    assert [row["topic"] for row in found] == ["0"] * 30 + ["1"] * 20 + ["2"] * 12
    assert "cat" in found[0]["label"]
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[:2] for line in shown[:3]] == [["0", "30"], ["1", "20"], ["2", "12"]]
    assert [line.split("\t")[:3] for line in shown[3:5]] == [["2020", "0", "15"], ["2021", "0", "15"]]
    page = Path("map.html").read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert len(data["points"]) == 62
    assert "Topics of texts.csv" in page
    assert page.count('class="spot" data-topic=') == 6  # a row for each topic of each year

    assert main(["topics", "texts.csv", "-o", "again.csv", "--vectors", "vectors.npy", "--load", "kept"]) == 0
    assert [row["topic"] for row in rows("again.csv")] == [row["topic"] for row in found]


@pytest.mark.usefixtures("place")
def test_texts_are_encoded_by_the_model(minilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["topics", "texts.csv", "-o", "topics.jsonl", "-m", str(minilm), "--device", "cpu", "--quiet"]
    assert main([*command, "--num-topics", "3", "--num-terms", "2", "--save", "kept"]) == 0
    lines = [json.loads(line) for line in Path("topics.jsonl").read_text("utf-8").splitlines()]
    assert len({line["topic"] for line in lines}) == 3
    assert capsys.readouterr().out == ""  # of --quiet
    assert all(len(line["label"].split(", ")) == 2 for line in lines)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--num-topics", "99"], "num_topics=99, but there are only 62 texts"),
        (["--num-topics", "0"], "at least 1"),
        (["--times", "month"], "no column 'month'"),
        (["--times", "text"], "is not a date"),
        (["--load", "nowhere"], "is not a folder of topics"),
        (["--load", "nowhere", "--num-topics", "3"], "leave out"),
        (["--load", "nowhere", "--html", "x.html"], "--html is of the texts"),
        (["--min-similarity", "0.5"], "is for --load"),
        (["--diversity", "0.5"], "give the --model"),
        (["--vectors", "texts.csv"], "not a valid .npy file"),
        (["-o", "vectors.npy"], "suffix"),
        (["--html", "nofolder/x.html", "--vectors", "nowhere.npy"], "folder nofolder doesn't exist"),
        (["--html", "topics.csv", "--vectors", "nowhere.npy"], "same name"),
        (["--save", "topics.csv", "--vectors", "nowhere.npy"], "same name"),
        (["--save", ".", "--replace", "--vectors", "nowhere.npy"], "holds no topics"),
    ],
)
def test_bad_input_is_refused(extra: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "texts.csv", "-o", "topics.csv", "--vectors", "vectors.npy", *extra]) == 2
    assert message in capsys.readouterr().err
    assert not Path("topics.csv").exists()


def test_no_texts_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.txt").touch()
    assert main(["topics", str(tmp_path / "empty.txt"), "-o", str(tmp_path / "out.csv"), "-m", "nowhere"]) == 2
    assert "no texts" in capsys.readouterr().err
