"""Descriptions of models: fingerprints that differ wherever vectors do, and nowhere else; limits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.errors import InputError
from tests.checkpoint import folders
from tests.checkpoint.folders import edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
CHANGES: dict[str, dict[str, Any]] = {
    "config.json": {"num_attention_heads": 2, "hidden_act": "relu", "layer_norm_eps": 0.1},
    "1_Pooling/config.json": {"pooling_mode": "cls", "include_prompt": False},
    "2_Dense/config.json": {"activation_function": "torch.nn.modules.linear.Identity", "use_residual": True},
    "sentence_bert_config.json": {"max_seq_length": 7, "do_lower_case": True},
}


def test_the_fingerprint_sees_what_changes_vectors(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert", dense=32), tmp_path / "model")
    tokenizer = folders.read(folder / "tokenizer.json")
    tokenizer["normalizer"]["lowercase"] = False
    folders.write(folder / "tokenizer.json", tokenizer)
    seen = {BiEncoder.load(folder).fingerprint}
    for name, changes in CHANGES.items():
        text = (folder / name).read_text(encoding="utf-8")
        for key, value in changes.items():
            edit(folder / name, **{key: value})
            seen.add(BiEncoder.load(folder).fingerprint)
            (folder / name).write_text(text, encoding="utf-8")
    assert len(seen) == 1 + sum(map(len, CHANGES.values()))
    assert BiEncoder.load(folder).fingerprint in seen


def test_the_fingerprint_does_not_see_the_rest(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert"), tmp_path / "elsewhere")
    edit(folder / "config.json", transformers_version="1.2", attention_probs_dropout_prob=0.5)
    edit(folder / "config_sentence_transformers.json", prompts={"query": "q: "})
    assert BiEncoder.load(folder).fingerprint == BiEncoder.load(make("bert")).fingerprint
    assert BiEncoder.load(folder, dtype="bfloat16").fingerprint == BiEncoder.load(folder).fingerprint


def test_scorers(make: Make, tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    scorer.save(tmp_path / "saved")
    assert CrossEncoder.load(tmp_path / "saved").fingerprint == scorer.fingerprint
    assert CrossEncoder.load(make("bert", kind="classifier", num_labels=3)).fingerprint != scorer.fingerprint


def test_info(make: Make) -> None:
    facts = BiEncoder.load(make("bert", dense=24)).info()
    assert (facts["architecture"], facts["layers"], facts["width"], facts["heads"]) == ("bert", 3, 32, 4)
    assert (facts["dimension"], facts["vocabulary"], facts["engine"]) == (24, 400, "munjang (packed)")
    assert facts["modules"] == ["Dense", "Normalize"]


@pytest.mark.parametrize("limit", [0, 2, 129, -1, 2.5, "7", True])
def test_limits_that_can_not_be(make: Make, limit: Any) -> None:
    model = BiEncoder.load(make("bert"))
    with pytest.raises(InputError, match="max_length"):
        model.max_length = limit
    assert model.max_length == 100
    model.max_length = 3
    assert np.isfinite(model.encode(["a longer text", ""])).all()
