"""The model as a thing: threads, pickled, created, saved, described."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from munjang import CrossEncoder
from munjang.errors import CheckpointError, InputError, MunjangError
from munjang.text.lookup.lookup import WholeTexts
from tests.cross_encoder.given import PAIRS


def test_many_threads_at_once(scorer: CrossEncoder) -> None:
    parts = [PAIRS[start:] + PAIRS[:start] for start in range(20)] * 3
    expected = scorer.predict(PAIRS, activation="Identity")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: scorer.predict(part, activation="Identity", batch_tokens=60), parts))
    for number, scores in enumerate(found):
        np.testing.assert_allclose(scores, np.roll(expected, -number), atol=2e-5 * np.abs(expected).max())


def test_a_model_pickles_as_its_path_and_settings(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make("bert", kind="classifier", num_labels=1)
    monkeypatch.chdir(folder.parent)
    scorer = CrossEncoder.load(folder.name, threads=1)
    scorer.max_length, scorer.activation = 90, nn.Tanh()
    data = pickle.dumps(scorer)
    assert len(data) < 4000
    monkeypatch.chdir("/")  # another process may stand elsewhere
    again = pickle.loads(data)
    assert (again.max_length, type(again.activation)) == (90, nn.Tanh)
    assert again.fingerprint == scorer.fingerprint
    np.testing.assert_array_equal(again.predict(PAIRS), scorer.predict(PAIRS))
    with pytest.raises(MunjangError, match="save it and load it from there"):
        pickle.dumps(CrossEncoder.create(make("bert")))


def test_create_save_and_load(make: Callable[..., Path], tmp_path: Path, unbundled: Path) -> None:
    torch.manual_seed(0)
    scorer = CrossEncoder.create(make("bert"), num_labels=2)
    assert scorer.predict(PAIRS).shape == (20, 2)
    scorer.save(tmp_path / "saved")
    again = CrossEncoder.load(tmp_path / "saved")
    np.testing.assert_allclose(again.predict(PAIRS), scorer.predict(PAIRS), atol=1e-6)
    assert again.fingerprint == scorer.fingerprint
    with pytest.raises(InputError, match="num_labels must be at least 1, not 0"):
        CrossEncoder.create(make("bert"), num_labels=0)
    with pytest.raises(CheckpointError, match="No re-ranker is bundled"):
        CrossEncoder.load()


def test_ids_that_the_model_has_no_row_for(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    scorer.tokenizer.rust.add_tokens(["brandnew"])
    scorer.tokenizer.tokenize_bodies = WholeTexts(scorer.tokenizer.rust)
    with pytest.raises(CheckpointError, match=r"gives the id .* a token was added without a row"):
        scorer.predict(("a brandnew word", "b"))


def test_info(labels: CrossEncoder) -> None:
    facts = labels.info()
    assert (facts["kind"], facts["labels"], facts["scale"]) == ("cross-encoder", 3, "logit")
