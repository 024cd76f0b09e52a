"""Models that an objective learns from: a teacher's vectors and scores, a guide's vectors, kept on disk."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.files import replacing
from munjang.data.vectors import VectorBlock, write_npy
from munjang.errors import InputError
from munjang.objectives import OBJECTIVES
from munjang.objectives.base import Objective
from munjang.types import Floats


def load_teacher(
    given: str | BiEncoder | CrossEncoder, name: str, objective: type[Objective] | Objective, device: torch.device
) -> BiEncoder | CrossEncoder:
    """Load the teacher, if the objective of this name can learn from one of its kind."""
    teacher = _load(given, device)
    is_cross = isinstance(teacher, CrossEncoder)
    wanted = "scores" if is_cross else "teacher"
    if wanted not in objective.extras:
        fitting = sorted(other for other, kind in OBJECTIVES.items() if wanted in kind.extras)
        given_kind = "cross-encoder, which gives scores" if is_cross else "bi-encoder, which gives vectors"
        raise InputError(f"The teacher is a {given_kind}; {name} takes none. Choose from {', '.join(fitting)}.")
    if isinstance(teacher, CrossEncoder) and teacher.num_labels != 1:
        raise InputError(f"The teacher has {teacher.num_labels} labels; one that gives a single score is wanted.")
    return teacher


def load_guide(given: str | BiEncoder, name: str, objective: Objective, device: torch.device) -> BiEncoder:
    """Load the guide, if the objective of this name takes one."""
    if "guide" not in objective.extras:
        raise InputError(f"{name} takes no guide here; in_batch does with the option guide_margin.")
    guide = _load(given, device)
    if not isinstance(guide, BiEncoder):
        raise InputError("The guide has to be a bi-encoder; this is a cross-encoder.")
    return guide


def _load(given: str | BiEncoder | CrossEncoder, device: torch.device) -> BiEncoder | CrossEncoder:
    if not isinstance(given, (str, os.PathLike)):
        return given
    from munjang import checkpoint

    return (CrossEncoder if checkpoint.kind(given) == "cross" else BiEncoder).load(given, device=str(device))


def vectors_of(
    model: BiEncoder, examples: Examples, cache: Path | None = None, normalize: bool | None = None
) -> Floats:
    """Return the model's vectors of all texts [N, columns, D]; cached on disk by the fingerprints of both."""
    if cache is None:
        return _encode(model, examples, normalize)
    name = hashlib.blake2b(f"{model.fingerprint} {examples.fingerprint} {normalize}".encode(), digest_size=16)
    path = cache / f"{name.hexdigest()}.npy"
    if not path.exists():
        vectors = _encode(model, examples, normalize)
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(path, path.with_name(f"{path.name}.{os.getpid()}.tmp")) as file:
            write_npy(file, iter([VectorBlock(vectors)]), len(vectors))
    cached: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return cached


def _encode(model: BiEncoder, examples: Examples, normalize: bool | None) -> Floats:
    columns = [model.encode(column, normalize=normalize, progress=True) for column in examples.texts]
    vectors: Floats = np.stack(columns, axis=1)
    return vectors


def candidate_scores(teacher: CrossEncoder, examples: Examples) -> Examples:
    """Add a cross-encoder's logits of the first text with each of the others as scores: [N, K], or [N] for one pair."""
    if len(examples.texts) < 2:
        raise InputError(f"{examples.name} has one text column; a cross-encoder scores pairs.")
    queries, *others = examples.texts
    logits = [
        teacher.predict(list(zip(queries, other, strict=True)), activation="Identity", progress=True)
        for other in others
    ]
    scores = np.stack(logits, axis=1).astype(np.float64)
    return replace(examples, scores=scores[:, 0] if len(others) == 1 else scores)
