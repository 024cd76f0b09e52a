import json
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.index import Index

NOTES = {
    "seoul.txt": "서울은 한국의 수도이다. 한강이 흐른다.",
    "paris.txt": "Paris is the capital of France. The Seine flows through it.",
    "cats.md": "# Cats\n\nA cat sleeps most of the day.",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def hits(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_plain_files(tiny_bert: Path, notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "Paris is the capital of France. The Seine flows through it."
    assert main(["search", query, str(notes), "-m", str(tiny_bert), "--json", "--device", "cpu"]) == 0
    found = hits(capsys)
    assert len(found) == 3
    assert found[0]["document_id"] == str(notes / "paris.txt")
    assert found[0]["score"] == pytest.approx(1, abs=1e-5)
    assert main(["search", query, str(notes), "-m", str(tiny_bert), "-k", "1", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "paris.txt" in shown
    assert "Seine" in shown


def test_tables_filters_and_words(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.jsonl"
    rows = [{"id": f"r{n}", "text": f"row number {n}", "year": 2000 + n} for n in range(6)]
    table.write_text("\n".join(map(json.dumps, rows)))
    given = [str(table), "-m", str(tiny_bert), "--json", "--device", "cpu"]
    assert main(["search", "row number 3", *given, "--where", "year > 2003", "--by", "words", "dense"]) == 0
    assert sorted(str(hit["document_id"]) for hit in hits(capsys)) == ["r4", "r5"]
    assert main(["search", "x", *given, "--where", "month = 1"]) == 2
    assert "month" in capsys.readouterr().err


def test_rerank(make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scorer = make("bert", kind="cross", num_labels=1)
    lines = tmp_path / "candidates.txt"
    lines.write_text("\n".join(NOTES.values()).replace("\n\n", " "), encoding="utf-8")
    assert main(["rerank", "capital?", str(lines), "-m", str(scorer), "--json", "-k", "2", "--device", "cpu"]) == 0
    found = hits(capsys)
    assert len(found) == 2
    assert float(str(found[0]["score"])) >= float(str(found[1]["score"]))


def test_the_weight_of_the_re_ranker(
    make: Callable[..., Path], tiny_bert: Path, notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["search", "the capital", str(notes), "-m", str(tiny_bert), "--json", "--device", "cpu"]
    ranker = ["--rerank", str(make("bert", kind="cross", num_labels=1))]
    capsys.readouterr()  # what the making of models said
    orders = {}
    for weight in ([], ["--rerank-weight", "1"], ["--rerank-weight", "0.5"], ["--rerank-weight", "0"]):
        assert main([*asked, *ranker, *weight]) == 0
        orders[" ".join(weight[1:])] = hits(capsys)
    assert orders[""] == orders["1"]  # this one states none
    assert [hit["score"] for hit in orders["1"]] == [hit["rerank_score"] for hit in orders["1"]]
    assert [hit["score"] for hit in orders["0.5"]] != [hit["rerank_score"] for hit in orders["0.5"]]
    assert [hit["retrieval_rank"] for hit in orders["0"]] == [1, 2, 3]
    assert main([*asked, *ranker, "--rerank-weight", "1.5"]) == 2
    assert "0 to 1, not 1.5" in capsys.readouterr().err
    assert main([*asked, "--rerank-weight", "0.5"]) == 2
    assert "--rerank-weight needs --rerank" in capsys.readouterr().err


def test_nowhere_to_look(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "x", "-m", str(tiny_bert)]) == 2
    assert "--index" in capsys.readouterr().err


def test_an_index_among_the_files(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lancedb")
    place = tmp_path / "my index"
    Index.open(place, tiny_bert).close()
    assert main(["search", "x", str(place), "-m", str(tiny_bert)]) == 2
    assert f"--index '{place}'" in capsys.readouterr().err
