"""Stage 4: the encoder learns from the re-ranker which passage answers a question, and keeps its similarities.

An update has lists with what the re-ranker thinks of each passage, in English with a guide's cosines, court decisions
of which each question finds its own, and pairs of sentences, whose cosines stay what the start says. Word vectors stay
as they are. Then the weights move a share of the way from the start.

B pairs, M texts of a batch, D dimension.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig
from munjang.data.examples import Examples
from munjang.nn.encoder import Encoder
from munjang.objectives.base import Extras, Objective
from munjang.objectives.distances import unit
from recipes.models.lists import Lists, cosines
from recipes.models.reranker import ENGLISH, all_lists, fit, logits_of
from recipes.models.sources import joined, read_table

CONFIG = TrainConfig(
    max_steps=400,
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
    matryoshka_weights=(1.0, 0.4, 0.3, 0.2),
    quiet=True,
    log_every=100,
)
LISTS, DECISIONS, SENTENCES = 32, 64, 384  # rows of a batch
# Cosines of the start lie between 0.5 and 1; 0.05 asks them to spread, which costs half a point on Wikipedia
TEMPERATURE = 0.025
JUDGE_TEMPERATURE, GUIDE_TEMPERATURE = 1.5, 0.05  # of the re-ranker's logits, of the guide's cosines
STAYS = 250.0  # weight of cosines that stay


class Stays(Objective):
    """Mean squared difference of cosines from the teacher's.

    Pairs count as much as all other combinations of the batch together: there are few of them, and they are close.
    """

    num_texts = (2, 2)
    extras = ("teacher",)

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        student_MD = torch.cat([unit(vectors_BD) for vectors_BD in outputs])
        teacher_MD = unit(extras["teacher"]).transpose(0, 1).flatten(0, 1).to(student_MD.dtype)
        costs_MM = (student_MD @ student_MD.t() - teacher_MD @ teacher_MD.t()) ** 2
        return (costs_MM.diagonal(len(outputs[0])).mean() + costs_MM.mean()) * self.scale


def learn_encoder(
    start: BiEncoder, reranker: CrossEncoder, guide: BiEncoder, work: Path, config: TrainConfig
) -> BiEncoder:
    """Train a copy of the start, which is left as it is, on WORK's lists, decisions and sentences."""
    student = copy_of(start)
    steps, random = config.max_steps or 1, np.random.default_rng(config.seed)
    datasets = [
        Dataset(
            data=judged(all_lists(work), reranker, guide, steps * LISTS, random),
            objective="kl",
            options={"temperature": TEMPERATURE, "teacher_temperature": 1.0, "similarity": "cosine", "scale": 1.0},
            batch_size=LISTS,
        ),
        Dataset(
            data=_table(work / "decisions.tsv", ("query", "passage"), steps * DECISIONS, random),
            objective="in_batch",
            options={"temperature": TEMPERATURE},
            batch_size=DECISIONS,
        ),
        Dataset(
            data=_table(work / "sentences.tsv", ("first", "second"), steps * SENTENCES, random),
            objective=Stays(STAYS),
            teacher=start,
            batch_size=SENTENCES,
            sampler="random",
        ),
    ]
    own_encoder(student).embeddings.word.weight.requires_grad_(False)
    fit(student, datasets, replace(config, accumulate=len(datasets)))
    return student


def copy_of(model: BiEncoder) -> BiEncoder:
    """Load the model again, in float32, to be trained, with the weights that it has now."""
    made = BiEncoder.load(model.model.folder, str(model.device), "float32")
    own_encoder(made).load_state_dict(own_encoder(model).state_dict())
    own_encoder(made).requires_grad_(True)
    return made


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


def blend(start: BiEncoder, trained: BiEncoder, share: float) -> BiEncoder:
    """Return the start, moved so far of the way towards the trained weights."""
    made, others = copy_of(start), own_encoder(trained).state_dict()
    with torch.no_grad():
        for name, value in own_encoder(made).state_dict().items():
            value.lerp_(others[name].to(value), share)
    return made


def _table(path: Path, columns: tuple[str, str], count: int, random: np.random.Generator) -> Examples:
    table = read_table(path, columns)
    rows = np.sort(random.permutation(len(table[columns[0]]))[:count]).tolist()
    return Examples(path.stem, tuple([table[name][row] for row in rows] for name in columns), columns)
