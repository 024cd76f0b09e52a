"""What other models say of the examples, computed once before training: a teacher's or guide's vectors, scores."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.files import replacing
from munjang.data.vectors import Part, write_npy
from munjang.errors import InputError
from munjang.types import Floats


def vectors_of(
    model: BiEncoder, examples: Examples, cache: Path | None = None, normalize: bool | None = None
) -> Floats:
    """The model's vectors of all texts [N, columns, D]; kept on disk under the name of both, if there is a folder."""
    if cache is None:
        return _encode(model, examples, normalize)
    name = hashlib.blake2b(f"{model.fingerprint} {examples.fingerprint} {normalize}".encode(), digest_size=16)
    path = cache / f"{name.hexdigest()}.npy"
    if not path.exists():
        vectors = _encode(model, examples, normalize)
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(path, path.with_name(f"{path.name}.{os.getpid()}.tmp")) as file:
            write_npy(file, iter([Part(vectors)]), len(vectors))
    found: Floats = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def _encode(model: BiEncoder, examples: Examples, normalize: bool | None) -> Floats:
    columns = [model.encode(column, normalize=normalize, progress=True) for column in examples.texts]
    vectors: Floats = np.stack(columns, axis=1)
    return vectors


def candidate_scores(teacher: CrossEncoder, examples: Examples) -> Examples:
    """A cross-encoder's logits of the first text with each of the others, as scores [N, K]; one pair: [N]."""
    if len(examples.texts) < 2:
        raise InputError(f"{examples.name} has one text column; a cross-encoder scores pairs.")
    queries, *others = examples.texts
    found = [
        teacher.predict(list(zip(queries, other, strict=True)), activation="Identity", progress=True)
        for other in others
    ]
    scores = np.stack(found, axis=1).astype(np.float64)
    return replace(examples, scores=scores[:, 0] if len(others) == 1 else scores)
