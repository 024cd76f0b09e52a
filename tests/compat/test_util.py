"""util, side by side with the incumbent's."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers import util as theirs

from munjang import compat
from munjang.compat import modules
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


def test_zero_and_sparse_vectors() -> None:
    zero = np.zeros((2, 8), np.float32)
    assert_same(ours.cos_sim(zero, random(3, 8)), theirs.cos_sim(zero, random(3, 8)))
    sparse = torch.from_numpy(random(3, 8)).relu().to_sparse()
    assert_same(ours.cos_sim(sparse, random(3, 8)), theirs.cos_sim(sparse, random(3, 8)), 1e-6)
    assert_same(ours.compute_count_vector(sparse), theirs.compute_count_vector(sparse))
    assert_same(ours.to_scipy_coo(sparse).toarray(), theirs.to_scipy_coo(sparse).toarray())
    assert_same(ours.select_max_active_dims(random(3, 8), 2), theirs.select_max_active_dims(random(3, 8), 2))


@pytest.mark.parametrize("name", ["maxsim", "mean_maxsim", "maxsim_pairwise", "mean_maxsim_pairwise"])
def test_late_interaction(name: str) -> None:
    lists = [[torch.from_numpy(random(length, 8, seed=length)) for length in some] for some in ((2, 5), (4, 1))]
    padded = [torch.nn.utils.rnn.pad_sequence(some, batch_first=True) for some in lists]
    mask = torch.tensor([[True, True, False, True], [True, False, False, False]])
    for a, b, options in ((*lists, {}), (*padded, {}), (lists[0], padded[1], {"b_mask": mask})):
        assert_same(getattr(ours, name)(a, b, **options), getattr(theirs, name)(a, b, **options), 1e-5)


def test_rows_of_a_table_and_names_of_functions(tmp_path: Path) -> None:
    for name, module in (("ours", ours), ("theirs", theirs)):
        path = tmp_path / f"{name}.csv"
        path.write_text("epoch,score\n0,0.5\n")
        assert module.append_to_last_row(str(path), [0.9])
    assert (tmp_path / "ours.csv").read_bytes() == (tmp_path / "theirs.csv").read_bytes()
    assert ours.similarity_fct_name(partial(ours.cos_sim, b=1)) == "cos_sim(b=1)"


def test_requirements_and_code_of_models() -> None:
    for module in (ours, theirs):
        module.check_version_requirements({"torch": ">=2", "python": ">=3.8"})
        with pytest.raises(ImportError, match=r'pip install -U "torch>=99"'):
            module.check_version_requirements({"torch": ">=99"}, "a model")
    with pytest.raises(InputError, match="never run"):
        ours.import_module_class("modeling.Own", "some/model", trust_remote_code=True)
    assert ours.import_module_class("sentence_transformers.models.Pooling") is modules.Pooling


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
    assert mine.possible_values() == other.possible_values()
    with pytest.raises(ValueError, match="'nothing' is not a valid SimilarityFunction"):
        mine.to_similarity_fn("nothing")


def test_logging_handler(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for handler in (compat.LoggingHandler(), sentence_transformers.LoggingHandler()):
        handler.emit(logging.LogRecord("name", logging.INFO, "path", 1, "a line", None, None))
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] == "a line\n"
