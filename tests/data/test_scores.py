"""Scores of rows as similarities: their range, yes and no, scores of candidates."""

from pathlib import Path

import numpy as np
import pytest

from munjang.data.reading import read_examples
from munjang.errors import InputError
from tests.data.written import write


@pytest.mark.parametrize(
    ("values", "declared", "scaled", "note"),
    [
        ([0, 0.25, 1], None, [0, 0.25, 1], "0 to 1 (found"),
        ([-0.5, 1], None, [0.25, 1], "-1 to 1 (found"),
        ([0, 2.5, 4], None, [0, 0.5, 0.8], "0 to 5 (found"),
        ([0, 6], None, [0, 0.6], "0 to 10 (found"),
        ([50, 100], None, [0.5, 1], "0 to 100 (found"),
        ([1, 2, 5], (1, 5), [0, 0.25, 1], "1 to 5 (declared)"),
    ],
)
def test_scores_are_scaled(
    tmp_path: Path, values: list[float], declared: tuple[float, float] | None, scaled: list[float], note: str
) -> None:
    path = write(tmp_path / "t.csv", [{"sentence1": "a", "sentence2": "b", "similarity": value} for value in values])
    examples = read_examples(path, target="scores", score_range=declared)
    assert examples.scores is not None
    assert np.allclose(examples.scores, scaled, rtol=0, atol=1e-15)
    assert note in examples.notes[-1]


def test_scores_out_of_range(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", [{"sentence1": "a", "sentence2": "b", "score": value} for value in [3, 0, 7, -200]]
    )
    with pytest.raises(InputError, match="lie from -200 to 7, in none"):
        read_examples(path, target="scores")
    with pytest.raises(InputError) as error:
        read_examples(path, target="scores", score_range=(1, 5))
    assert "3 of 4 rows are bad" in str(error.value)
    assert "line 3: score 0 is not within 1 to 5" in str(error.value)
    with pytest.raises(InputError, match="lowest and a highest"):
        read_examples(path, target="scores", score_range=(5, 1))


def test_yes_and_no_are_scores_and_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", [{"question1": "a", "question2": "b", "is_duplicate": value} for value in (1, 0)])
    scores, labels = read_examples(path, target="scores").scores, read_examples(path, target="labels").labels
    assert scores is not None
    assert scores.tolist() == [1, 0]
    assert labels is not None
    assert labels.tolist() == [1, 0]


def test_candidate_scores_stay_as_they_are(tmp_path: Path) -> None:
    texts: dict[str, object] = {"query": "q", "positive": "p", "negative_1": "m", "negative_2": "n"}
    expected = [[9.5, -3, 2], [7, 1, -11]]
    each = [{**texts, **{f"score_{at}": value for at, value in enumerate(row, 1)}} for row in expected]
    lists = [{**texts, "scores": row} for row in expected]
    spaces = [{**texts, "scores": " ".join(map(str, row))} for row in expected]
    for name, rows in [("a.tsv", each), ("b.jsonl", lists), ("c.csv", lists), ("d.parquet", lists), ("e.tsv", spaces)]:
        examples = read_examples(write(tmp_path / name, rows), target="scores")
        assert examples.scores is not None
        assert examples.scores.tolist() == expected, name
    margin = read_examples(write(tmp_path / "margin.tsv", [{**texts, "score": 8.5}]), target="scores")
    assert margin.scores is not None
    assert margin.scores.tolist() == [8.5]
    path = write(tmp_path / "logits.tsv", [{"query": "q", "passage": "p", "logit": -7.5}])
    logits = read_examples(path, score=("logit",))  # a teacher's, on its own scale
    assert logits.scores is not None
    assert logits.scores.tolist() == [[-7.5]]
    with pytest.raises(InputError, match=r"2 columns of scores .* for 3 candidates"):
        read_examples(tmp_path / "a.tsv", score=("score_1", "score_2"))
    with pytest.raises(InputError, match="score_range is for one score"):
        read_examples(tmp_path / "a.tsv", target="scores", score_range=(0, 1))
    lists[1]["scores"] = [1, 2]
    with pytest.raises(InputError, match=r"line 2: 2 scores .*3 wanted"):
        read_examples(write(tmp_path / "f.jsonl", lists), target="scores")
