"""Weights in between, and in parts: nothing of a model may get lost on the way."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint.prune import prune
from recipes.ko_en_small.words import korean_characters, pieces, widen
from recipes.weights import blend, pack, shares, unpack

TEXTS = ["a cat sleeps", "고양이가 잔다"]


def moved(folder: Path, target: Path, by: float) -> Path:
    model = BiEncoder.load(folder, "cpu", "float32")
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.add_(by)
    model.save(target)
    return target


def test_a_blend_lies_between(tiny_bert: Path, tmp_path: Path) -> None:
    one, other = moved(tiny_bert, tmp_path / "one", 0.2), moved(tiny_bert, tmp_path / "other", 0.4)
    blend(tiny_bert, one, other, tmp_path / "blend", share=0.5)
    start, found = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "blend"))
    assert all(torch.allclose(found[name], start[name] + 0.15, atol=1e-6) for name in found)  # half of the mean of both
    assert BiEncoder.load(tmp_path / "blend", "cpu").encode(TEXTS).shape == (2, 32)


def test_a_blend_by_parts_of_the_network(tiny_bert: Path, tmp_path: Path) -> None:
    """Words stay, each of the three layers goes its own way."""
    one = moved(tiny_bert, tmp_path / "one", 0.2)
    blend(tiny_bert, one, tmp_path / "blend", share=(0.0, 0.5, 1.0, 1.5))
    start, found = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "blend"))
    for name in found:
        share = next((share for layer, share in enumerate((0.5, 1.0, 1.5)) if f"layer.{layer}." in name), 0.0)
        assert torch.allclose(found[name], start[name] + 0.2 * share, atol=1e-6)


def test_shares_of_equal_parts() -> None:
    names = ["embeddings.word_embeddings.weight", *(f"encoder.layer.{number}.output.weight" for number in range(12))]
    assert list(shares(names, (1.0, 0.9, 0.6, 0.5)).values()) == [1.0, *[0.9] * 4, *[0.6] * 4, *[0.5] * 4]
    assert set(shares(names, [0.7]).values()) == {0.7}


def test_a_blend_that_fails_leaves_no_folder(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    one = moved(tiny_bert, tmp_path / "one", 0.2)
    monkeypatch.setattr("recipes.weights.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        blend(tiny_bert, one, tmp_path / "blend", share=0.5)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("parts", [1, 3])
def test_packed_and_unpacked(make: Callable[..., Path], tmp_path: Path, parts: int) -> None:
    """A cross-encoder has weights in folders of its own: its head once stayed behind."""
    CrossEncoder.create(make("xlm-roberta"), num_labels=1, device="cpu", dtype="float32").save(tmp_path / "model")
    pack(tmp_path / "model", tmp_path / "parts", parts)
    unpack(tmp_path / "parts", tmp_path / "again")
    assert len(list((tmp_path / "parts").glob("part*"))) == parts
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    before, after = (CrossEncoder.load(tmp_path / name, "cpu").predict(pairs) for name in ("model", "again"))
    assert np.abs(before - after).max() < 1e-3  # half precision on the way


def test_characters_come_back(make: Callable[..., Path], tmp_path: Path) -> None:
    """A model that was pruned of a Korean character and moved since reads it again; what it learned stays."""
    full = make("xlm-roberta")
    encoder = BiEncoder.load(full, "cpu", "float32")
    characters = korean_characters(pieces(encoder))
    prune(encoder.model, TEXTS)
    encoder.save(tmp_path / "pruned")
    lost = [piece for piece in characters if piece not in pieces(encoder)]
    assert lost
    model = moved(tmp_path / "pruned", tmp_path / "trained", 0.05)
    widen(full, model, tmp_path / "wide")
    before, after = (BiEncoder.load(folder, "cpu", "float32") for folder in (model, tmp_path / "wide"))
    assert set(lost) <= pieces(after).keys()
    assert np.abs(before.encode(TEXTS) - after.encode(TEXTS)).max() < 1e-6
    start = BiEncoder.load(full, "cpu", "float32")
    rows = [each.network.state_dict()["encoder.embeddings.word.weight"] for each in (start, after)]
    places = [[pieces(each)[piece] for piece in lost] for each in (start, after)]
    assert torch.equal(rows[0][places[0]], rows[1][places[1]])
