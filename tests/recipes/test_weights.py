"""Mixes of weights: each tensor as far from the start as asked."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from munjang import BiEncoder
from munjang.errors import InputError
from recipes.weights import blend, mixed, weights_by_name

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
    blend(tiny_bert, one, other, tmp_path / "blend", weight=0.5)
    start, found = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "blend"))
    assert all(torch.allclose(found[name], start[name] + 0.15, atol=1e-6) for name in found)  # half of the mean of both
    assert BiEncoder.load(tmp_path / "blend", "cpu").encode(TEXTS).shape == (2, 32)
    blend(tiny_bert, one, other, other, tmp_path / "blend", weight=0.5)  # one of them twice
    found = load_file(tmp_path / "blend/model.safetensors")
    assert all(torch.allclose(found[name], start[name] + 0.5 / 3, atol=1e-6) for name in found)


def test_a_blend_by_parts_of_the_network(tiny_bert: Path, tmp_path: Path) -> None:
    """Words stay, each of the three layers goes its own way."""
    one = moved(tiny_bert, tmp_path / "one", 0.2)
    blend(tiny_bert, one, tmp_path / "blend", weight=(0.0, 0.5, 1.0, 1.5))
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
        blend(tiny_bert, tmp_path / "missing", tmp_path / "blend", weight=0.5)
    assert not list(tmp_path.iterdir())


def test_shares_of_equal_parts() -> None:
    names = ["embeddings.word_embeddings.weight", *(f"encoder.layer.{number}.output.weight" for number in range(12))]
    assert list(weights_by_name(names, (1.0, 0.9, 0.6, 0.5)).values()) == [1.0, *[0.9] * 4, *[0.6] * 4, *[0.5] * 4]
    assert set(weights_by_name(names, [0.7]).values()) == {0.7}


def test_a_blend_that_fails_leaves_no_folder(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    one = moved(tiny_bert, tmp_path / "one", 0.2)
    monkeypatch.setattr("recipes.weights.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        blend(tiny_bert, one, tmp_path / "blend", weight=0.5)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
