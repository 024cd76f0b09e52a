"""Small batches for every objective, made of nothing but what it declares.

B examples, D width, L layers, K candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from munjang.objectives import OBJECTIVES, WRAPPERS, Objective, make, wrap
from munjang.objectives.base import IGNORED

FACTS = {"width": 6, "hidden_width": 6, "word_width": 4, "vocab_size": 11, "num_labels": 3, "teacher_width": 5}
LAYERS, GUIDE_WIDTH = 3, 3


@dataclass(frozen=True)
class Case:
    """An objective with some options; the data it is for follows from what its class declares."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    columns: int = 0  # 0: one more than it needs, if it takes more
    classes: int = 2
    scores: str = ""  # pairs, candidates, margin; none: of candidates where there are several
    wrapper: str | None = None
    wrapper_options: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, int] = field(default_factory=lambda: FACTS)

    def __post_init__(self) -> None:
        least, most = OBJECTIVES[self.name].num_texts
        object.__setattr__(self, "columns", self.columns or most or least + 1)
        object.__setattr__(self, "scores", self.scores or ("candidates" if self.columns > 2 else "pairs"))

    def __str__(self) -> str:
        named = [self.wrapper or "", self.name, *(f"{key}={value}" for key, value in self.options.items())]
        return "-".join(filter(None, [*named, *map(str, self.wrapper_options.values()), str(self.columns)]))

    def make(self) -> Objective:
        torch.manual_seed(1)
        inner = make(self.name, self.facts, **self.options)
        if self.wrapper is not None:
            inner = wrap(self.wrapper, inner, self.facts, **self.wrapper_options)
        return inner.double().eval()


@dataclass(frozen=True)
class Batch:
    """What the training step would supply."""

    outputs: list[Tensor]
    extras: dict[str, Tensor]
    lengths: Tensor

    def rows(self, start: int, stop: int) -> "Batch":
        """Some of the examples."""
        ends = [0, *self.lengths.cumsum(0).tolist()]
        tokens = slice(ends[start], ends[stop])

        def cut(values: Tensor, is_of_tokens: bool) -> Tensor:
            return values[tokens] if is_of_tokens else values[start:stop]

        extras = {
            key: values if key == "words" else cut(values, key == "targets") for key, values in self.extras.items()
        }
        is_of_tokens = len(self.outputs[0]) == ends[-1] and len(self.outputs[0]) != len(self.lengths)
        outputs = [cut(values, is_of_tokens) for values in self.outputs]
        return Batch(outputs, extras, self.lengths[start:stop])

    def leaves(self) -> list[Tensor]:
        """What gradients go to beside the objective's own parameters."""
        return [*self.outputs, *(self.extras[key] for key in ("words",) if key in self.extras)]


