"""The contract of every pooling: shape, fp32, agreement with a naive version, empty texts, skipped prompts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.nn.onnx.encoder import MASK
from munjang.nn.onnx.graph import MAX_FILE_BYTES, SKIP, Graph, Outputs
from munjang.nn.onnx.outputs import pooled
from munjang.nn.onnx.session import open_session
from munjang.nn.pooling import POOLERS, check, pool
from munjang.text.packing import pack

NAIVE = {
    "cls": lambda rows, places: rows[0],
    "lasttoken": lambda rows, places: rows[-1],
    "max": lambda rows, places: rows.max(0).values,
    "mean": lambda rows, places: rows.mean(0),
    "mean_sqrt_len_tokens": lambda rows, places: rows.sum(0) / len(rows) ** 0.5,
    "weightedmean": lambda rows, places: (rows * (places + 1)[:, None]).sum(0) / (places + 1).sum(),
}
LENGTHS = [[3], [4, 1, 7], [0, 2, 0, 0, 5, 0], [600, 2]]


def naive(tokens_TD: Tensor, lengths: list[int], skip: list[int], mode: str) -> Tensor:
    out, start = [], 0
    for length, skipped in zip(lengths, skip, strict=True):
        rows, places = tokens_TD[start : start + length].double()[skipped:], torch.arange(length)[skipped:].double()
        out.append(NAIVE[mode](rows, places) if len(rows) else torch.zeros(tokens_TD.shape[1]).double())
        start += length
    return torch.stack(out)


def tokens_of(lengths: list[int]) -> Tensor:
    return (
        torch.randn(sum(lengths), 5, generator=torch.Generator().manual_seed(0)) - 1
    )  # mostly below zero: max is not 0


def packed(lengths: list[int], skip: list[int] | None = None):
    sizes = np.array(lengths, np.int64)
    return pack(np.zeros(sum(lengths), np.int32), sizes, skip=None if skip is None else np.array(skip, np.int64))


def test_there_is_a_naive_version_of_each() -> None:
    assert set(NAIVE) == set(POOLERS)


@pytest.mark.parametrize("mode", POOLERS)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_against_the_naive_version(mode: str, lengths: list[int], dtype: torch.dtype) -> None:
    tokens = tokens_of(lengths).to(dtype)
    found = pool(tokens, packed(lengths), [mode])
    assert found.dtype == torch.float32
    assert found.shape == (len(lengths), 5)
    # bf16 goes in, but nothing is added up in it
    assert (found - naive(tokens, lengths, [0] * len(lengths), mode)).abs().max() < 2e-5


@pytest.mark.parametrize("mode", POOLERS)
def test_skipped_prompts(mode: str) -> None:
    lengths, skip = [5, 2, 3, 0, 1], [2, 2, 0, 2, 4]  # the second and last are nothing but prompt
    tokens = tokens_of(lengths)
    assert (pool(tokens, packed(lengths, skip), [mode]) - naive(tokens, lengths, skip, mode)).abs().max() < 1e-6
    assert torch.equal(pool(tokens, packed(lengths, [0] * 5), [mode]), pool(tokens, packed(lengths), [mode]))


@pytest.mark.parametrize("mode", POOLERS)
def test_the_same_in_an_onnx_graph(mode: str, tmp_path: Path) -> None:
    """A padded batch whose token vectors are its ids in thousandths, times 1, 2, ... 5; with and without prompts."""
    pytest.importorskip("onnx")
    lengths, skip = [5, 2, 3, 1], [2, 2, 0, 4]
    ids = np.random.default_rng(0).integers(-3000, 500, (4, 5))
    mask = (np.arange(5) < np.array(lengths)[:, None]).astype(np.int64)
    scales = np.arange(1, 6, dtype=np.float32)
    tokens = torch.from_numpy((ids[mask > 0][:, None] / 1000 * scales).astype(np.float32))
    for skips, skipped in ((True, skip), (False, [0] * 4)):
        graph = Graph()
        values = graph.call("Cast", "input_ids", to=graph.onnx.TensorProto.FLOAT)
        values = graph.call("Div", graph.call("Unsqueeze", values, graph.whole(2)), graph.number(1000.0))
        states = graph.call("Mul", values, graph.weight("scales", scales))
        inputs = {"input_ids": ids, MASK: mask, **({SKIP: np.array(skip)} if skips else {})}
        outputs: Outputs = {"out": (pooled(graph, states, [mode], skips), [5])}
        graph.save(tmp_path / "graph.onnx", list(inputs), outputs, MAX_FILE_BYTES)
        found = open_session(tmp_path / "graph.onnx", 1).run(["out"], inputs)[0]
        assert np.abs(found - naive(tokens, lengths, skipped, mode).numpy()).max() < 1e-5


@pytest.mark.parametrize("mode", POOLERS)
@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0]], ids=str)
def test_nothing_to_pool(mode: str, lengths: list[int]) -> None:
    found = pool(torch.zeros(0, 5), packed(lengths), [mode])
    assert found.shape == (len(lengths), 5)
    assert (found == 0).all()


@pytest.mark.parametrize("mode", POOLERS)
def test_gradients(mode: str) -> None:
    lengths, skip = [4, 0, 3], [1, 0, 0]
    ours, theirs = (tokens_of(lengths).double().requires_grad_() for _ in range(2))
    weights = torch.arange(15.0).view(3, 5)
    (pool(ours, packed(lengths, skip), [mode]) * weights).sum().backward()
    (naive(theirs, lengths, skip, mode) * weights).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.isfinite(ours.grad).all()
    assert (ours.grad - theirs.grad).abs().max() < 1e-5


def test_side_by_side() -> None:
    tokens, batch = tokens_of([4, 2]), packed([4, 2])
    whole = pool(tokens, batch, ["cls", "mean", "max"])
    assert torch.equal(whole, torch.cat([pool(tokens, batch, [mode]) for mode in ("cls", "mean", "max")], 1))


def test_neighbours_do_not_change_a_result() -> None:
    tokens = tokens_of([7, 3])
    for mode in POOLERS:
        alone = pool(tokens[7:], packed([3]), [mode])
        assert torch.equal(pool(tokens, packed([7, 3]), [mode])[1:], alone)


def test_unknown_modes() -> None:
    assert check(["mean", "cls"]) == ("mean", "cls")
    with pytest.raises(InputError, match=f"Unknown pooling 'avg'; choose from {', '.join(sorted(POOLERS))}"):
        check(["avg"])
    with pytest.raises(InputError, match="Did you mean 'weightedmean'"):
        check(["weighted_mean"])
