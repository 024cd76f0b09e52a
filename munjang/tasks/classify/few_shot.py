"""Few-shot: an encoder learns from pairs of a few labelled texts which of them belong together, as SetFit does.

N texts, C classes, P pairs. Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts".
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.training.config import TrainConfig
from munjang.training.train import train
from munjang.types import Bools, Doubles, Ints

OBJECTIVE = "regression"  # the cosine of a pair has to be 1 or 0, as in the paper


@dataclass(frozen=True)
class Pairs:
    """Rows that are compared, and what their similarity has to be."""

    first_P: Ints
    second_P: Ints
    scores_P: Doubles


def make_pairs(targets_NC: Bools, num_pairs: int, seed: int = 0) -> Pairs:
    """Draw `num_pairs` partners for each text that share a label with it, and as many that share none.

    The only text of a label has no partner of its own, texts that share a label with all others have none to be apart
    from; equal texts are the caller's business.

    >>> make_pairs(np.eye(2, dtype=bool)[[0, 0, 1]], 1).scores_P.tolist()
    [1.0, 0.0, 1.0, 0.0, 0.0]
    """
    random = np.random.default_rng(seed)
    first: list[int] = []
    second: list[int] = []
    scores: list[float] = []
    for row, target_C in enumerate(targets_NC):
        shares_N = (targets_NC & target_C).any(1)
        others = np.flatnonzero(~shares_N)
        shares_N[row] = False
        for partners, score in ((np.flatnonzero(shares_N), 1.0), (others, 0.0)):
            if len(partners):
                chosen = _drawn(partners, num_pairs, random)
                first += [row] * len(chosen)
                second += chosen.tolist()
                scores += [score] * len(chosen)
    return Pairs(np.array(first, np.int64), np.array(second, np.int64), np.array(scores))


def fine_tune(model: BiEncoder, texts: list[str], targets_NC: Bools, config: TrainConfig, num_pairs: int) -> BiEncoder:
    """Train a copy of the model on pairs; the model itself stays as it is."""
    pairs = make_pairs(targets_NC, num_pairs, config.seed)
    if not len(pairs.scores_P) or pairs.scores_P.max() == pairs.scores_P.min():
        missing = "share a label" if not pairs.scores_P.any() else "have different labels"
        raise InputError(f"Few-shot learning compares texts, and no two of these {missing}; give more, or use frozen.")
    columns = ([texts[row] for row in pairs.first_P.tolist()], [texts[row] for row in pairs.second_P.tolist()])
    examples = Examples("pairs of the examples", columns, scores=pairs.scores_P)
    learner = copy_of(model)
    train(learner, examples, OBJECTIVE, config)
    return learner


def copy_of(model: BiEncoder) -> BiEncoder:
    """Copy a model with its weights and settings."""
    inner = replace(model.model, network=copy.deepcopy(model.network), tokenizer=copy.copy(model.tokenizer))
    threads = None if model._options is None else model._options[3]
    made = BiEncoder(inner, model.device, model.dtype, threads)
    for name in BiEncoder.settings:
        setattr(made, name, getattr(model, name))
    made._options = model._options  # training reads the weights of a 16-bit model from its folder again
    return made


def _drawn(partners: Ints, number: int, random: np.random.Generator) -> Ints:
    """Draw so many of them, each once before any occurs twice."""
    rounds = -(-number // len(partners))
    return np.concatenate([random.permutation(partners) for _ in range(rounds)])[:number]
