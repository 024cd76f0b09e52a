"""Late interaction and sparse vectors are learned: by contrast and from a teacher, whatever the micro-batches."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang import BiEncoder, MultiVectorEncoder, SparseEncoder, TrainConfig, evaluate, train
from munjang.cli import main
from munjang.data.examples import Examples
from munjang.errors import InputError, UnsupportedModel
from munjang.evaluation.kinds.corpus import Retrieval
from tests.texts import ENGLISH
from tests.token_models import make_inference_free, make_late, make_splade

CONFIG: dict[str, Any] = {"learning_rate": 3e-3, "batch_size": 8, "seed": 3, "quiet": True, "dropout": 0.0}
WORDS = sorted({word.lower().strip(".,!?") for text in ENGLISH for word in text.split() if word.isascii()})[:40]


def pairs(number: int = 24) -> Examples:
    """A query of two words, and a document with them among others."""
    drawn = random.Random(0)
    rows = [drawn.sample(WORDS, 6) for _ in range(number)]
    return Examples("pairs", ([" ".join(row[:2]) for row in rows], [" ".join(row) for row in rows]))


def with_scores(examples: Examples) -> Examples:
    queries, documents = examples.texts
    scores = np.tile(np.array([5.0, 0.0], np.float32), (len(queries), 1))
    return Examples("scored", (queries, documents, [*documents[1:], documents[0]]), scores=scores)


def set_of(examples: Examples) -> Retrieval:
    corpus = {f"d{row}": text for row, text in enumerate(examples.texts[1])}
    queries = {f"q{row}": text for row, text in enumerate(examples.texts[0])}
    return Retrieval("pairs", corpus, queries, {f"q{row}": {f"d{row}": 1.0} for row in range(len(queries))})


@pytest.mark.parametrize("objective", ["late_in_batch", "late_kl"])
def test_late_interaction_learns(objective: str, tmp_path: Path) -> None:
    model = MultiVectorEncoder.load(make_late(tmp_path / "model", prompts={}), "cpu", "float32")
    data = pairs()
    before = evaluate(model, set_of(data), "retrieval").metrics["mrr@10"]
    given = data if objective == "late_in_batch" else with_scores(data)
    train(model, given, objective, TrainConfig(epochs=8, output=str(tmp_path / "out"), **CONFIG))
    after = evaluate(model, set_of(data), "retrieval").metrics["mrr@10"]
    assert after > before + 0.1
    again = MultiVectorEncoder.load(tmp_path / "out", "cpu")
    np.testing.assert_allclose(again.encode_query("a word"), model.encode_query("a word"), atol=1e-4)
    assert "MultiVectorEncoder" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_sparse_vectors_learn_and_stay_sparse(tmp_path: Path) -> None:
    data, costs = pairs(), {}
    options = {"similarity": "dot", "temperature": 1}
    for flops in ((), (30.0, 30.0)):
        model = SparseEncoder.load(make_splade(tmp_path / f"model{len(flops)}"), "cpu", "float32")
        before = evaluate(model, set_of(data), "retrieval").metrics["mrr@10"]
        train(model, data, "in_batch", TrainConfig(epochs=8, flops=flops, **{**CONFIG, "learning_rate": 1e-3}), options)
        after = evaluate(model, set_of(data), "retrieval").metrics["mrr@10"]
        assert flops or after > before + 0.05
        costs[flops] = np.square(model.encode_document(data.texts[1]).to_dense().mean(0)).sum()
    assert costs[30.0, 30.0] < 0.9 * costs[()]


def test_micro_batches_change_nothing(tmp_path: Path) -> None:
    """The gradient cache gives token vectors the gradients of the whole batch."""
    folder, weights = make_late(tmp_path / "model", prompts={}, words=["."]), []
    for batch_tokens in (10_000, 60):
        model = MultiVectorEncoder.load(folder, "cpu", "float32")
        config = TrainConfig(max_steps=2, batch_tokens=batch_tokens, **CONFIG)
        train(model, pairs(), "late_in_batch", config)
        weights.append(torch.cat([_moved(name, each) for name, each in model.network.named_parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-5)


def _moved(name: str, parameter: torch.Tensor) -> torch.Tensor:
    """Leave out the biases of keys: softmax cancels them, so their gradients are rounding, which Adam scales up."""
    if not name.endswith("qkv.bias"):
        return parameter.detach().flatten()
    query, _, value = parameter.detach().chunk(3)
    return torch.cat([query, value])


def test_what_does_not_fit_is_refused(tmp_path: Path, make: Callable[..., Path]) -> None:
    late = MultiVectorEncoder.load(make_late(tmp_path / "late"), "cpu", "float32")
    with pytest.raises(InputError, match="trains a bi-encoder, this is a late-interaction model"):
        train(late, pairs(), "in_batch", TrainConfig(**CONFIG))
    with pytest.raises(InputError, match="trains a late-interaction model, this is a bi-encoder"):
        train(BiEncoder.load(make("bert"), "cpu"), pairs(), "late_in_batch", TrainConfig(**CONFIG))
    with pytest.raises(UnsupportedModel, match="table of weights"):
        train(SparseEncoder.load(make_inference_free(tmp_path / "free"), "cpu"), pairs(), "in_batch")
    sparse = SparseEncoder.load(make_splade(tmp_path / "splade"), "cpu", "float32")
    with pytest.raises(InputError, match="from 0"):
        train(sparse, pairs(), "in_batch", TrainConfig(flops=(-1.0,), **CONFIG))


def test_evaluated_as_an_index_searches(tmp_path: Path, make: Callable[..., Path]) -> None:
    data, model = set_of(pairs()), BiEncoder.load(make("bert"), "cpu")
    late = MultiVectorEncoder.load(make_late(tmp_path / "late"), "cpu")
    words = evaluate(model, data, "retrieval", by=("words",)).score
    dense = evaluate(model, data, "retrieval", by=("dense",)).score
    assert dense == pytest.approx(evaluate(model, data, "retrieval").score, abs=1e-6)  # short texts: one passage each
    assert words > dense
    assert evaluate(model, data, "retrieval", by=("words", "late"), late=late).score > 0
    with pytest.raises(InputError, match="give late="):
        evaluate(model, data, "retrieval", by=("late",))


def test_started_on_a_bi_encoder_by_the_command(tmp_path: Path, make: Callable[..., Path]) -> None:
    data = pairs()
    table = tmp_path / "pairs.tsv"
    table.write_text("query\tdocument\n" + "".join(f"{a}\t{b}\n" for a, b in zip(*data.texts, strict=True)))
    for flag, objective, loader in (
        (["--sparse", "--flops", "1e-3"], "in_batch", SparseEncoder),
        (["--late", "8"], "late_in_batch", MultiVectorEncoder),
    ):
        out = tmp_path / objective
        command = ["train", str(make("bert")), str(table), "-o", str(out), "--objective", objective, *flag]
        assert main([*command, "--max-steps", "2", "--device", "cpu", "--quiet"]) == 0
        assert len(loader.load(out, "cpu").encode_query(["a", "b"])) == 2
