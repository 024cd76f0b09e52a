from pathlib import Path

import pytest
import torch

from munjang import BiEncoder
from munjang.nn.encoder import Encoder
from munjang.nn.int8.observe import NUM_DISTINCT_TOKENS, NUM_LONG_TEXTS, SAMPLE_LENGTHS, loss, observe
from munjang.nn.sample import sample
from tests.nn.test_encoder import batch_of


def test_every_input_of_every_product(tiny_bert: Path) -> None:
    encoder = BiEncoder.load(tiny_bert, device="cpu").network.encoder
    assert isinstance(encoder, Encoder)
    with torch.no_grad():
        seen = observe(encoder)
    assert [len(state) for state in seen.states] == [seen.batch.num_tokens] * (encoder.shape.num_layers + 1)
    block = encoder.blocks[0]
    assert len(seen.inputs) == 4 * len(encoder.blocks)
    assert all(
        (each.low_D <= each.mean_D).all() and (each.mean_D <= each.high_D).all() for each in seen.inputs.values()
    )
    assert float(seen.inputs[block.down].low_D.min()) > -0.18
    first = seen.states[0]
    assert torch.allclose(seen.inputs[block.qkv].mean_D, first.mean(0), atol=1e-6)


def test_the_sample_has_texts_that_repeat_themselves(tiny_bert: Path) -> None:
    encoder = BiEncoder.load(tiny_bert, device="cpu").network.encoder
    batch = sample(encoder, SAMPLE_LENGTHS, num_distinct=[NUM_DISTINCT_TOKENS] * NUM_LONG_TEXTS)
    start, texts, length = next(iter(batch.runs))
    longest = batch.ids_T[start : start + texts * length].view(texts, length)
    assert texts == NUM_LONG_TEXTS
    assert all(len(set(row.tolist())) <= NUM_DISTINCT_TOKENS for row in longest)
    assert torch.equal(sample(encoder, [5, 3]).ids_T, sample(encoder, [5, 3]).ids_T)


def test_loss_is_that_of_the_worse_group() -> None:
    batch = batch_of(50)
    exact = torch.randn(batch.num_tokens, 4)
    assert loss(exact, exact, batch) == pytest.approx(0, abs=1e-6)
    start, texts, length = next(iter(batch.runs))
    turned = exact.clone()
    turned[start : start + texts * length] *= -1
    assert loss(exact, turned, batch) == pytest.approx(2, abs=1e-6)
