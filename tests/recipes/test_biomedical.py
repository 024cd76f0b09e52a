"""The biomedical recipe: nothing of the test is trained on, and every right answer counts."""

from pathlib import Path

import pytest

from munjang.data.examples import Examples
from munjang.evaluation.kinds.corpus import Retrieval
from recipes.biomedical.run import read, searches


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """40 focuses of three rows; all of them say the same of their treatment."""
    rows = [
        f"{question} disease {number}?\t{answer}\tDisease {number}"
        for number in range(40)
        for question, answer in (
            ("What is", f"Disease {number} is rare."),
            ("Who gets", f"Children get disease {number}."),
            ("How to treat", "See a doctor."),
        )
    ]
    (tmp_path / "qa").mkdir()
    lines = ["question\tanswer\tfocus", *rows, "What is it?\tNobody knows.\t"]
    (tmp_path / "qa/medquad.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def focuses(examples: Examples) -> set[str]:
    return {question.split(" disease ")[1] for question in examples.texts[0]}


@pytest.mark.parametrize(("num_rows", "num_focuses"), [(None, 40), (60, 20), (61, 20)])
def test_no_focus_is_on_both_sides_or_cut(data: Path, num_rows: int | None, num_focuses: int) -> None:
    training, test, everything = read(data, num_rows)
    assert focuses(training) & focuses(test) == set()
    assert len(focuses(everything)) == num_focuses
    assert len(everything) == 3 * num_focuses  # the row without a focus is left out
    assert len(test) == len(everything) / 5
    assert "See a doctor." not in training.texts[1]  # the test's answer too
    assert len(training) == 2 * (num_focuses - len(focuses(test)))


def test_whatever_a_row_answers_a_question_with_is_right() -> None:
    test = Examples("test", (["q", "q", "r"], ["a", "b", "a"]))
    everything = Examples("all", (["q", "q", "r", "q", "s"], ["a", "b", "a", "c", "d"]))
    found = searches(test, everything)
    assert [len(each.corpus) for each in found.values()] == [2, 4]
    assert right(found["all answers"]) == {"q": {"a", "b", "c"}, "r": {"a"}}
    assert right(found["test answers"]) == {"q": {"a", "b"}, "r": {"a"}}  # what isn't there can't be found


def right(search: Retrieval) -> dict[str, set[str]]:
    """Question and answers as texts."""
    return {search.queries[name]: {search.corpus[each] for each in known} for name, known in search.relevances.items()}
