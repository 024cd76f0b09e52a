"""Stage 4: the encoder learns from the re-ranker which passage answers a question, and keeps its similarities.

First a layer over the vectors levels them: it takes away what all texts have in common, so that cosines of unrelated
texts are near 0 and a threshold means something. Then an update has lists with what the re-ranker thinks of each
passage, in English with a guide's cosines, court decisions of which each question finds its own, and pairs of
sentences, whose cosines stay what the start says, stretched. Word vectors stay as they are. At the end the weights move
a share of the way from the levelled start.

B pairs, M texts of a batch, N texts, D dimension.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig
from munjang.data.examples import Examples
from munjang.nn.encoder import Encoder
from munjang.nn.heads import Dense
from munjang.nn.network import SentenceNetwork
from munjang.objectives.base import Extras, Objective
from munjang.objectives.distances import unit
from munjang.types import Floats
from recipes.models.lists import Lists, cosines
from recipes.models.reranker import ENGLISH, all_lists, fit, logits_of
from recipes.models.sources import is_korean, joined, read_table

CONFIG = TrainConfig(
    max_steps=600,
    together=True,
    mixing="round_robin",
    learning_rate=5e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=320,
    dropout=0.0,  # it would move what is to stay
    ema=0.995,
    batch_tokens=262_144,
    matryoshka=(384, 256, 128, 64),
    matryoshka_weights=(1.0, 0.3, 0.2, 0.1),
    quiet=True,
    log_every=100,
)
LISTS, DECISIONS, SENTENCES = 32, 64, 384  # rows of a batch
# As wide as the start's cosines, of 0.5 to 1; 0.05 asks them to spread, which costs half a point on Wikipedia
TEMPERATURE = 0.025
JUDGE_TEMPERATURE, GUIDE_TEMPERATURE = 1.5, 0.05  # of the re-ranker's logits, of the guide's cosines
STAYS = 500.0  # weight of cosines that stay
NUM_LEVELLED = 12_000  # texts of each language
RIDGE = 0.001  # of moments of unit vectors; a smaller one takes less away, more evenly


class Stays(Objective):
    """Mean squared difference of cosines from the teacher's, stretched so that `middle` becomes 0.

    Pairs count as much as all other combinations of the batch together: there are few of them, and they are close.
    """

    num_texts = (2, 2)
    extras = ("teacher",)

    def __init__(self, middle: float, scale: float) -> None:
        super().__init__()
        self.middle, self.scale = middle, scale

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        student_MD = torch.cat([unit(vectors_BD) for vectors_BD in outputs])
        teacher_MD = unit(extras["teacher"]).transpose(0, 1).flatten(0, 1).to(student_MD.dtype)
        wanted_MM = (teacher_MD @ teacher_MD.t() - self.middle) / (1 - self.middle)
        costs_MM = (student_MD @ student_MD.t() - wanted_MM) ** 2
        return (costs_MM.diagonal(len(outputs[0])).mean() + costs_MM.mean()) * self.scale


def learn_encoder(
    start: BiEncoder,
    begin: BiEncoder,
    middle: float,
    reranker: CrossEncoder,
    guide: BiEncoder,
    work: Path,
    config: TrainConfig,
) -> BiEncoder:
    """Train a copy of the levelled start on WORK's lists, decisions and sentences; `start` says what stays."""
    student = copy_of(begin)
    steps, random = config.max_steps or 1, np.random.default_rng(config.seed)
    temperature = TEMPERATURE / (1 - middle)
    datasets = [
        Dataset(
            data=judged(all_lists(work), reranker, guide, steps * LISTS, random),
            objective="kl",
            options={"temperature": temperature, "teacher_temperature": 1.0, "similarity": "cosine", "scale": 1.0},
            batch_size=LISTS,
        ),
        Dataset(
            data=_table(work / "decisions.tsv", ("query", "passage"), steps * DECISIONS, random),
            objective="in_batch",
            options={"temperature": temperature},
            batch_size=DECISIONS,
        ),
        Dataset(
            data=_table(work / "sentences.tsv", ("first", "second"), steps * SENTENCES, random),
            objective=Stays(middle, STAYS),
            teacher=start,
            batch_size=SENTENCES,
            sampler="random",
        ),
    ]
    own_encoder(student).embeddings.word.weight.requires_grad_(False)
    fit(student, datasets, replace(config, accumulate=len(datasets)))
    return student


