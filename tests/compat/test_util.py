"""util, side by side with the incumbent's."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers import util as theirs

from munjang import compat
from munjang.compat import util as ours
from munjang.errors import InputError
from tests.compat.compare import assert_same

MATRIX = ["cos_sim", "pytorch_cos_sim", "dot_score", "euclidean_sim", "manhattan_sim"]
PAIRWISE = ["pairwise_cos_sim", "pairwise_dot_score", "pairwise_euclidean_sim", "pairwise_manhattan_sim"]


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def readonly(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS: dict[str, Callable[[Any], Any]] = {
    "array": lambda array: array,
    "read-only array": readonly,
    "tensor": torch.from_numpy,
    "list of arrays": list,
    "list of tensors": lambda array: list(torch.from_numpy(array)),
    "lists of numbers": lambda array: array.tolist(),
    "float64": lambda array: array.astype(np.float64),
    "float16": lambda array: torch.from_numpy(array).half(),
    "bfloat16": lambda array: torch.from_numpy(array).bfloat16(),
    "one vector": lambda array: array[0],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", [*MATRIX, *PAIRWISE])
def test_similarities(name: str, form: Callable[[Any], Any]) -> None:
    a, b = form(random(6, 8)), form(random(6, 8, seed=1))
    assert_same(getattr(ours, name)(a, b), getattr(theirs, name)(a, b), 1e-6)


def test_zero_vectors_and_bad_shapes() -> None:
    zero = np.zeros((2, 8), np.float32)
    assert_same(ours.cos_sim(zero, random(3, 8)), theirs.cos_sim(zero, random(3, 8)))
    with pytest.raises(InputError, match="sparse"):
        ours.cos_sim(torch.from_numpy(random(3, 8)).to_sparse(), zero)


SEARCHES: dict[str, dict[str, Any]] = {
    "default": {},
    "three": {"top_k": 3},
    "more than there are": {"top_k": 500},
    "small chunks": {"query_chunk_size": 2, "corpus_chunk_size": 7, "top_k": 5},
    "chunks smaller than top_k": {"corpus_chunk_size": 3, "top_k": 11},
}
SCORES = ["cos_sim", "dot_score", "euclidean_sim"]


@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("score", SCORES)
def test_semantic_search(score: str, options: dict[str, Any]) -> None:
    corpus, queries = random(60, 8), random(7, 8, seed=1)
    corpus[20:24] = corpus[3]  # ties, too, in the same order
    for form in (np.asarray, torch.from_numpy, list):
        mine = ours.semantic_search(form(queries), form(corpus), score_function=getattr(ours, score), **options)
        other = theirs.semantic_search(form(queries), form(corpus), score_function=getattr(theirs, score), **options)
        assert mine == other  # to the last bit
    assert ours.semantic_search(queries[0], corpus, **options) == theirs.semantic_search(queries[0], corpus, **options)


def test_semantic_search_with_a_function_of_ones_own() -> None:
    corpus, queries = torch.from_numpy(random(30, 8)), torch.from_numpy(random(4, 8, seed=1))

    def score(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b.T).abs()

    results = [util.semantic_search(queries, corpus, score_function=score, top_k=4) for util in (ours, theirs)]
    assert results[0] == results[1]
    assert ours.information_retrieval(queries, corpus) == theirs.information_retrieval(queries, corpus)


def test_semantic_search_over_nothing() -> None:
    nothing = np.zeros((0, 8), np.float32)
    assert ours.semantic_search(random(2, 8), nothing) == theirs.semantic_search(random(2, 8), nothing) == [[], []]
    assert ours.semantic_search(nothing, random(2, 8)) == theirs.semantic_search(nothing, random(2, 8)) == []
    with pytest.raises(InputError, match="at least 1"):
        ours.semantic_search(random(2, 8), random(2, 8), top_k=0)


@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
@pytest.mark.parametrize("given", ["ranges", "calibration_embeddings"])
def test_quantize_embeddings(precision: Any, given: str) -> None:
    calibration = random(200, 12, seed=1)
    options = {given: np.stack([calibration.min(0), calibration.max(0)]) if given == "ranges" else calibration}
    for form in (np.asarray, torch.from_numpy, list, lambda array: list(torch.from_numpy(array)), lambda a: a[:0]):
        vectors = form(random(30, 12))
        mine = ours.quantize_embeddings(vectors, precision, **options)
        assert_same(mine, theirs.quantize_embeddings(vectors, precision, **options))
    one = random(1, 12)[0]
    assert_same(
        ours.quantize_embeddings(one, precision, **options), theirs.quantize_embeddings(one, precision, **options)
    )
    tokens = [random(3, 12), random(5, 12)]
    assert_same(
        ours.quantize_embeddings(tokens, precision, **options), theirs.quantize_embeddings(tokens, precision, **options)
    )
    assert ours.quantize_embeddings([], precision) == theirs.quantize_embeddings([], precision) == []


def test_quantize_never_takes_the_range_of_the_batch() -> None:
    with pytest.raises(InputError, match="calibration_embeddings"):
        ours.quantize_embeddings(random(30, 12), "int8")
    for util in (ours, theirs):
        with pytest.raises(ValueError, match="calibration_embeddings"):
            util.quantize_embeddings(random(1, 12), precision="uint8")
        with pytest.raises(ValueError, match="int3"):
            util.quantize_embeddings(random(3, 12), precision="int3")
    with pytest.raises(InputError, match="should be floats"):
        ours.quantize_embeddings(np.zeros((2, 12), np.int8), "binary")


def test_tensors() -> None:
    tensor = torch.from_numpy(random(5, 8))
    assert_same(ours.normalize_embeddings(tensor), theirs.normalize_embeddings(tensor))
    for vectors in (tensor, tensor.numpy(), tensor[0]):
        for dim in (3, None, 100):
            assert_same(ours.truncate_embeddings(vectors, dim), theirs.truncate_embeddings(vectors, dim))
    batch = {"input_ids": tensor, "modality": "text"}
    assert_same(ours.batch_to_device(dict(batch), "cpu"), theirs.batch_to_device(dict(batch), "cpu"))
    assert ours.get_device_name() == theirs.get_device_name()


def test_similarity_function() -> None:
    mine, other = compat.SimilarityFunction, sentence_transformers.SimilarityFunction
    vectors = random(4, 8)
    for name in ("COSINE", "DOT_PRODUCT", "DOT", "EUCLIDEAN", "MANHATTAN"):
        assert mine[name].value == other[name].value
        value = mine[name].value
        assert_same(mine.to_similarity_fn(value)(vectors, vectors), other.to_similarity_fn(value)(vectors, vectors))
        pairwise = (kind.to_similarity_pairwise_fn(kind[name])(vectors, vectors[::-1].copy()) for kind in (mine, other))
        assert_same(*pairwise)
    assert mine.possible_values() == ["cosine", "dot", "euclidean", "manhattan"]
    with pytest.raises(ValueError, match="'nothing' is not a valid SimilarityFunction"):
        mine.to_similarity_fn("nothing")


def test_logging_handler(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for handler in (compat.LoggingHandler(), sentence_transformers.LoggingHandler()):
        handler.emit(logging.LogRecord("name", logging.INFO, "path", 1, "a line", None, None))
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] == "a line\n"
