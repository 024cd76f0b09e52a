"""Types that the public calls return, for a type checker and at run time. mypy checks this file with the package."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor

from munjang import BiEncoder, CrossEncoder, Index, TokenIds, TrainConfig, evaluate, train
from munjang.errors import InputError, UnknownArgument
from munjang.evaluation import Report, Settings
from munjang.evaluation.kinds.base import EvaluateOptions
from munjang.types import Hit

Floats = NDArray[np.float32]
TEXTS = ["a", "b c", "d"]
PAIRS = [("a", "b"), ("c", "d")]


def test_encode(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert)
    one = assert_type(model.encode("a"), Floats)
    many = assert_type(model.encode(TEXTS, normalize=True, batch_tokens=64), Floats)
    ready = assert_type(model.encode(TokenIds([[1, 2]])), Floats)
    assert (one.ndim, many.shape[0], ready.shape[0]) == (1, 3, 1)
    stream = assert_type(model.encode(iter(TEXTS), chunk_rows=2), Iterator[Floats])
    assert [len(rows) for rows in stream] == [2, 1]
    codes = assert_type(model.encode(TEXTS, precision="binary"), NDArray[np.generic])
    assert codes.dtype == np.int8
    there = assert_type(model.encode(TEXTS, output="torch"), Tensor)
    assert there.shape == many.shape
    parts = assert_type(model.encode(iter(TEXTS), output="torch", chunk_rows=2), Iterator[Tensor])
    assert sum(len(rows) for rows in parts) == 3
    tokens = assert_type(model.encode(TEXTS, output="tokens"), list[Floats])
    lone = assert_type(model.encode("a", output="tokens"), Floats)
    assert (len(tokens), lone.ndim) == (3, 2)


def test_encode_with_a_role(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert)
    query = assert_type(model.encode_query("a"), Floats)
    documents = assert_type(model.encode_document(TEXTS, progress=False), Floats)
    stream = assert_type(model.encode_document(iter(TEXTS)), Iterator[Floats])
    assert (query.ndim, len(documents), len(list(stream))) == (1, 3, 1)


def test_similarity(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert)
    assert isinstance(assert_type(model.similarity("a", "b"), float), float)
    assert assert_type(model.similarity(TEXTS, TEXTS), Floats).shape == (3, 3)
    assert assert_type(model.similarity_pairwise(TEXTS, TEXTS), Floats).shape == (3,)


def test_predict_and_rank(tiny_bert: Path) -> None:
    scorer = CrossEncoder.create(tiny_bert, device="cpu")
    assert np.isscalar(assert_type(scorer.predict(("a", "b")), np.float32 | Floats))
    assert assert_type(scorer.predict(PAIRS, activation="Identity"), Floats).shape == (2,)
    hits = assert_type(scorer.rank("a", TEXTS, top_k=2), list[Hit])
    both = assert_type(scorer.rank_many(["a", "b"], [TEXTS, TEXTS]), list[list[Hit]])
    assert (len(hits), len(both)) == (2, 2)


def test_search(tiny_bert: Path) -> None:
    index = Index.open("memory:", BiEncoder.load(tiny_bert))
    index.add(TEXTS)
    hits = assert_type(index.search("a", k=2), list[Hit])
    both = assert_type(index.search(["a", "b"], 2, candidates=3), list[list[Hit]])
    assert (len(hits), len(both)) == (2, 2)


def test_train_and_evaluate(tiny_bert: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t0\n", encoding="utf-8")
    config = TrainConfig(max_steps=1, quiet=True)
    model = assert_type(train(BiEncoder.load(tiny_bert), file, "regression", config), BiEncoder)
    scorer = assert_type(train(CrossEncoder.create(tiny_bert, device="cpu"), file, "cross_bce", config), CrossEncoder)
    assert scorer.num_labels == 1
    report = assert_type(evaluate(model, file, kind="sts"), Report)
    assert report.rows == 2


@pytest.mark.parametrize(
    ("argument", "ours"),
    [
        ("batch_size", "batch_tokens="),
        ("convert_to_tensor", "output='torch'"),
        ("show_progress_bar", "progress="),
        ("normalize_embeddings", "normalize=True"),
        ("normalise", "Did you mean 'normalize'"),
    ],
)
def test_arguments_of_the_incumbent_are_answered_with_ours(tiny_bert: Path, argument: str, ours: str) -> None:
    model = BiEncoder.load(tiny_bert)
    for call in (model.encode, model.encode_query, model.encode_document):
        with pytest.raises(UnknownArgument, match=rf"encode\(\) has no argument {argument}=.*{ours}") as caught:
            call(TEXTS, **{argument: True})  # type: ignore[call-overload]  # the point
        assert isinstance(caught.value, InputError | TypeError)


def test_of_ranking_and_searching_too(tiny_bert: Path) -> None:
    scorer = CrossEncoder.create(tiny_bert, device="cpu")
    with pytest.raises(UnknownArgument, match=r"predict\(\) has no argument activation_fn=: activation="):
        scorer.predict(PAIRS, activation_fn=None)  # type: ignore[call-overload]
    with pytest.raises(UnknownArgument, match=r"rank\(\) has no argument return_documents=: nothing is needed"):
        scorer.rank("a", TEXTS, return_documents=True)  # type: ignore[call-arg]
    index = Index.open("memory:", BiEncoder.load(tiny_bert))
    with pytest.raises(UnknownArgument, match=r"search\(\) has no argument top_k=: k="):
        index.search("a", top_k=3)  # type: ignore[call-overload]


def test_options_of_evaluate_are_its_settings() -> None:
    options = {name: getattr(kind, "__forward_arg__", kind) for name, kind in EvaluateOptions.__annotations__.items()}
    assert {field.name: field.type for field in fields(Settings)} == options
