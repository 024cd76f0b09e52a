"""encode and its relatives, side by side with the incumbent."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from munjang.compat import SentenceTransformer, pools
from munjang.errors import InputError, TruncationWarning
from tests.compat.compare import assert_same, assert_same_for_each
from tests.compat.conftest import PROMPTS
from tests.texts import mixed

Both = Callable[..., tuple[Any, Any]]
TEXTS = [*mixed(20), "", " ", "one", "one"]
INPUTS = {
    "list": TEXTS,
    "one in a list": ["the quick brown fox"],
    "tuple": tuple(TEXTS[:3]),
    "string": "the quick brown fox",
    "numpy string": np.str_("the quick brown fox"),
    "array": np.array(TEXTS[:4]),
    "array of objects": np.array(TEXTS[:4], dtype=object),
    "empty list": [],
    "blank": "",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "tensor": {"convert_to_tensor": True},
    "tensor and numpy": {"convert_to_tensor": True, "convert_to_numpy": True},
    "list of tensors": {"convert_to_numpy": False},
    "normalized": {"normalize_embeddings": True},
    "truncated": {"truncate_dim": 8},
    "truncated and normalized": {"truncate_dim": 8, "normalize_embeddings": True, "convert_to_tensor": True},
    "more than all dimensions": {"truncate_dim": 1000},
    "batches of two": {"batch_size": 2},
    "prompt": {"prompt": "search for: "},
    "tokens": {"output_value": "token_embeddings"},
    "tokens, whatever else": {"output_value": "token_embeddings", "convert_to_tensor": True, "truncate_dim": 4},
    "binary": {"precision": "binary"},
    "ubinary": {"precision": "ubinary", "convert_to_tensor": True},
    "binary rows": {"precision": "binary", "convert_to_numpy": False},
    "binary tokens": {"precision": "ubinary", "output_value": "token_embeddings"},
    "device": {"device": "cpu"},
    "task": {"task": "query"},
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
def test_same_result(both: Both, inputs: Any) -> None:
    ours, theirs = both("bert", pooling="mean", normalize=False)
    assert_same_for_each(OPTIONS, ours.encode, theirs.encode, inputs)


@pytest.mark.parametrize("family", ["bert", "roberta", "qwen3"])
def test_same_result_of_other_models(both: Both, family: str) -> None:
    ours, theirs = both(family)
    assert_same_for_each(OPTIONS, ours.encode, theirs.encode, TEXTS)


def test_arguments_by_place_and_by_their_old_name(both: Both) -> None:
    ours, theirs = both("bert", normalize=False)
    places = (None, "search for: ", 8, False, "sentence_embedding", "float32", True, False, "cpu", True, 8)
    assert_same(ours.encode(TEXTS, *places), theirs.encode(TEXTS, *places))
    assert_same(ours.encode(sentences=TEXTS), theirs.encode(sentences=TEXTS))
    assert_same(ours.encode(inputs=TEXTS, sentences="x"), theirs.encode(inputs=TEXTS, sentences="x"))
    with pytest.raises(TypeError):
        ours.encode()


@pytest.mark.parametrize("prompt", [None, "search for: "])
def test_everything_of_a_text(both: Both, prompt: str | None) -> None:
    ours, theirs = both("bert", pooling="mean", normalize=False, include_prompt=False)
    for text in TEXTS[:5]:  # one at a time, because there the padding of a batch is part of the result
        options = {"output_value": None, "prompt": prompt, "truncate_dim": 8}
        assert_same(ours.encode(text, **options), theirs.encode(text, **options))
    many, padded = ours.encode(TEXTS[:5], output_value=None), theirs.encode(TEXTS[:5], output_value=None)
    for row, other in zip(many, padded, strict=True):
        assert_same(row["sentence_embedding"], other["sentence_embedding"])
        assert_same(row["input_ids"], other["input_ids"][other["attention_mask"].bool()])
    assert_same(ours.encode([], output_value=None), theirs.encode([], output_value=None))


@pytest.mark.parametrize("includes", [True, False])
@pytest.mark.parametrize("method", ["encode", "encode_query", "encode_document"])
def test_prompts(both: Both, method: str, includes: bool) -> None:
    ours, theirs = both("bert", pooling="mean", normalize=False, include_prompt=includes, prompts=PROMPTS)
    assert ours.prompts == theirs.prompts
    texts = [text for text in TEXTS if text.strip()][:8]
    for options in (
        {},
        {"prompt_name": "query"},
        {"prompt_name": "passage"},
        {"prompt": "a: "},
        {"prompt": "a: ", "prompt_name": "query"},
        {"prompt": "a: ", "output_value": "token_embeddings"},
        {"convert_to_tensor": True, "normalize_embeddings": True},
    ):
        mine, other = getattr(ours, method), getattr(theirs, method)
        assert_same(mine(texts, **options), other(texts, **options))
        assert_same(mine(texts[0], **options), other(texts[0], **options))
        assert_same(mine(sentences=texts, **options), other(sentences=texts, **options))
    assert_same(mine(texts, None, "a: ", 2), other(texts, None, "a: ", 2))


def test_precisions_with_ranges(both: Both) -> None:
    ours, _ = both("bert")
    for precision, low in (("int8", -128), ("uint8", 0)):
        with pytest.raises(ValueError, match="calibrate"):
            ours.encode(TEXTS, precision=precision)
        ours.facade.calibrate(mixed(50, seed=1))
        codes, again = ours.encode(TEXTS, precision=precision), ours.encode(TEXTS[3], precision=precision)
        assert (codes.dtype, codes.shape) == (np.dtype(precision), (len(TEXTS), 32))
        assert codes.min() == low
        assert np.array_equal(codes[3], again)  # one text alone gets the same code
        tensor = ours.encode(TEXTS, precision=precision, convert_to_tensor=True)
        assert np.array_equal(tensor.numpy(), codes)
        ours.facade.model.ranges = None


def test_a_pool_has_a_copy_on_each_device(both: Both) -> None:
    ours, theirs = both("bert")
    expected = theirs.encode(TEXTS, normalize_embeddings=True)
    pool = ours.start_multi_process_pool(["cpu", "cpu"])
    assert pool["processes"] == ["cpu", "cpu"]
    child = pool["copies"]._engine.replicas.others[0].process.child
    assert child.poll() is None
    assert_same(ours.encode(TEXTS, pool=pool, chunk_size=3, normalize_embeddings=True), expected)
    assert_same(ours.encode_multi_process(TEXTS, pool, normalize_embeddings=True), expected)
    assert_same(ours.encode(TEXTS, device=["cpu", "cpu"], normalize_embeddings=True), expected)
    many = TEXTS * 3000
    assert_same(ours.encode(many, pool=pool, normalize_embeddings=True)[-len(TEXTS) :], expected)
    ours.stop_multi_process_pool(pool)
    assert child.poll() is not None
    alone = ours.start_multi_process_pool()
    assert "copies" not in alone  # one CPU: the model itself uses all its cores
    assert_same(ours.encode(TEXTS, pool=alone, normalize_embeddings=True), expected)
    with pytest.raises(InputError, match="start_multi_process_pool"):
        ours.encode(TEXTS, pool=pool)


def test_a_pool_of_what_cannot_be_copied(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [*both("bert")[0], torch.nn.Identity()]
    model = SentenceTransformer(modules=blocks, device="cpu")
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    assert "copies" not in pool
    assert_same(model.encode(TEXTS, pool=pool), both("bert")[1].encode(TEXTS))
    monkeypatch.setattr(pools, "full_device", torch.device)  # so that there is a second kind of device
    with pytest.raises(InputError, match="modules of its own"):
        model.start_multi_process_pool(["cpu", "meta"])


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {  # and a word of the message under both
    "unknown prompt": (TEXTS, {"prompt_name": "nothing"}, "nothing"),
    "unknown precision": (TEXTS, {"precision": "int4"}, "int4"),
    "unknown argument": (TEXTS, {"flavour": 1}, "flavour"),
    "batch size": (TEXTS, {"batch_size": 0}, "batch_size"),
    "numbers": ([1, 2], {}, "int"),
    "int8 of one text": ("one", {"precision": "int8"}, "range"),
}


@pytest.mark.parametrize(("inputs", "options", "word"), WRONG.values(), ids=WRONG)
def test_wrong_calls_are_value_errors_under_both(both: Both, inputs: Any, options: dict[str, Any], word: str) -> None:
    for model in both("bert"):
        with pytest.raises(ValueError, match=word):
            model.encode(inputs, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda:7"}, "cuda:7"),
        ({"device": ["cpu", "meta"]}, "Unknown device 'meta'"),
        ({"output_value": "layers"}, "Unknown output_value 'layers'"),
        ({"processing_kwargs": {"text": {"max_length": 8}}}, "max_seq_length"),
        ({"truncate_dim": 0}, "truncate_dim"),
        ({"precision": "int8"}, "calibrate"),
    ],
)
def test_what_would_be_ignored_is_refused(both: Both, options: dict[str, Any], message: str) -> None:
    ours, _ = both("bert")
    with pytest.raises(InputError, match=message):
        ours.encode(TEXTS, **options)
    with pytest.raises(InputError, match="Drop or fill missing"):
        ours.encode(["a", None])


def test_cut_texts_are_reported(both: Both) -> None:
    ours, theirs = both("bert")
    with pytest.warns(TruncationWarning, match="1 of 2 texts"):
        mine = ours.encode(["the " * 200, "short"])
    assert_same(mine, theirs.encode(["the " * 200, "short"]))


def test_progress_as_the_log_level_says(both: Both, caplog: pytest.LogCaptureFixture) -> None:
    ours, _ = both("bert")
    assert [ours._progress(show) for show in (None, True, False)] == [False, True, False]
    with caplog.at_level("INFO"):
        assert [ours._progress(show) for show in (None, True, False)] == [True, True, False]
    assert_same(ours.encode("one", show_progress_bar=True), ours.encode("one"))


def test_tensors_stay_usable_for_training_on_top(both: Both) -> None:
    ours, _ = both("bert")
    layer = torch.nn.Linear(32, 2)
    layer(ours.encode(TEXTS, convert_to_tensor=True)).sum().backward()
    assert layer.weight.grad is not None


def test_pairs_of_texts_are_read_together(both: Both) -> None:
    ours, theirs = both("bert")
    pairs = [("a quick fox", "jumps over"), ("the cat", "the lazy dog and the cat")]
    for given in (pairs, [list(pair) for pair in pairs], np.array(pairs)):
        assert_same(ours.encode(given), theirs.encode(given), 3e-6)
