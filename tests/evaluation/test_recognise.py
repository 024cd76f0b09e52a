"""The kind of evaluation that data is for: by its columns and classes; what is not clear is asked for."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import prepare
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.recognise import recognise
from tests.data.published.files import PUBLISHED_FILES, Published, put


@pytest.mark.parametrize(
    ("lines", "options", "kind"),
    [
        (["sentence1\tsentence2\tscore", "a\tb\t1"], {}, "sts"),
        (["sentence1\tsentence2\tscore\tlabel", "a\tb\t1\tx"], {}, "sts"),
        (["sentence1\tsentence2\tscore\tlabel", "a\tb\t1\t0"], {"label": "label"}, "pairs"),
        (["question1\tquestion2\tis_duplicate", "a\tb\t1", "a\tb\t0"], {}, "pairs"),
        (["premise\thypothesis\tlabel", "a\tb\tneutral"], {}, "nli"),
        (["anchor\tpositive\tnegative", "a\tb\tc"], {}, "triplets"),
        (["en\tko\tsource", "a\tb\tx"], {"texts": ("en", "ko")}, "translation"),
        (["text\tlabel", "a\tx"], {"train": "train.tsv"}, "classification"),
        (["text\tlabel", "a\tx"], {"folds": 10}, "classification"),
    ],
)
def test_files(write: Callable[..., Path], lines: list[str], options: dict[str, object], kind: str) -> None:
    assert recognise(write("data.tsv", *lines), Settings(**options))[0] == kind


def test_folders(retrieval: Path) -> None:
    assert recognise(retrieval, Settings()) == ("retrieval", retrieval)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["text\tlabel", "a\tx"], "1 text and labels fit clustering and classification; give --kind"),
        (["text", "a"], "1 text and nothing else fit no kind of evaluation"),
        (
            ["sentence1\tsentence2\tlabel", "a\tb\tw", "a\tb\tx", "a\tb\ty", "a\tb\tz"],
            "2 texts and 4 classes fit no",
        ),
        (["x\ty", "a\tb"], "which columns hold the texts"),
        (["question\tanswer", "a\tb"], r"columns 'question', 'answer'.*fit no kind.*give --kind .*translation, if"),
        (["sentence1\tsentence2\tsentence3", "a\tb\tc"], "There are sentence1, sentence2 and sentence3; give --texts"),
        (["regular\tsentence_1\tsentence_2", "3\ta\tb"], r"columns 'regular', 'sentence_1'.*give --kind"),
    ],
)
def test_asked_for(write: Callable[..., Path], lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recognise(write("data.tsv", *lines), Settings())


@pytest.mark.parametrize("published", PUBLISHED_FILES.values(), ids=PUBLISHED_FILES)
def test_published_files(published: Published, tmp_path: Path) -> None:
    path = put(tmp_path, published)
    if published.kind is None:  # a test set: the rows that a classifier learns from are in another file
        with pytest.raises(InputError, match=r"trains a classifier on the vectors: give its rows with --train"):
            prepare(path, None, Settings())
        assert prepare(path, None, Settings(train=path))[0] == "classification"
    else:
        kind, data = prepare(path, None, Settings())
        assert kind == published.kind
        assert len(data) == (1 if path.name == "SICK.txt" else len(published.texts[0]))


def test_the_format_of_klue_and_korquad_may_be_given(tmp_path: Path) -> None:
    """They are JSON; read as lines of JSON, the error once named no column: "Of , no telling names"."""
    for name, kind in (("KLUE-STS", "sts"), ("KorQuAD", "retrieval")):
        path = put(tmp_path, PUBLISHED_FILES[name])
        assert prepare(path, None, Settings(format="json"))[0] == kind
    path = put(tmp_path, PUBLISHED_FILES["KLUE-STS"])
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")), indent=4, ensure_ascii=False), "utf-8")
    assert prepare(path, None, Settings())[0] == "sts"
    with pytest.raises(InputError, match=r"line 1: .*a file that is one list is read with --format json"):
        prepare(path, None, Settings(format="jsonl"))


def test_sets_without_a_split_are_measured_in_folds(tmp_path: Path) -> None:
    """Of SentEval: MR and its like by their names alone; a class and a text of anybody else may be clusters."""
    path = put(tmp_path, PUBLISHED_FILES["MR of SentEval"])
    assert prepare(path, None, Settings())[1].folds == 10
    assert prepare(path, None, Settings(folds=2))[1].folds == 2
    assert prepare(path, None, Settings(train=path))[1].folds is None
    assert prepare(path, "clustering", Settings())[0] == "clustering"


def test_examples() -> None:
    pair = (["a", "b"], ["c", "d"])
    assert recognise(Examples("made", pair, scores=np.ones(2)), Settings())[0] == "sts"
    assert recognise(Examples("made", pair, labels=np.array([0, 1])), Settings())[0] == "pairs"
    assert recognise(Examples("made", pair, ("en", "ko")), Settings())[0] == "translation"
    with pytest.raises(InputError, match=r"give --kind .*translation, if the second text translates the first"):
        recognise(Examples("made", pair), Settings())
    with pytest.raises(InputError, match="give --kind"):
        recognise(Examples("made", pair[:1], labels=np.array([0, 1])), Settings())


def test_standard_input_needs_a_kind() -> None:
    with pytest.raises(InputError, match="Standard input can be read only once"):
        recognise("-", Settings())