def supply(case: Case, objective: Objective, size: int, seed: int = 0) -> Batch:
    """A random batch of float64."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def whole(high: int, *shape: int) -> Tensor:
        return torch.randint(0, high, shape, generator=random)

    lengths = whole(5, size) + 2
    num_tokens, width = int(lengths.sum()), case.facts["width"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings": (size, width),
        "layers": (size, LAYERS, width),
        "logits": (size, case.facts["num_labels"] if objective.has_logit_per_label else 1),
        "token_states": (num_tokens, width),
        "token_vectors": (size, 3, width),
    }
    counts = {"logits": max(1, case.columns - 1) + objective.num_sampled, "token_states": 1}
    count = counts.get(objective.needs, case.columns * objective.passes)
    outputs = [normal(*shapes[objective.needs]).requires_grad_() for _ in range(count)]
    candidates = normal(size, case.columns - 1) if case.columns > 1 else normal(size, 1)
    if size > 1:
        candidates[0, -1] = float("nan")
    scores = {"pairs": whole(5, size) / 4, "margin": normal(size), "candidates": candidates}[case.scores]
    is_hidden = torch.arange(num_tokens) % 2 == 0
    targets = whole(case.facts["vocab_size"], num_tokens)
    known = {
        "labels": torch.arange(size) % case.classes,
        "scores": scores.double(),
        "texts": whole(3 * size, size, case.columns),
        "teacher": normal(size, case.columns, case.facts["teacher_width"]),
        "guide": normal(size, case.columns, GUIDE_WIDTH),
        "targets": targets.where(is_hidden, IGNORED) if objective.corruption == "mask" else targets,
        "lengths": lengths,
        "words": normal(case.facts["vocab_size"], case.facts["word_width"]).requires_grad_(),
    }
    return Batch(outputs, {key: known[key] for key in objective.extras}, lengths)


def cases_of(name: str, each: Sequence[Mapping[str, Any]] = ({},), **given: Any) -> list[Case]:
    return [Case(name, options, **given) for options in each]


DISTANCES = [{"distance": "euclidean"}, {"distance": "cosine", "margin": 0.3}, {"distance": "manhattan"}]
SAME_WIDTH = {**FACTS, "teacher_width": FACTS["width"]}
# Beside the default options, which every objective is tried with: others, and other data
CASES: list[Case] = [
    *(Case(name) for name in OBJECTIVES),
    *cases_of("classification", [{}, {"concatenation": "|u-v|, u*v"}], classes=3),
    *cases_of("triplet", DISTANCES[1:]),
    *cases_of("batch_all_triplet", DISTANCES, classes=3),
    *cases_of("batch_hard_triplet", DISTANCES, classes=3),
    *cases_of("batch_semi_hard_triplet", DISTANCES, classes=3),
    *cases_of(
        "in_batch",
        [{}, {"is_symmetric": True, "temperature": 0.2}, {"guide_margin": 0.1}, {"block_rows": 2}],
        columns=2,
    ),
    *cases_of("in_batch", [{"is_symmetric": True, "guide_margin": 0.0, "block_rows": 2}, {}], columns=4),
    *cases_of(
        "in_batch",
        [
            {"contrasts": "anchors,positives", "guide_margin": 0.1, "is_margin_relative": True},
            {"contrasts": "anchors,reverse,candidates", "block_rows": 2, "similarity": "dot", "temperature": 1.0},
            {"contrasts": "reverse", "keeps_duplicates": True, "hardness": 3.0, "hardness_of": "own"},
            *({"hardness": 5.0, "hardness_of": each, "is_symmetric": True} for each in ("others", "all")),
        ],
        columns=4,
    ),
    *cases_of("contrastive", DISTANCES),
    *cases_of("online_contrastive", DISTANCES),
    *cases_of("cosent", [{"scale": 3.0}]),
    Case("angle", facts={**FACTS, "width": 5}),
    *cases_of("embedding_mse", [{"target": "own"}]),
    *cases_of("embedding_mse", [{}, {"target": "own"}], columns=1, facts=SAME_WIDTH),
    *cases_of("embedding_cosine", [{"target": "own", "scale": 2.0}]),
    *cases_of("embedding_cosine", [{}, {"target": "own"}], columns=1, facts=SAME_WIDTH),
    *cases_of("in_batch_kl", [{"target": "own", "teacher_temperature": 0.2, "block_rows": 3}]),
    *cases_of("in_batch_kl", [{"temperature": 0.5}], columns=1),
    *cases_of("margin_mse", [{"similarity": "cosine"}]),
    *cases_of("margin_mse", columns=3, scores="margin"),
    *cases_of(
        "kl",
        [{}, {"temperature": 2.0, "teacher_temperature": 0.5}, {"temperature": 0.05, "scale": 1.5}],
        columns=5,
    ),
    *cases_of("kl", [{"similarity": "cosine", "temperature": 0.1}], columns=3),
    *cases_of("late_in_batch", [{"temperature": 0.5, "is_mean": False}, {"temperature": 0.1}], columns=4),
    *cases_of("late_kl", [{"is_mean": False, "temperature": 2.0, "scale": 0.5}], columns=3),
    *cases_of("late_margin_mse", [{"is_mean": True}], columns=4),
    *cases_of("simcse", [{"block_rows": 2}]),
    *cases_of("denoising", [{"num_decoder_layers": 1}]),
    *cases_of("cross_bce", [{"target": "labels", "positive_weight": 3.0}]),
    *cases_of("cross_entropy", classes=3),
    *cases_of("cross_mse", [{"activation": "sigmoid"}]),
    *cases_of("cross_margin_mse", [{"activation": "sigmoid"}]),
    *cases_of("cross_in_batch", [{"num_sampled": 1, "scale": 2.0, "activation": "identity"}]),
    *cases_of(
        "lambda_loss",
        [{}, *({"weighting": each, "sigma": 2.0} for each in ("none", "ndcg1", "ndcg2", "lambda_rank")), {"k": 2}],
        columns=6,
    ),
    *cases_of("ranknet", [{"k": 1}]),
]
_DIMS = {"wrapper": "matryoshka", "wrapper_options": {"dims": [6, 4, 1], "weights": [1.0, 0.5, 2.0]}}
_LONG = {"wrapper": "matryoshka", "wrapper_options": {"dims": [2, 6], "is_normalized": False}}
_LAYERS = {"wrapper": "adaptive_layers"}
_LIGHT = {"wrapper": "adaptive_layers", "wrapper_options": {"divergence_weight": 0.0, "earlier_weight": 0.5}}
_SPARSE = {"wrapper": "flops", "wrapper_options": {"query_weight": 0.5, "document_weight": 0.1}}
WRAPPED: list[Case] = [
    *(Case(name, **_SPARSE) for name in ("in_batch", "margin_mse", "simcse")),
    *(Case("in_batch", **wrapper) for wrapper in (_DIMS, _LONG, _LAYERS, _LIGHT)),
    *(Case("classification", classes=3, **wrapper) for wrapper in (_DIMS, _LONG, _LAYERS)),
    *(Case("triplet", **wrapper) for wrapper in (_DIMS, _LONG, _LAYERS)),
    *(Case("embedding_mse", facts=SAME_WIDTH, **wrapper) for wrapper in (_DIMS, _LAYERS)),
    *(Case("embedding_cosine", facts=SAME_WIDTH, **wrapper) for wrapper in (_DIMS, _LAYERS)),
    *(Case(name, **wrapper) for name in ("embedding_mse", "in_batch_kl") for wrapper in (_DIMS,)),
    *(Case("margin_mse", **wrapper) for wrapper in (_DIMS, _LAYERS, _LIGHT)),
    *(Case("simcse", **wrapper) for wrapper in (_DIMS, _LAYERS)),
    *(Case("denoising", **wrapper) for wrapper in (_DIMS, _LIGHT)),
]
ALL = [*CASES, *WRAPPED]
assert {case.wrapper for case in WRAPPED} == set(WRAPPERS), "every wrapper has a case"
