"""The kind of evaluation that data is for: by its columns and classes; what is not clear is asked for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.recognise import recognise


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
    ],
)
def test_asked_for(write: Callable[..., Path], lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recognise(write("data.tsv", *lines), Settings())


def test_examples() -> None:
    pair = (["a", "b"], ["c", "d"])
    assert recognise(Examples("made", pair, scores=np.ones(2)), Settings())[0] == "sts"
    assert recognise(Examples("made", pair, labels=np.array([0, 1])), Settings())[0] == "pairs"
    assert recognise(Examples("made", pair), Settings())[0] == "translation"
    with pytest.raises(InputError, match="give --kind"):
        recognise(Examples("made", pair[:1], labels=np.array([0, 1])), Settings())


def test_standard_input_needs_a_kind() -> None:
    with pytest.raises(InputError, match="Standard input can be read only once"):
        recognise("-", Settings())
