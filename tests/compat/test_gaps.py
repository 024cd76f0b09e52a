"""Every name of the incumbent is covered or says the way; nothing is missing silently."""

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers
from sentence_transformers import util as their_util

import munjang
from munjang import compat
from munjang.compat import gaps, util

Both = Callable[..., tuple[Any, Any]]


@pytest.mark.parametrize("name", sorted(sentence_transformers.__all__))
def test_every_public_name(name: str) -> None:
    if name in {*compat.__all__, *compat.LAZY}:
        assert getattr(compat, name).__name__ == name
    else:
        with pytest.raises(ImportError, match=f"munjang.compat does not cover {name}. "):
            getattr(compat, name)


@pytest.mark.parametrize("name", sorted(name for name in their_util.__all__ if name[0] != "_"))
def test_every_name_of_util(name: str) -> None:
    if name in (*util.__all__, *util.OF_THE_HUB):
        assert hasattr(util, name)
    else:
        with pytest.raises(ImportError, match=f"munjang.compat.util does not cover {name}. "):
            getattr(util, name)


@pytest.mark.parametrize("kind", ["SentenceTransformer", "CrossEncoder"])
def test_every_method_and_attribute(kind: str, both: Both, both_scorers: Both) -> None:
    ours, theirs = both("bert") if kind == "SentenceTransformer" else both_scorers(1)
    public = {name for name in [*dir(type(theirs)), *vars(theirs)] if name[0] != "_"}
    missing = {name for name in public if not hasattr(ours, name)}
    for name in missing:
        with pytest.raises(gaps.NotCovered, match=f"does not cover {kind}.{name}. "):
            getattr(ours, name)
    assert not missing & {"evaluate", "push_to_hub", "parameters", "forward", "compile", "transformers_model"}
    expected = {"predict", "rank"} if kind == "CrossEncoder" else {"encode", "encode_query", "similarity"}
    assert not missing & (expected | {"save", "to", "device", "tokenize", "max_seq_length"})
    with pytest.raises(AttributeError, match=f"'{kind}' object has no attribute 'nothing'"):
        ours.nothing  # noqa: B018  # the access is the test


METHODS = {
    "SentenceTransformer": [
        "__init__",
        "encode",
        "encode_query",
        "encode_document",
        "encode_multi_process",
        "similarity",
        "similarity_pairwise",
        "save",
        "save_pretrained",
        "preprocess",
        "start_multi_process_pool",
        "stop_multi_process_pool",
        "truncate_embeddings",
        "set_pooling_include_prompt",
    ],
    "CrossEncoder": ["__init__", "predict", "rank", "save", "save_pretrained", "start_multi_process_pool"],
    "util": sorted(
        {name for name in util.__all__ if inspect.isfunction(getattr(util, name)) and name[0] != "_"}
        - {"information_retrieval", "save_to_hub_args_decorator"}
    ),
}


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in METHODS.items() for name in names])
def test_signatures(owner: str, name: str) -> None:
    ours = inspect.signature(getattr(getattr(compat, owner), name))
    theirs = inspect.signature(getattr(getattr(sentence_transformers, owner), name))
    places = [each for each in theirs.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    named = [
        each.name for each in theirs.parameters.values() if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    ours.bind(**dict.fromkeys(named))  # a parameter that we lack raises
    ours.bind(*[None for _ in places])
    for each in ours.parameters.values():
        if each.name in theirs.parameters:  # and the defaults are theirs
            default = theirs.parameters[each.name].default
            same = default.__name__ == each.default.__name__ if callable(default) else default == each.default
            assert same or default is each.default, each.name


def test_encode_query_takes_what_encode_takes(both: Both) -> None:
    ours, theirs = both("bert")
    options = dict(list(inspect.signature(type(theirs).encode_query).parameters.items())[2:-1])
    call = {name: each.default for name, each in options.items()}
    for method in ("encode_query", "encode_document"):
        assert getattr(ours, method)("one", **call).shape == (32,)
        assert getattr(ours, method)("one", *call.values()).shape == (32,)


WAYS = {
    "ParallelSentencesDataset": "`munjang train`",
    "SparseEncoder": "munjang.SparseEncoder.load",
    "MultiVectorEncoder": "munjang.MultiVectorEncoder.load",
    "export_optimized_onnx_model": "munjang export MODEL --to onnx",
}


@pytest.mark.parametrize(("name", "way"), WAYS.items())
def test_imports_name_the_way(name: str, way: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from munjang.compat import {name}")
    assert isinstance(caught.value, munjang.errors.MunjangError)
    assert way in str(caught.value)


@pytest.mark.parametrize("module", ["backend", "sparse_encoder", "multi_vector_encoder"])
def test_imports_from_modules_name_the_way(module: str) -> None:
    with pytest.raises(ImportError, match=f"munjang.compat does not cover {module}. "):
        importlib.import_module(f"munjang.compat.{module}")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'munjang\.compat\.nothing'"):
        importlib.import_module("munjang.compat.nothing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compat.nothing  # noqa: B018


def test_modules_that_we_have() -> None:
    from munjang.compat.cross_encoder import CrossEncoder
    from munjang.compat.quantization import quantize_embeddings
    from munjang.compat.similarity_functions import SimilarityFunction
    from munjang.compat.util import cos_sim

    assert (CrossEncoder, SimilarityFunction) == (compat.CrossEncoder, compat.SimilarityFunction)
    assert (quantize_embeddings, cos_sim) == (compat.quantize_embeddings, util.cos_sim)
    with pytest.raises(ImportError, match="semantic_search finds the nearest"):
        from munjang.compat.quantization import semantic_search_faiss  # noqa: F401


def test_models_name_the_way(both: Both, both_scorers: Both) -> None:
    ours, _ = both("bert")
    ways: dict[str, Callable[[], Any]] = {
        "Train with munjang.train": lambda: ours.add_adapter(None),
        "There is no transformers model inside": lambda: both_scorers(1)[0].model,
    }
    for way, call in ways.items():
        with pytest.raises(gaps.NotCovered) as caught:
            call()
        assert way in str(caught.value)
    assert not hasattr(ours, "add_adapter")


def test_every_replacement_is_there() -> None:
    """What the errors name can be imported, and the commands and documents exist."""
    from munjang.cli import VERBS

    ways = {*gaps.WAY_OF_NAME.values(), *gaps.WAY_OF_ATTRIBUTE.values(), gaps.MODULES, gaps.TOKENS, gaps.HEADS}
    ways |= {gaps.STATIC, gaps.NETWORK}
    named = {found for way in ways for found in re.findall(r"\bmunjang(?:\.\w+)+", way)}
    assert len(named) >= 8
    for path in named:
        found: Any = munjang
        for at, part in enumerate(path.split(".")[1:], 2):
            try:
                found = getattr(found, part)
            except AttributeError:
                found = importlib.import_module(".".join(path.split(".")[:at]))
    for way in ways:
        assert set(re.findall(r"`munjang (\w+)", way)) <= set(VERBS)
        for document in re.findall(r"docs/[\w/.-]+\.md", way):
            assert (Path(munjang.__file__).parents[1] / document).is_file()
