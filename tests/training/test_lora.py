"""Adapters: what they change, and that a run with them goes on after a stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, train
from munjang.data.examples import Examples
from tests.training.runs import TEXTS, alike, changed, close, pairs, quiet, weights


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


def test_lora_changes_nothing_but_what_has_adapters(model: BiEncoder, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    before, output = weights(model), tmp_path / "model"
    train(model, pairs(12), "in_batch", quiet(output=str(output), epochs=3, learning_rate=1e-2, lora_rank=2))
    after = weights(model)
    moved = changed(before, after)
    assert after.keys() == before.keys()
    assert {name.split(".")[-2] for name in moved} == {"qkv", "out", "down"}
    assert all(name.endswith(".weight") for name in moved)
    for name in moved:  # of rank 2: the third singular value is nothing beside the first
        values = torch.linalg.svdvals((after[name] - before[name]).float())
        assert values[2] < 1e-4 * values[0], name
    assert "lora" not in str(model.network)
    assert close(BiEncoder.load(output, "cpu").encode(TEXTS), model.encode(TEXTS))
    theirs = SentenceTransformer(str(output), device="cpu").encode(TEXTS)
    assert np.abs(theirs - model.encode(TEXTS)).max() < 1e-5


def test_lora_goes_on_after_a_stop(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    settings: dict[str, Any] = {"lora_rank": 2, "max_steps": 4, "learning_rate": 1e-2, "save_every": 2}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(BiEncoder.load(tiny_bert, "cpu"), pairs(8), "in_batch", quiet(output=str(whole), **settings))
    config = quiet(output=str(cut), **settings)
    _stop_at(BiEncoder.load(tiny_bert, "cpu"), pairs(8), 3, config)
    train(BiEncoder.load(tiny_bert, "cpu"), pairs(8), "in_batch", quiet(output=str(cut), resume=True, **settings))
    found, wanted = load_file(cut / "model.safetensors"), load_file(whole / "model.safetensors")
    assert alike(found, wanted)


def _stop_at(model: BiEncoder, rows: Examples, update: int, config: Any) -> None:
    """Ctrl-C when the log has that update."""
    from munjang.training import run

    log = run.Run.log

    def stopping(self: run.Run, line: Any) -> None:
        log(self, line)
        if line["step"] == update:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run.Run, "log", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(model, rows, "in_batch", config)
