"""Weights in between, and in parts: nothing of a model may get lost on the way."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint.prune import prune
from munjang.errors import InputError
from recipes.ko_en_small.words import korean_characters, pieces, widen
from recipes.weights import added, blend, difference, mixed, pack, shares, unpack

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
    blend(tiny_bert, one, other, other, tmp_path / "blend", share=0.5)  # one of them twice
    found = load_file(tmp_path / "blend/model.safetensors")
    assert all(torch.allclose(found[name], start[name] + 0.5 / 3, atol=1e-6) for name in found)


def test_a_blend_by_parts_of_the_network(tiny_bert: Path, tmp_path: Path) -> None:
    """Words stay, each of the three layers goes its own way."""
    one = moved(tiny_bert, tmp_path / "one", 0.2)
    blend(tiny_bert, one, tmp_path / "blend", share=(0.0, 0.5, 1.0, 1.5))
    start, found = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "blend"))
    for name in found:
        share = next((share for layer, share in enumerate((0.5, 1.0, 1.5)) if f"layer.{layer}." in name), 0.0)
        assert torch.allclose(found[name], start[name] + 0.2 * share, atol=1e-6)


def test_a_mix_goes_several_ways(tiny_bert: Path, tmp_path: Path) -> None:
    one, other = moved(tiny_bert, tmp_path / "one", 0.2), moved(tiny_bert, tmp_path / "other", 0.4)
    mixed(tiny_bert, [(one, [0.5]), (other, [0.0, -0.1, 0.0, 0.0])], tmp_path / "mix")
    start, found = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "mix"))
    for name in found:
        assert torch.allclose(found[name], start[name] + (0.06 if "layer.0." in name else 0.1), atol=1e-6)
    mixed(one, [], tmp_path / "none")
    assert all(
        torch.equal(*each)
        for each in zip(
            *(load_file(tmp_path / name / "model.safetensors").values() for name in ("one", "none")), strict=True
        )
    )


def test_a_blend_of_what_is_not_there(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing holds no model\.safetensors"):
        blend(tiny_bert, tmp_path / "missing", tmp_path / "blend", share=0.5)
    with pytest.raises(InputError, match="no part of one"):
        added(tiny_bert, tmp_path, "one", tmp_path / "again")
    assert not list(tmp_path.iterdir())


def test_a_difference_brings_the_model_back(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files of a few bytes each; a change of any size in any row is 127 steps at most."""
    monkeypatch.setattr("recipes.weights.PART_BYTES", 40_000)
    model = BiEncoder.load(tiny_bert, "cpu", "float32")
    model.save(tmp_path / "start")
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.05)
    model.save(tmp_path / "one")
    difference(tmp_path / "start", tmp_path / "one", tmp_path / "parts")
    files = sorted((tmp_path / "parts").iterdir())
    assert len(files) > 1
    assert max(path.stat().st_size for path in files) == 40_000
    assert sum(path.stat().st_size for path in files) < 0.4 * (tmp_path / "one/model.safetensors").stat().st_size
    added(tmp_path / "start", tmp_path / "parts", "one", tmp_path / "again")
    before, after, again = (load_file(tmp_path / name / "model.safetensors") for name in ("start", "one", "again"))
    for name, tensor in after.items():
        largest = (tensor - before[name]).abs().max()
        assert (again[name] - tensor).abs().max() <= largest / 127 / 2 + 1e-6
    vectors = [BiEncoder.load(tmp_path / name, "cpu", "float32").encode(TEXTS) for name in ("one", "again")]
    assert np.abs(vectors[0] - vectors[1]).max() < 0.01


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
