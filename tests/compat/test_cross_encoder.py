"""CrossEncoder, side by side with the incumbent."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch

import munjang
from munjang.compat import CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from tests.compat.compare import assert_same, assert_same_for_each
from tests.texts import mixed

Both = Callable[..., tuple[Any, Any]]
TEXTS = mixed(16)
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))
QUERY = "the quick brown fox"
INPUTS: dict[str, Any] = {
    "tuples": PAIRS,
    "lists": [list(pair) for pair in PAIRS],
    "tuple of tuples": tuple(PAIRS),
    "one in a list": PAIRS[:1],
    "one": PAIRS[0],
    "one as a list": list(PAIRS[0]),
    "array": np.array(PAIRS),
    "array of one": np.array(PAIRS[0]),
    "none": [],
    "empty texts": [("", ""), ("", "the")],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "tensor": {"convert_to_tensor": True},
    "list of tensors": {"convert_to_numpy": False},
    "logits": {"activation_fn": torch.nn.Identity()},
    "older name": {"activation_fct": torch.tanh},
    "softmax": {"apply_softmax": True},
    "softmax of logits": {"apply_softmax": True, "activation_fn": torch.nn.Identity(), "convert_to_tensor": True},
    "batches of two": {"batch_size": 2, "show_progress_bar": False},
    "prompt": {"prompt": "search for: "},
    "workers": {"num_workers": 4},
    "device": {"device": "cpu"},
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("num_labels", [1, 3])
def test_predict(both_scorers: Both, num_labels: int, inputs: Any) -> None:
    ours, theirs = both_scorers(num_labels)
    assert_same_for_each(OPTIONS, ours.predict, theirs.predict, inputs)


def test_predict_by_place_and_by_older_name(both_scorers: Both) -> None:
    ours, theirs = both_scorers(3)
    places = (None, "the: ", 8, False, torch.nn.Identity(), True, True, True)
    assert_same(ours.predict(PAIRS, *places), theirs.predict(PAIRS, *places))
    assert_same(ours.predict(sentences=PAIRS), theirs.predict(sentences=PAIRS))


RANKED: dict[str, dict[str, Any]] = {
    "default": {},
    "best three": {"top_k": 3},
    "more than there are": {"top_k": 300},
    "none of them": {"top_k": 0},
    "with documents": {"return_documents": True, "top_k": 5},
    "logits": {"activation_fn": torch.nn.Identity()},
    "prompt": {"prompt": "search for: ", "batch_size": 3, "show_progress_bar": False},
    "without effect": {"apply_softmax": True, "convert_to_tensor": True, "num_workers": 2, "convert_to_numpy": False},
}


@pytest.mark.parametrize("options", RANKED.values(), ids=RANKED)
def test_rank(both_scorers: Both, options: dict[str, Any]) -> None:
    ours, theirs = both_scorers(1)
    assert_same(ours.rank(QUERY, TEXTS, **options), theirs.rank(QUERY, TEXTS, **options))
    assert_same(ours.rank(QUERY, [], **options), theirs.rank(QUERY, [], **options))


def test_equal_scores_keep_their_order(both_scorers: Both) -> None:
    ours, _ = both_scorers(1)  # there they do too, but the same text in another batch may get another score
    assert [hit["corpus_id"] for hit in ours.rank(QUERY, ["the fox"] * 40)] == list(range(40))


def test_rank_needs_one_label(both_scorers: Both) -> None:
    for model in both_scorers(3):
        with pytest.raises(ValueError, match="predict"):
            model.rank(QUERY, TEXTS)


PROPERTIES = ["num_labels", "max_length", "max_seq_length", "device", "dtype", "prompts", "default_prompt_name"]
LOADED: dict[str, dict[str, Any]] = {
    "default": {},
    "labels": {"num_labels": 1},
    "labels in the configuration": {"config_kwargs": {"num_labels": 1}},
    "length": {"max_length": 16},
    "length of the tokenizer": {"tokenizer_args": {"model_max_length": 16}},
    "activation": {"activation_fn": torch.nn.Identity()},
    "activation by its older name": {"default_activation_function": torch.nn.Tanh()},
    "prompts": {"prompts": {"rank": "search for: "}, "default_prompt_name": "rank"},
    "bfloat16": {"automodel_args": {"dtype": torch.bfloat16}},
}


@pytest.mark.parametrize("options", LOADED.values(), ids=LOADED)
def test_constructor(make: Callable[..., Path], options: dict[str, Any]) -> None:
    folder = str(make("bert", kind="classifier", num_labels=1))
    ours = CrossEncoder(folder, device="cpu", **options)
    theirs = sentence_transformers.CrossEncoder(folder, device="cpu", **options)
    for name in PROPERTIES:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert type(ours.activation_fn) is type(theirs.activation_fn)
    assert type(ours.default_activation_function) is type(theirs.default_activation_function)
    assert type(ours.get_default_activation_fn()) is type(theirs.get_default_activation_fn())
    tolerance = 2e-5 if ours.dtype == torch.float32 else 0.2  # half precision rounds at other places
    assert_same(ours.predict(PAIRS), theirs.predict(PAIRS), tolerance)
    assert_same(ours.predict(PAIRS, convert_to_tensor=True), theirs.predict(PAIRS, convert_to_tensor=True), tolerance)


def test_older_places_of_arguments(make: Callable[..., Path]) -> None:
    folder = str(make("bert", kind="classifier", num_labels=1))
    places = (1, 16, torch.nn.Identity(), "cpu")
    ours, theirs = CrossEncoder(folder, *places), sentence_transformers.CrossEncoder(folder, *places)
    assert ours.max_seq_length == theirs.max_seq_length == 16
    assert_same(ours.predict(PAIRS), theirs.predict(PAIRS))


def test_settings_after_loading(make: Callable[..., Path]) -> None:
    folder = str(make("bert", kind="classifier", num_labels=1))
    models = CrossEncoder(folder, device="cpu"), sentence_transformers.CrossEncoder(folder, device="cpu")
    for model in models:
        model.activation_fn = torch.nn.Tanh()
        model.max_length = 20
    ours, theirs = models
    assert ours.get_max_seq_length() == theirs.get_max_seq_length() == 20
    assert_same(ours.predict(PAIRS), theirs.predict(PAIRS))
    again = pickle.loads(pickle.dumps(ours))
    assert_same(again.predict(PAIRS), ours.predict(PAIRS))
    with pytest.raises(InputError, match="function of a tensor"):
        ours.activation_fn = 3


def test_a_default_prompt_that_was_saved(make: Callable[..., Path], tmp_path: Path) -> None:
    folder = str(make("bert", kind="classifier", num_labels=1))
    options = {"prompts": {"rank": "search for: "}, "default_prompt_name": "rank"}
    sentence_transformers.CrossEncoder(folder, device="cpu", **options).save(str(tmp_path / "model"))
    ours = CrossEncoder(str(tmp_path / "model"), device="cpu")
    theirs = sentence_transformers.CrossEncoder(str(tmp_path / "model"), device="cpu")
    assert (ours.prompts, ours.default_prompt_name) == (theirs.prompts, theirs.default_prompt_name)
    assert_same(ours.predict(PAIRS), theirs.predict(PAIRS))
    ours.save(tmp_path / "again")
    for kind in (CrossEncoder, sentence_transformers.CrossEncoder):
        again = kind(str(tmp_path / "again"), device="cpu")
        assert (again.prompts, again.default_prompt_name) == (options["prompts"], "rank")
        assert_same(again.predict(PAIRS), theirs.predict(PAIRS))


def test_preprocess(both_scorers: Both) -> None:
    ours, theirs = both_scorers(1)
    for pairs in (PAIRS, [("a", "the " * 200)]):
        assert_same(ours.preprocess(pairs), dict(theirs.preprocess(pairs)))


@pytest.mark.parametrize("method", ["save", "save_pretrained"])
def test_saved_folders_load_under_both(make: Callable[..., Path], tmp_path: Path, method: str) -> None:
    ours = CrossEncoder(str(make("bert", kind="classifier", num_labels=1)), activation_fn=torch.nn.Identity())
    getattr(ours, method)(str(tmp_path / "model"))
    scores = ours.predict(PAIRS)
    for kind in (CrossEncoder, sentence_transformers.CrossEncoder):
        again = kind(str(tmp_path / "model"), device="cpu")
        assert isinstance(again.activation_fn, torch.nn.Identity)
        assert_same(again.predict(PAIRS), scores)
    ours.activation_fn = torch.sin
    with pytest.raises(UnsupportedModel, match="not on the list of safe ones"):
        ours.save(tmp_path / "sine")


@pytest.mark.parametrize("kind", ["plain", "bi"])
def test_new_heads(make: Callable[..., Path], kind: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = str(make("bert", kind=kind))
    for num_labels in (1, 3):
        ours = CrossEncoder(folder, num_labels=num_labels, device="cpu")
        theirs = sentence_transformers.CrossEncoder(folder, num_labels=num_labels, device="cpu")
        assert ours.num_labels == theirs.num_labels == num_labels
        assert type(ours.activation_fn) is type(theirs.activation_fn)
        assert ours.predict(PAIRS).shape == theirs.predict(PAIRS).shape
    assert "untrained" not in caplog.text
    for package in (munjang.compat, sentence_transformers):
        assert package.CrossEncoder(folder, device="cpu").num_labels == 1
    assert "a new, untrained head of 1 label is made" in caplog.text


def test_another_number_of_labels(make: Callable[..., Path]) -> None:
    folder = str(make("bert", kind="classifier", num_labels=3))
    with pytest.raises(InputError, match=r"munjang\.CrossEncoder\.create\(path, num_labels=1\)"):
        CrossEncoder(folder, num_labels=1)


@pytest.mark.parametrize("devices", [None, ["cpu", "cpu"]])
def test_pool_and_facade(both_scorers: Both, devices: list[str] | None) -> None:
    ours, theirs = both_scorers(1)
    pool = ours.start_multi_process_pool(devices)
    assert ("copies" in pool) == (devices is not None)
    assert_same(ours.predict(PAIRS, pool=pool, chunk_size=2), theirs.predict(PAIRS))
    assert_same(ours.rank(QUERY, TEXTS, pool=pool), theirs.rank(QUERY, TEXTS))
    ours.stop_multi_process_pool(pool)
    assert isinstance(ours.facade, munjang.CrossEncoder)


@pytest.mark.parametrize(
    ("option", "value", "word"), [("prompt_name", "none", "'none'"), ("batch_size", 0, "batch_size")]
)
def test_wrong_calls_are_value_errors_under_both(both_scorers: Both, option: str, value: Any, word: str) -> None:
    for model in both_scorers(1):
        with pytest.raises(ValueError, match=word):
            model.predict(PAIRS, **{option: value})


@pytest.mark.parametrize("inputs", [[("a", "b", "c")], [("a", 1)], [("a",)], 5])
def test_inputs_that_are_no_pairs(both_scorers: Both, inputs: Any) -> None:
    with pytest.raises(InputError):
        both_scorers(1)[0].predict(inputs)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "modules": ({"modules": [torch.nn.Identity()]}, r"munjang\.CrossEncoder\.create"),
    "backend": ({"backend": "openvino"}, "There is no other backend"),
    "config": ({"config_args": {"classifier_dropout": 0.5}}, r"config\.json"),
    "fp32": ({"keep_in_fp32_modules": ["0.model.classifier"]}, "always computes in float32"),
    "length": ({"max_length": 5000}, "at most 128"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_when_loading(make: Callable[..., Path], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrossEncoder(str(make("bert", kind="classifier", num_labels=1)), device="cpu", **options)


def test_bare_names_are_cross_encoders(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    folder = str(make("bert", kind="classifier", num_labels=1))
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: asked.append(name) or folder)
    CrossEncoder("ms-marco-MiniLM-L6-v2", device="cpu")
    assert asked == ["cross-encoder/ms-marco-MiniLM-L6-v2"]


def test_a_column_of_a_dataset(both_scorers):
    class Column:  # as datasets.Column: a sequence that is no list
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, place):
            return self.rows[place]

        def __iter__(self):
            return iter(self.rows)

    ours, _ = both_scorers()
    rows = [["a question", "an answer"], ["another", "one more"]]
    assert np.array_equal(ours.predict(Column(rows)), ours.predict(rows))
