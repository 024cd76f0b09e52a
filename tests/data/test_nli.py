import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.errors import InputError

NAMES = ("contradiction", "entailment", "neutral")


def test_every_premise_with_both_kinds() -> None:
    premises = ["p", "p", "p", "p", "q", "r"]
    hypotheses = ["yes", "maybe", "no", "yes again", "yes", "no"]
    rows = Examples("made up", (premises, hypotheses), labels=np.array([1, 2, 0, 1, 1, 0]), label_names=NAMES)
    found = triplets_of(rows)
    assert found.texts == (["p"], ["yes"], ["no"])
    assert found.columns == ("anchor", "positive", "negative")


def test_what_has_no_triplets() -> None:
    with pytest.raises(InputError, match="entailment"):
        triplets_of(Examples("numbers", (["p"], ["h"]), labels=np.array([1])))
    with pytest.raises(InputError, match="both kinds"):
        triplets_of(Examples("one", (["p"], ["h"]), labels=np.array([1]), label_names=NAMES))
