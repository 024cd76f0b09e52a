"""One encoder from two: sentences as the one has them, questions and passages as the other has them.

The mean of two layers does neither. Here a layer is the one that comes nearest, by least squares, to what each model's
layer makes of that model's own texts (RegMean, Jin et al. 2023): W is the sum of W_i G_i times the inverse of the sum
of G_i, where G_i are the products of the layer's inputs with each other. English similarity is lost in the last two
layers, so they go a part of the way only, and words without Hangul come from a third model (docs/results.md).

N outputs and D inputs of a layer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from munjang import BiEncoder
from munjang.data.reading import read_examples
from recipes.ko_en_small.data import read
from recipes.ko_en_small.search import english_sentences, korean_sentences, scored_sentences
from recipes.ko_en_small.words import HANGUL, WORDS, pieces
from recipes.rounding import products

Products = Mapping[str, Tensor]  # of a layer's inputs with each other, for a token [D, D], by the layer's name
BLOCK = re.compile(r"\bblocks\.(\d+)\.")
NUM_SENTENCES, NUM_QUESTIONS, NUM_PASSAGES = 900, 500, 250
KOREAN = 0.25  # of the sentences' products; English is what is lost otherwise
OFF_DIAGONAL, DAMPING = 0.95, 1e-4  # what inputs have in common on few texts is in part by chance


@dataclass(frozen=True)
class Shares:
    """The weight of the search model in a merged layer, and of the whole change."""

    beyond: float = 1.4  # of the way from the model of sentences to that of search: where its layers are taken from
    layers: float = 0.4
    last: float = 0.8  # of the way to the merged layer, in the last two
    rest: float = 0.4  # norms and biases
    words: float = 0.5  # with Hangul


def merge(sentences: Path, search: Path, english: Path, silver: Path, data: Path, out: Path) -> None:
    """Write the encoder that has `sentences` as that folder's model has them, and passages as that of `search`."""
    one, other = (BiEncoder.load(folder, "cpu", "float32") for folder in (sentences, search))
    shares, random = Shares(), np.random.default_rng(5)

    def some(texts: list[str], count: int) -> list[str]:
        return [texts[row] for row in random.permutation(len(texts))[:count].tolist()]

    sets = read(data, silver)
    scored = scored_sentences(sets).texts[0]
    korean, plain = ([text for text in scored if bool(HANGUL.search(text)) is is_korean] for is_korean in (True, False))
    made = silver / ("wiki.tsv" if (silver / "wiki.tsv").exists() else "gathered.tsv")
    questions, passages = read_examples(made, texts=("query", "passage")).texts
    kinds = (
        (KOREAN, [*some(korean, NUM_SENTENCES // 2), *some(korean_sentences(data).texts[0], NUM_SENTENCES // 2)]),
        (1 - KOREAN, [*some(plain, NUM_SENTENCES // 2), *some(english_sentences(data).texts[0], NUM_SENTENCES // 2)]),
    )
    of_sentences = together([(share, mean_products(one, texts)) for share, texts in kinds])
    beyond(one, other, shares.beyond)
    found = [
        mean_products(other, some(texts, n)) for texts, n in ((questions, NUM_QUESTIONS), (passages, NUM_PASSAGES))
    ]
    of_search = together([(0.5, each) for each in found])
    weights = merged(_weights(one), _weights(other), of_sentences, of_search, shares)
    kept = _weights(BiEncoder.load(english, "cpu", "float32"))[WORDS]
    others = [place for piece, place in pieces(one).items() if not HANGUL.search(piece)]
    weights[WORDS][others] = kept[others]
    one.network.encoder.load_state_dict(weights)
    one.save(out)


def beyond(one: BiEncoder, other: BiEncoder, share: float) -> None:
    """Move the other model along the way from the first one."""
    start, end = _weights(one), _weights(other)
    other.network.encoder.load_state_dict({name: start[name] + share * (end[name] - start[name]) for name in end})


def mean_products(model: BiEncoder, texts: list[str]) -> Products:
    """Average each layer's inputs over the tokens of a text, so that long texts weigh no more than short ones."""
    names = {module: name for name, module in model.network.encoder.named_modules()}
    found = products(model, texts)
    first = next(iter(found.values()))
    scale = first.diagonal().mean().clamp_min(1e-12)  # inputs of the first layer come from a norm: alike for all texts
    return {names[module]: product_DD.double() / scale for module, product_DD in found.items()}


def together(parts: list[tuple[float, Products]]) -> Products:
    """Products of several kinds of texts, by their shares."""
    return {name: sum((share * each[name] for share, each in parts), torch.zeros(())) for name in parts[0][1]}


def merged(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor], of_one: Products, of_other: Products, shares: Shares
) -> dict[str, Tensor]:
    """Weights of an encoder between two, by name."""
    last = max((int(found[1]) for name in one if (found := BLOCK.search(name))), default=0)
    made: dict[str, Tensor] = {}
    for name, weight in one.items():
        layer, block = name.removesuffix(".weight"), BLOCK.search(name)
        if layer in of_one and name.endswith(".weight"):
            parts = ((1 - shares.layers, weight, of_one[layer]), (shares.layers, other[name], of_other[layer]))
            share = shares.last if block and int(block[1]) > last - 2 else 1.0
            made[name] = weight + share * (least_squares(parts) - weight)
        else:
            share = shares.words if name == WORDS else shares.rest
            made[name] = weight + share * (other[name] - weight)
    return made


def least_squares(parts: tuple[tuple[float, Tensor, Tensor], ...]) -> Tensor:
    """The layer [N, D] nearest to all of them, each with its share and the products of its inputs."""
    all_DD, wanted_DN = torch.zeros(()), torch.zeros(())
    for share, weight_ND, product_DD in parts:
        diagonal_D = product_DD.diagonal()
        weighed_DD = share * (OFF_DIAGONAL * product_DD + (1 - OFF_DIAGONAL) * torch.diag(diagonal_D)).double()
        all_DD, wanted_DN = all_DD + weighed_DD, wanted_DN + weighed_DD @ weight_ND.double().T
    all_DD = all_DD + DAMPING * all_DD.diagonal().mean() * torch.eye(len(all_DD), dtype=all_DD.dtype)
    return torch.linalg.solve(all_DD, wanted_DN).T.float()


def _weights(model: BiEncoder) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.network.encoder.state_dict().items()}
