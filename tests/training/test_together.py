"""Batches of an update that go through the network at once: the same losses and weights as one after the other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.errors import InputError
from munjang.training.step import Step
from tests.training.made import examples
from tests.training.runs import losses, pairs, quiet


def run(model: Any, datasets: list[Dataset], output: Path, **settings: Any) -> tuple[list[float], dict[str, Any]]:
    """Losses, and the weights in the end."""
    config = quiet(
        output=str(output), accumulate=len(datasets), mixing="round_robin", max_steps=3, warmup=0.0, **settings
    )
    train(model, datasets, config=config)
    return losses(output), {name: value.detach().clone() for name, value in model.network.named_parameters()}


def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts go through the network each time."""
    counts: list[int] = []
    forward = Step._forward

    def counted(self: Step, batch: Any, needs: str) -> torch.Tensor:
        counts.append(len(batch.lengths))
        return forward(self, batch, needs)

    monkeypatch.setattr(Step, "_forward", counted)
    return counts


def same(one: tuple[list[float], dict[str, Any]], other: tuple[list[float], dict[str, Any]]) -> None:
    assert one[0] == pytest.approx(other[0], rel=1e-5)
    for name, value in one[1].items():
        if not name.endswith("qkv.bias"):  # a key's bias changes no attention: Adam moves it by rounding noise
            assert (value - other[1][name]).abs().max() < 2e-5, name


def test_bi_encoder(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Separable and not, with a head and without, two and three columns, another batch size each; Matryoshka."""
    datasets = [
        Dataset(data=examples(12), objective="classification", batch_size=4),
        Dataset(data=examples(12), objective="cosent", batch_size=6),
        Dataset(data=pairs(9, 3), objective="in_batch", batch_size=3),
        Dataset(data=pairs(8), objective="in_batch_kl", batch_size=4, teacher=BiEncoder.load(tiny_bert, "cpu")),
    ]
    settings: Any = {"dropout": 0.0, "learning_rate": 1e-4, "matryoshka": (32, 8)}
    apart = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "apart", **settings)
    counts = passes(monkeypatch)
    joined = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "joined", together=True, **settings)
    same(joined, apart)
    assert counts == [8 + 12 + 9 + 8] * 3


def test_a_budget_that_holds_two(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit at once goes in groups; a batch that is in micro-batches by itself goes alone."""
    datasets = [Dataset(data=examples(6), objective="cosent", batch_size=size) for size in (2, 2, 6)]
    apart = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "apart", dropout=0.0, batch_tokens=150)
    counts = passes(monkeypatch)
    both: Any = {"dropout": 0.0, "batch_tokens": 150, "together": True}
    joined = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "joined", **both)
    same(joined, apart)
    assert 8 in counts
    assert len(counts) > 3 * 2


def test_cross_encoder_and_prompts(make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token types, two kinds of lists."""
    folder = make("bert", kind="cross", num_labels=1)
    datasets = [
        Dataset(data=examples(8, labels=2), objective="cross_bce", batch_size=4),
        Dataset(data=pairs(8, 3), objective="cross_in_batch", batch_size=2, options={"num_sampled": 0}),
    ]
    settings: Any = {"dropout": 0.0, "learning_rate": 1e-4}
    apart = run(CrossEncoder.load(folder, "cpu"), datasets, tmp_path / "apart", **settings)
    counts = passes(monkeypatch)
    joined = run(CrossEncoder.load(folder, "cpu"), datasets, tmp_path / "joined", together=True, **settings)
    same(joined, apart)
    assert counts == [4 + 4] * 3


def test_skipped_prompts(tiny_bert: Path, tmp_path: Path) -> None:
    """One dataset with a prompt that pooling leaves out, one without."""
    model = BiEncoder.load(tiny_bert, "cpu")
    datasets = [
        Dataset(data=pairs(6), objective="in_batch", batch_size=3, prompts=("query: ", "")),
        Dataset(data=pairs(6), objective="in_batch", batch_size=3),
    ]
    apart = run(model, datasets, tmp_path / "apart", dropout=0.0)
    joined = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "joined", dropout=0.0, together=True)
    same(joined, apart)


def test_it_repeats_itself(tiny_bert: Path, tmp_path: Path) -> None:
    """With dropout: the same run twice, bit for bit."""
    datasets = [Dataset(data=pairs(8), objective="in_batch", batch_size=4) for _ in range(2)]
    settings: Any = {"dropout": 0.2, "together": True}
    whole = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "whole", **settings)
    again = run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "again", **settings)
    assert whole[0] == again[0]
    assert all(torch.equal(value, again[1][name]) for name, value in whole[1].items())


def test_no_two_passes_of_an_update_share_their_dropout(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups and batches that go alone draw from different numbers."""
    numbers: list[int] = []
    outputs = Step._outputs

    def noted(self: Step, place: int, *given: Any) -> torch.Tensor:
        if place == 0:
            numbers.append(self.number)
        return outputs(self, place, *given)

    monkeypatch.setattr(Step, "_outputs", noted)
    # the third is in micro-batches by itself; the fourth and fifth are of one group again
    sizes = (2, 2, 8, 2, 2)
    datasets = [Dataset(data=examples(8), objective="regression", batch_size=size) for size in sizes]
    run(BiEncoder.load(tiny_bert, "cpu"), datasets, tmp_path / "joined", batch_tokens=120, together=True)
    assert len(numbers) > 3 * 2
    assert len(set(numbers)) == len(numbers)


def test_what_it_does_not_go_with() -> None:
    with pytest.raises(InputError, match="together keeps the activations"):
        quiet(together=True, gradient_cache=True)
