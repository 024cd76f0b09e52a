"""A model to our ONNX folder, compared with the network it was made of before the folder is put in its place.

`export_onnx(BiEncoder.load(path).model, Path("folder"), "int8").smallest` is the smallest cosine to the network.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from munjang.checkpoint.model import Model
from munjang.checkpoint.onnx import open_graph, write_onnx
from munjang.checkpoint.place import write_folder
from munjang.errors import CheckpointError
from munjang.nn.network import SentenceNetwork
from munjang.nn.threads import apart
from munjang.text.flat import cumulative, gather
from munjang.text.packing import Packed, pack
from munjang.text.tokenizer import Tokens
from munjang.types import Floats

# Real sentences show what 8 bits cost; random ids of every length show a wrong mask, position or window
TEXTS = (
    "A cat sleeps on the sofa.",
    "How do I reset the password of my account?",
    "The committee published its report on Tuesday, two weeks later than planned, and nobody was surprised.",
    "Add salt, stir, and let it simmer for 20 minutes.",
    "Quarterly revenue rose 12 % to $3.4 billion.",
    "오늘 아침에 비가 많이 와서 회사에 늦었다.",
    "이 영화는 배우들의 연기가 좋았지만 이야기가 너무 길었다.",
    "서울에서 부산까지 기차로 얼마나 걸리나요?",
    "Yes",
    "",
)
LONGEST = 512  # tokens of a random text: longer ones take minutes and show nothing else
SEED = 20261115
# What rounding explains, in cosine to the network itself and in logits as a share of the largest one
LEAST_COSINE = {"float32": 0.99999, "int8": 0.95}
MOST_DIFFERENCE = {"float32": 1e-4, "int8": 0.2}


@dataclass(frozen=True)
class Agreement:
    """How near a graph comes to its network: cosines of vectors, or 1 less the share by which logits differ."""

    num_texts: int
    smallest: float
    mean: float
    is_cosine: bool = True

    def __str__(self) -> str:
        if self.is_cosine:
            return f"smallest cosine {self.smallest:.7f}, mean {self.mean:.7f} over {self.num_texts} texts"
        share = 1 - self.smallest
        return f"largest difference of a score {share:.5%} of the largest score over {self.num_texts} pairs"


def export_onnx(model: Model, target: Path, dtype: str = "float32", activation: nn.Module | None = None) -> Agreement:
    """Write the folder and say how near it comes; what differs is an error, and nothing is left behind.

    `activation` is a cross-encoder's own, which is applied outside of the graph.
    """
    found: list[Agreement] = []

    def write(folder: Path) -> None:
        write_onnx(model, folder, dtype, activation)
        agreement = compare(model, open_graph(folder, "bi" if activation is None else "cross"))
        least = LEAST_COSINE[dtype] if agreement.is_cosine else 1 - MOST_DIFFERENCE[dtype]
        if not agreement.smallest >= least:  # NaN too
            raise CheckpointError(
                f"{model.folder}: the {dtype} graph differs from the network by more than rounding explains "
                f"({agreement}), so it was not written."
            )
        found.append(agreement)

    apart(lambda: write_folder(target, write))
    return found[0]


def compare(model: Model, graph: nn.Module) -> Agreement:
    """Results of the network and of its graph, over the same batch."""
    batch, is_cosine = sample(model), isinstance(model.network, SentenceNetwork)
    with torch.inference_mode():
        ours, theirs = model.network(batch).float().numpy(), graph(batch).float().numpy()
    near = cosines(ours, theirs) if is_cosine else nearness(ours, theirs)
    return Agreement(len(near), float(near.min()), float(near.mean()), is_cosine)


def sample(model: Model) -> Packed:
    """Sentences or pairs of them, and random ids of many lengths up to the longest that the model reads."""
    tokens, encoder, random = _tokens(model), model.network.encoder, np.random.default_rng(SEED)
    limits = (LONGEST, model.tokenizer.max_length, encoder.max_tokens)
    most = min(limit for limit in limits if limit is not None)
    lengths = np.unique(np.geomspace(1, most, 24).astype(np.int64))
    ids = random.integers(0, model.network.encoder.vocab_size, int(lengths.sum()), np.int32)
    types = tokens.types
    if types is not None:
        types = np.concatenate([types, random.integers(0, int(types.max()) + 1, len(ids), np.int32)])
    return pack(
        np.concatenate([tokens.ids, ids]),
        np.concatenate([tokens.lengths, lengths]),
        types,
        pad_id=encoder.uncounted_id,
    )


def _tokens(model: Model) -> Tokens:
    tokenizer = model.tokenizer
    if isinstance(model.network, SentenceNetwork):
        return tokenizer(list(TEXTS))
    flat, lengths = tokenizer.bodies(list(TEXTS))
    rows, starts = np.arange(len(TEXTS))[::-1], cumulative(lengths)
    return tokenizer.join(flat, lengths, gather(flat, starts, rows, lengths[rows]), lengths[rows])


def cosines(ours: Floats, theirs: Floats) -> Floats:
    """Row by row; two zero vectors are equal."""
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    is_zero = (np.abs(ours).max(axis=1) == 0) & (np.abs(theirs).max(axis=1) == 0)
    near: Floats = np.where(is_zero, 1.0, (ours * theirs).sum(axis=1) / np.maximum(lengths, 1e-30))
    return near


def nearness(ours: Floats, theirs: Floats) -> Floats:
    """1 less the difference of logits, as a share of the largest one."""
    near: Floats = 1 - np.abs(ours - theirs).max(axis=1) / max(float(np.abs(ours).max()), 1e-6)
    return near
