"""Two encoders in one, layer by layer."""

from collections.abc import Callable
from pathlib import Path

import torch

from munjang import BiEncoder
from recipes.ko_en_small.merge import Shares, least_squares, mean_products, merged, together


def products_of(inputs: torch.Tensor) -> torch.Tensor:
    return (inputs.T @ inputs).double()


def test_a_layer_does_what_both_do_where_their_inputs_differ() -> None:
    torch.manual_seed(1)
    one, other = torch.randn(3, 8), torch.randn(3, 8)
    of_one, of_other = torch.zeros(50, 8), torch.zeros(50, 8)
    of_one[:, :4], of_other[:, 4:] = torch.randn(50, 4), torch.randn(50, 4)
    found = least_squares(((0.5, one, products_of(of_one)), (0.5, other, products_of(of_other))))
    torch.testing.assert_close(of_one @ found.T, of_one @ one.T, atol=0.01, rtol=0)
    torch.testing.assert_close(of_other @ found.T, of_other @ other.T, atol=0.01, rtol=0)
    mean = (one + other) / 2
    assert (of_one @ (mean - one).T).abs().max() > 0.5  # which the mean does not


def test_alike_inputs_give_the_mean() -> None:
    torch.manual_seed(2)
    one, other, inputs = torch.randn(3, 8), torch.randn(3, 8), torch.randn(200, 8)
    found = least_squares(((0.75, one, products_of(inputs)), (0.25, other, products_of(inputs))))
    torch.testing.assert_close(found, 0.75 * one + 0.25 * other, atol=0.01, rtol=0)


def test_an_encoder_merged_with_itself_is_itself(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("xlm-roberta"), "cpu", "float32")
    texts = ["a cat sleeps on the sofa", "고양이가 소파에서 잔다", "two dogs run", "비가 온다"]
    weights = dict(encoder.network.encoder.state_dict())
    seen = together([(0.5, mean_products(encoder, texts[:2])), (0.5, mean_products(encoder, texts[2:]))])
    found = merged(weights, weights, seen, seen, Shares())
    assert found.keys() == weights.keys()
    before = encoder.encode(texts)
    encoder.network.encoder.load_state_dict(found)
    torch.testing.assert_close(torch.from_numpy(encoder.encode(texts)), torch.from_numpy(before), atol=1e-2, rtol=0)


def test_the_last_layers_and_the_words_go_a_part_of_the_way() -> None:
    eye = torch.eye(4, dtype=torch.float64)
    names = [f"blocks.{block}.up" for block in range(3)]
    words = "embeddings.word.weight"
    one = {**{f"{name}.weight": torch.zeros(2, 4) for name in names}, words: torch.zeros(3, 4), "norm": torch.zeros(4)}
    other = {name: torch.ones_like(tensor) for name, tensor in one.items()}
    seen = dict.fromkeys(names, eye)
    shares = Shares(layers=0.5, last=0.2, rest=0.3, words=0.6)
    found = merged(one, other, seen, seen, shares)
    means = [found[f"{name}.weight"].mean().item() for name in names]
    assert [round(mean, 3) for mean in means] == [0.5, 0.1, 0.1]
    assert round(found[words].mean().item(), 3) == 0.6
    assert round(found["norm"].mean().item(), 3) == 0.3
