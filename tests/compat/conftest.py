"""Load one tiny model under both imports."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers

from munjang import compat
from munjang.bi_encoder import BiEncoder

PROMPTS = '{"query": "search for: ", "passage": "text: "}'


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Their deprecations, and our count of texts that were cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def both(make: Callable[..., Path]) -> Callable[..., tuple[Any, Any]]:
    """`both("bert", prompts=...)`: ours and theirs of a tiny bi-encoder, made once; leave them as they are."""
    made: dict[Any, tuple[Any, Any]] = {}

    def load(family: str = "bert", **options: Any) -> tuple[Any, Any]:
        key = (family, *sorted(options.items()))
        if key not in made:
            folder = str(make(family, **options))
            packages = (compat, sentence_transformers)
            made[key] = tuple(package.SentenceTransformer(folder, device="cpu") for package in packages)
        return made[key]

    return load


@pytest.fixture(scope="session")
def both_scorers(make: Callable[..., Path]) -> Callable[..., tuple[Any, Any]]:
    """`both_scorers(num_labels=3)`: ours and theirs of a tiny cross-encoder; leave them as they are."""
    made: dict[int, tuple[Any, Any]] = {}

    def load(num_labels: int = 1) -> tuple[Any, Any]:
        if num_labels not in made:
            folder = str(make("bert", kind="classifier", num_labels=num_labels))
            packages = (compat, sentence_transformers)
            made[num_labels] = tuple(package.CrossEncoder(folder, device="cpu") for package in packages)
        return made[num_labels]

    return load


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    """A tiny model of ours with prompts, for the frameworks."""
    loaded = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    loaded.prompts = {"query": "over: ", "document": "jumps: "}
    return loaded
