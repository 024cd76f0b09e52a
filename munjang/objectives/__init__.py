"""Training objectives: one file each, one line here."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from munjang.errors import InputError, unknown
from munjang.objectives.adaptive_layers import AdaptiveLayers
from munjang.objectives.angle import AnglE
from munjang.objectives.base import Extras, Objective, Wrapper
from munjang.objectives.batch_triplets import BatchAllTriplet, BatchHardTriplet, BatchSemiHardTriplet
from munjang.objectives.classification import Classification
from munjang.objectives.contrastive import Contrastive
from munjang.objectives.cosent import CoSENT
from munjang.objectives.cross_bce import CrossBCE
from munjang.objectives.cross_entropy import CrossEntropy
from munjang.objectives.cross_in_batch import CrossInBatch
from munjang.objectives.cross_margin_mse import CrossMarginMSE
from munjang.objectives.cross_mse import CrossMSE
from munjang.objectives.denoising import Denoising
from munjang.objectives.embedding_cosine import EmbeddingCosine
from munjang.objectives.embedding_mse import EmbeddingMSE
from munjang.objectives.flops import Flops
from munjang.objectives.in_batch import InBatch
from munjang.objectives.in_batch_kl import InBatchKL
from munjang.objectives.kl import KL
from munjang.objectives.lambda_loss import LambdaLoss
from munjang.objectives.late import LateInBatch, LateKL, LateMarginMSE
from munjang.objectives.listnet import ListNet
from munjang.objectives.margin_mse import MarginMSE
from munjang.objectives.masked import Masked
from munjang.objectives.matryoshka import Matryoshka
from munjang.objectives.online_contrastive import OnlineContrastive
from munjang.objectives.ranknet import RankNet
from munjang.objectives.regression import Regression
from munjang.objectives.simcse import SimCSE
from munjang.objectives.triplet import Triplet

__all__ = ["FACTS", "OBJECTIVES", "WRAPPERS", "Extras", "Objective", "Wrapper", "make", "options_of", "wrap"]

OBJECTIVES: dict[str, type[Objective]] = {
    # the paper's
    "classification": Classification,
    "regression": Regression,
    "triplet": Triplet,
    # single texts with labels
    "batch_all_triplet": BatchAllTriplet,
    "batch_hard_triplet": BatchHardTriplet,
    "batch_semi_hard_triplet": BatchSemiHardTriplet,
    # pairs and ranking
    "in_batch": InBatch,
    "contrastive": Contrastive,
    "online_contrastive": OnlineContrastive,
    "cosent": CoSENT,
    "angle": AnglE,
    # distillation
    "embedding_mse": EmbeddingMSE,
    "embedding_cosine": EmbeddingCosine,
    "in_batch_kl": InBatchKL,
    "margin_mse": MarginMSE,
    "kl": KL,
    # late interaction
    "late_in_batch": LateInBatch,
    "late_kl": LateKL,
    "late_margin_mse": LateMarginMSE,
    # texts alone
    "simcse": SimCSE,
    "denoising": Denoising,
    "masked": Masked,
    # cross-encoders
    "cross_bce": CrossBCE,
    "cross_entropy": CrossEntropy,
    "cross_mse": CrossMSE,
    "cross_margin_mse": CrossMarginMSE,
    "cross_in_batch": CrossInBatch,
    "listnet": ListNet,
    "lambda_loss": LambdaLoss,
    "ranknet": RankNet,
}

WRAPPERS: dict[str, type[Wrapper]] = {"matryoshka": Matryoshka, "adaptive_layers": AdaptiveLayers, "flops": Flops}

# Arguments that follow from the model and the data, and what a missing one stands for
FACTS = {
    "width": "a model with sentence vectors",
    "hidden_width": "a model with token states",
    "word_width": "a model with word embeddings",
    "vocab_size": "a model with a vocabulary",
    "num_labels": "labels",
    "teacher_width": "a teacher",
}


def make(name: str, facts: Mapping[str, Any], **options: Any) -> Objective:
    """Build an objective. `facts` holds those of FACTS that are known, `options` are the user's.

    >>> make("classification", {"width": 384, "num_labels": 3}, concatenation="u,v").head
    Linear(in_features=768, out_features=3, bias=True)
    """
    if name not in OBJECTIVES:
        raise unknown("objective", name, OBJECTIVES)
    return OBJECTIVES[name](**_arguments(name, OBJECTIVES[name], facts, options))


def wrap(name: str, objective: Objective, facts: Mapping[str, Any], **options: Any) -> Objective:
    """Put an objective inside a wrapper, with facts and options as in `make`.

    >>> wrap("matryoshka", make("in_batch", {}), {"width": 384}, dims=[384, 128]).num_texts
    (2, None)
    """
    if name not in WRAPPERS:
        raise unknown("wrapper", name, WRAPPERS)
    return WRAPPERS[name](objective, **_arguments(name, WRAPPERS[name], facts, options))


def options_of(kind: type[Objective]) -> dict[str, inspect.Parameter]:
    """Return what a user may set, by name.

    >>> list(options_of(Triplet))
    ['margin', 'distance']
    """
    return {name: parameter for name, parameter in _parameters(kind).items() if name not in FACTS}


def _parameters(kind: type[Objective]) -> dict[str, inspect.Parameter]:
    if kind.__init__ is nn.Module.__init__:
        return {}
    return {name: parameter for name, parameter in inspect.signature(kind).parameters.items() if name != "objective"}


def _arguments(
    name: str, kind: type[Objective], facts: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    allowed = options_of(kind)
    for option in options:
        if not allowed:
            raise InputError(f"{name} has no options; {option!r} was given.")
        if option not in allowed:
            raise unknown(f"option of {name}", option, allowed)
    arguments = dict(options)
    for argument, parameter in _parameters(kind).items():
        if argument in FACTS and facts.get(argument) is not None:
            arguments[argument] = facts[argument]
        elif argument not in arguments and parameter.default is inspect.Parameter.empty:
            raise InputError(f"{name} needs {FACTS.get(argument, f'the option {argument}')}.")
    return arguments