def levelled(start: BiEncoder, texts: list[str]) -> tuple[BiEncoder, float]:
    """Return a copy with a layer that levels its vectors, and the cosine that becomes 0; one that has a layer stays."""
    made = copy_of(start)
    tail = tail_of(made)
    if any(isinstance(module, Dense) for module in tail):
        return made, 0.0
    layer, middle = levelling(made.encode(texts, normalize=True, progress=False))
    tail.insert(0, layer.to(made.device).requires_grad_(False))
    return made, middle


def copy_of(model: BiEncoder) -> BiEncoder:
    """Load the model again, in float32, to be trained, with the weights that it has now."""
    made = BiEncoder.load(model.model.folder, str(model.device), "float32")
    own_encoder(made).load_state_dict(own_encoder(model).state_dict())
    own_encoder(made).requires_grad_(True)
    assert isinstance(made.network, SentenceNetwork)
    made.network.tail = deepcopy(tail_of(model)).requires_grad_(False)
    return made


def tail_of(model: BiEncoder) -> nn.ModuleList:
    """Return the modules over the pooled vectors."""
    assert isinstance(model.network, SentenceNetwork)
    return model.network.tail


def own_encoder(model: BiEncoder) -> Encoder:
    """Return the encoder inside, which Munjang computes itself."""
    own = model.network.encoder
    assert isinstance(own, Encoder)
    return own


def judged(
    lists: list[Lists], reranker: CrossEncoder, guide: BiEncoder, count: int, random: np.random.Generator
) -> Examples:
    """Draw lists of all sources, as many of each as there are, with logits of the re-ranker, and in English the guide.

    The guide is an English encoder that has read far more of it.
    """
    total = sum(len(each.query_of_N) for each in lists)
    parts = []
    for each in lists:
        size = len(each.query_of_N)
        rows = np.sort(random.permutation(size)[: max(1, round(size * min(1.0, count / total)))])
        some = replace(each, query_of_N=each.query_of_N[rows], passages_NK=each.passages_NK[rows])
        logits_NK = logits_of(reranker, some).astype(np.float64) / JUDGE_TEMPERATURE
        if each.name in ENGLISH:
            logits_NK = (logits_NK + cosines(guide, some) / GUIDE_TEMPERATURE) / 2
        parts.append(some.examples(logits_NK))
    return joined("judged", parts)


def levelling(vectors_ND: Floats) -> tuple[Dense, float]:
    """Return a projection after which cosines c are nearly (c - middle) / (1 - middle), and that middle.

    If a direction a had the same product with all vectors, 1, then projecting it away would take 1 / |a|² off every
    product and change nothing else. Least squares find a: unlike those of the mean, its products hardly differ.
    """
    mean_D = vectors_ND.mean(0, dtype=np.float64)
    moments_DD = vectors_ND.T.astype(np.float64) @ vectors_ND / len(vectors_ND)
    common_D = np.linalg.solve(moments_DD + RIDGE * np.eye(len(mean_D)), mean_D)
    common_D /= common_D @ mean_D
    middle = float(1 / (common_D @ common_D))
    layer = Dense(len(mean_D), len(mean_D), has_bias=False, activation=nn.Identity())
    with torch.no_grad():
        layer.linear.weight.copy_(torch.from_numpy(np.eye(len(mean_D)) - middle * np.outer(common_D, common_D)))
    return layer, middle


def blend(start: BiEncoder, trained: BiEncoder, share: float) -> BiEncoder:
    """Return the start, moved so far of the way towards the trained weights."""
    made, others = copy_of(start), own_encoder(trained).state_dict()
    with torch.no_grad():
        for name, value in own_encoder(made).state_dict().items():
            value.lerp_(others[name].to(value), share)
    return made


def mixed_texts(work: Path) -> list[str]:
    """Return passages and sentences, as many of each language."""
    sentences = read_table(work / "sentences.tsv", ("first", "second"))
    texts = {True: list[str](), False: list[str]()}
    for each in all_lists(work):
        for text in each.passages[:400]:
            texts[is_korean(text)].append(text)
    for text in sentences["first"]:
        texts[is_korean(text)].append(text)
    random = np.random.default_rng(3)
    return [some[at] for some in texts.values() for at in random.permutation(len(some))[:NUM_LEVELLED].tolist()]


def _table(path: Path, columns: tuple[str, str], count: int, random: np.random.Generator) -> Examples:
    table = read_table(path, columns)
    rows = np.sort(random.permutation(len(table[columns[0]]))[:count]).tolist()
    return Examples(path.stem, tuple([table[name][row] for row in rows] for name in columns), columns)
