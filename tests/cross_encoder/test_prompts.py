"""Prompts go before the first text, as the incumbent's do."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import CrossEncoder as TheirCross
from torch import nn

from munjang import CrossEncoder
from munjang.errors import InputError
from tests.cross_encoder.given import PAIRS


@pytest.fixture(scope="module")
def prompted(make: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder by sentence-transformers with a default prompt, another one, and an empty one."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    prompts = {"ask": "quick brown: ", "other": "나는 ", "plain": ""}
    theirs = TheirCross(str(make("bert", kind="classifier", num_labels=1)), device="cpu", prompts=prompts)
    theirs.default_prompt_name = "ask"
    theirs.save(str(folder), create_model_card=False)
    return folder


@pytest.mark.parametrize(
    "options", [{}, {"prompt_name": "other"}, {"prompt": "my own: "}, {"prompt": ""}, {"prompt_name": "plain"}]
)
def test_prompts_like_the_incumbent(prompted: Path, options: dict[str, str]) -> None:
    ours, theirs = CrossEncoder.load(prompted), TheirCross(str(prompted), device="cpu")
    expected = theirs.predict(PAIRS, activation_fn=nn.Identity(), **options)
    found = ours.predict(PAIRS, activation="Identity", **options)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    other = ours.predict(PAIRS, activation="Identity", prompt="something else: ")
    assert np.abs(other - found).max() > 1e-2  # or nothing would be seen here
    documents = [document for _, document in PAIRS]
    hits, there = ours.rank("fox", documents, **options), theirs.rank("fox", documents, **options)
    assert [hit.index for hit in hits] == [hit["corpus_id"] for hit in there]
    np.testing.assert_allclose([hit.score for hit in hits], [hit["score"] for hit in there], atol=1e-5)
    assert [hit.text for hit in hits] == [documents[hit.index] for hit in hits]


def test_a_prompt_goes_before_the_first_text(prompted: Path) -> None:
    scorer = CrossEncoder.load(prompted)
    put = scorer.predict([("quick brown: " + a, b) for a, b in PAIRS], prompt="")
    np.testing.assert_allclose(scorer.predict(PAIRS), put, atol=1e-6)
    assert scorer.predict(PAIRS[0]) == pytest.approx(put[0], abs=1e-6)
    many = scorer.rank_many(["fox", "dog"], [["a", "b"], ["c"]], prompt_name="other")
    assert [hit.text for hit in many[1]] == ["c"]
    assert many[1][0].score == pytest.approx(scorer.predict(("나는 dog", "c"), prompt=""), abs=1e-6)


def test_prompts_are_settings(prompted: Path, tmp_path: Path) -> None:
    scorer = CrossEncoder.load(prompted)
    assert (scorer.info()["prompts"], scorer.default_prompt_name) == (scorer.prompts, "ask")
    scorer.prompts, scorer.default_prompt_name = {"mine": "over: ", "none": ""}, "mine"
    scorer.save(tmp_path / "saved")
    expected = scorer.predict([("over: " + a, b) for a, b in PAIRS], prompt="")
    for again in (CrossEncoder.load(tmp_path / "saved"), pickle.loads(pickle.dumps(scorer))):
        assert (again.prompts, again.default_prompt_name) == ({"mine": "over: ", "none": ""}, "mine")
        np.testing.assert_allclose(again.predict(PAIRS), expected, atol=1e-6)


def test_prompts_refused(prompted: Path, scorer: CrossEncoder) -> None:
    model = CrossEncoder.load(prompted)
    for call, message in (
        (lambda: model.predict(PAIRS, prompt_name="axe"), r"Unknown prompt 'axe'; choose from ask, other, plain\."),
        (lambda: model.rank("a", ["b"], prompt_name="axe"), "Unknown prompt 'axe'"),
        (lambda: model.predict(PAIRS, prompt="a", prompt_name="ask"), "not both"),
        (lambda: model.predict(PAIRS, prompt=3), "prompt should be a string, not int"),
        (lambda: scorer.predict(PAIRS, prompt_name="ask"), "this model has none"),
    ):
        with pytest.raises(InputError, match=message):
            call()
