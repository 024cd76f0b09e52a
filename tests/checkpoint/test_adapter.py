"""Folders of LoRA adapters, against peft's own merging."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from munjang import BiEncoder
from munjang.errors import CheckpointError, UnsupportedModel
from tests.checkpoint import folders
from tests.checkpoint.folders import TEXTS, difference

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"target_modules": ["query", "value"]},
    "stabilized rank": {"target_modules": ["query", "dense"], "use_rslora": True},
    "patterns": {
        "target_modules": ["query", "value"],
        "rank_pattern": {"query": 2},
        "alpha_pattern": {"layer.0.attention.self.query": 32},
    },
    "embeddings and biases": {"target_modules": ["word_embeddings", "key"], "bias": "lora_only"},
}


def adapter(base: Path, folder: Path, load: Any = AutoModel, **options: Any) -> Path:
    """Write an adapter that does something, and the merged model beside it."""
    torch.manual_seed(5)
    config = peft.LoraConfig(r=4, lora_alpha=16, init_lora_weights=False, **options)
    model = peft.get_peft_model(load.from_pretrained(base), config)
    model.peft_config["default"].base_model_name_or_path = str(base)
    model.save_pretrained(folder)
    merged = folders.copy(base, folder.with_name("merged"))
    model.merge_and_unload().save_pretrained(merged)
    return folder


@pytest.mark.parametrize("name", OPTIONS)
def test_an_adapter_is_merged_as_peft_merges_it(make: Make, tmp_path: Path, name: str) -> None:
    base = make("bert")
    folder = folders.copy(base, tmp_path / "adapter")
    for file in ("model.safetensors", "config.json"):
        (folder / file).unlink()
    adapter(base, folder, **OPTIONS[name])
    ours, plain = BiEncoder.load(folder), BiEncoder.load(base)
    assert difference(ours.encode(TEXTS), BiEncoder.load(tmp_path / "merged").encode(TEXTS)) < 1e-5
    assert difference(ours.encode(TEXTS), plain.encode(TEXTS)) > 1e-3
    ours.save(tmp_path / "saved")  # whole
    assert difference(BiEncoder.load(tmp_path / "saved").encode(TEXTS), ours.encode(TEXTS)) < 1e-6


def test_an_adapter_alone_takes_the_tokenizer_of_its_base(make: Make, tmp_path: Path) -> None:
    folder = adapter(make("bert"), tmp_path / "adapter", target_modules=["query"])
    for name in ("modules.json", "config_sentence_transformers.json"):
        (tmp_path / "merged" / name).unlink(missing_ok=True)
    for inner in (tmp_path / "merged").glob("[0-9]_*"):
        folders.shutil.rmtree(inner)
    expected = BiEncoder.load(tmp_path / "merged").encode(TEXTS)
    assert difference(BiEncoder.load(folder).encode(TEXTS), expected) < 1e-5


def test_a_missing_base_and_other_kinds(make: Make, tmp_path: Path) -> None:
    folder = adapter(make("bert"), tmp_path / "adapter", target_modules=["query"])
    folders.edit(folder / "adapter_config.json", base_model_name_or_path=str(tmp_path / "nothing"))
    with pytest.raises(CheckpointError, match="There is no folder"):
        BiEncoder.load(folder)
    folders.edit(folder / "adapter_config.json", base_model_name_or_path=str(make("bert")), use_dora=True)
    with pytest.raises(UnsupportedModel, match="kind 'use_dora'; LoRA is merged"):
        BiEncoder.load(folder)
