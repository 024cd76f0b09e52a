"""Loading, settings, similarity and saving, side by side with the incumbent."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch

from munjang import BiEncoder, compat
from munjang.compat import SentenceTransformer, SimilarityFunction
from munjang.compat.gaps import NotCovered
from munjang.errors import CheckpointError, InputError
from tests.compat.compare import assert_same
from tests.compat.conftest import PROMPTS
from tests.texts import mixed

Both = Callable[..., tuple[Any, Any]]
TEXTS = mixed(12)


def load_both(folder: Path, **options: Any) -> tuple[Any, Any]:
    packages = (compat, sentence_transformers)
    ours, theirs = (package.SentenceTransformer(str(folder), device="cpu", **options) for package in packages)
    return ours, theirs


PROPERTIES = [
    "device",
    "dtype",
    "prompts",
    "default_prompt_name",
    "similarity_fn_name",
    "max_seq_length",
    "truncate_dim",
    "backend",
    "model_type",
]
METHODS = [
    "get_max_seq_length",
    "get_embedding_dimension",
    "get_sentence_embedding_dimension",
    "get_backend",
    "get_model_kwargs",
]
LOADED: dict[str, dict[str, Any]] = {
    "default": {},
    "prompts": {"prompts": {"query": "q: ", "other": "o: "}, "default_prompt_name": "other"},
    "similarity": {"similarity_fn_name": "dot"},
    "similarity as enum": {"similarity_fn_name": sentence_transformers.SimilarityFunction.EUCLIDEAN},
    "truncated": {"truncate_dim": 6},
    "truncated to more than there is": {"truncate_dim": 600},
    "length": {"processor_kwargs": {"model_max_length": 20}},
    "length by its older name": {"tokenizer_kwargs": {"model_max_length": 20}},
    "defaults said aloud": {
        "modules": None,
        "cache_folder": None,
        "trust_remote_code": False,
        "revision": None,
        "local_files_only": True,
        "token": None,
        "model_kwargs": {},
        "config_kwargs": None,
        "model_card_data": None,
        "backend": "torch",
    },
    "float16": {"model_kwargs": {"torch_dtype": torch.float16}},
    "bfloat16": {"model_kwargs": {"dtype": "bfloat16"}},
    "auto": {"model_kwargs": {"torch_dtype": "auto"}},
}


@pytest.mark.parametrize("options", LOADED.values(), ids=LOADED)
def test_constructor(make: Callable[..., Path], options: dict[str, Any]) -> None:
    folder = make("bert", prompts=PROMPTS)
    value = options.get("similarity_fn_name")
    mine = {**options, "similarity_fn_name": SimilarityFunction(value.value)} if hasattr(value, "value") else options
    ours = SentenceTransformer(str(folder), device="cpu", **mine)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu", **options)
    for name in PROPERTIES:
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in METHODS:
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    # half precision rounds at other places, and weights drawn wide make much of it
    tolerance = {torch.float32: 2e-5, torch.float16: 0.05, torch.bfloat16: 0.2}[ours.dtype]
    for call in ({}, {"convert_to_tensor": True}, {"output_value": "token_embeddings"}):
        assert_same(ours.encode(TEXTS, **call), theirs.encode(TEXTS, **call), tolerance)
    assert_same(ours.encode_query(TEXTS), theirs.encode_query(TEXTS), tolerance)


def test_dtype_is_the_checkpoints_own(make: Callable[..., Path], tmp_path: Path) -> None:
    shutil.copytree(make("bert"), tmp_path / "half")
    config = json.loads((tmp_path / "half/config.json").read_text())
    (tmp_path / "half/config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    ours, theirs = load_both(tmp_path / "half")
    assert ours.dtype == theirs.dtype == torch.bfloat16


def test_saved_settings_are_read(make: Callable[..., Path], tmp_path: Path) -> None:
    settings = {"similarity_fn_name": "manhattan", "truncate_dim": 5, "default_prompt_name": "passage"}
    _, theirs = load_both(make("bert", prompts=PROMPTS), **settings)
    theirs.save(str(tmp_path / "model"), create_model_card=False)
    ours, theirs = load_both(tmp_path / "model")
    for name in PROPERTIES:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert_same(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert_same(ours.encode("a", output_value="token_embeddings"), theirs.encode("a", output_value="token_embeddings"))


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity(both: Both, name: str) -> None:
    ours, theirs = both("bert", normalize=False)
    vectors = theirs.encode(TEXTS)
    tensors = torch.from_numpy(vectors)
    ours.similarity_fn_name = theirs.similarity_fn_name = name
    sides = [(vectors, vectors[:3]), (tensors, vectors), (vectors[0], vectors), (list(vectors), list(tensors))]
    for a, b in sides:
        assert_same(ours.similarity(a, b), theirs.similarity(a, b))
    for a, b in ((vectors, tensors), (vectors[0], vectors[1]), (list(vectors), list(vectors[::-1]))):
        assert_same(ours.similarity_pairwise(a, b), theirs.similarity_pairwise(a, b))
    ours.similarity_fn_name = theirs.similarity_fn_name = None
    assert ours.similarity_fn_name == theirs.similarity_fn_name == "cosine"
    for model in (ours, theirs):
        with pytest.raises(ValueError, match="maxsim"):
            model.similarity_fn_name = "maxsim"


def test_settings_after_loading(make: Callable[..., Path]) -> None:
    ours, theirs = load_both(make("bert", include_prompt=True, prompts=PROMPTS, normalize=False))
    for model in (ours, theirs):
        model.max_seq_length = 12
        model.prompts["new"] = "the new: "
        model.default_prompt_name = "new"
        model.set_pooling_include_prompt(False)
    assert ours.get_max_seq_length() == theirs.get_max_seq_length() == 12
    assert_same(ours.encode(TEXTS), theirs.encode(TEXTS))
    for context in ("truncate_embeddings", "truncate_sentence_embeddings"):
        with getattr(ours, context)(7), getattr(theirs, context)(truncate_dim=7):
            assert ours.get_embedding_dimension() == 7
            assert_same(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert ours.truncate_dim is theirs.truncate_dim is None
    with pytest.raises(InputError, match="max_length can be at most 128"):
        ours.max_seq_length = 512


@pytest.mark.parametrize("family", ["bert", "roberta", "qwen3"])
@pytest.mark.parametrize("method", ["preprocess", "tokenize"])
def test_preprocess(both: Both, family: str, method: str) -> None:
    ours, theirs = both(family)
    for texts in (TEXTS, ["one"], ["the " * 300, ""]):
        assert_same(getattr(ours, method)(texts), dict(getattr(theirs, method)(texts)))
    assert_same(ours.preprocess(TEXTS, prompt="the: "), dict(theirs.preprocess(TEXTS, prompt="the: ")))
    assert ours.preprocess([]) == theirs.preprocess([]) == {}


def test_tokenizer_is_to_look_at(both: Both) -> None:
    ours, theirs = both("bert")
    text = "the quick brown fox"
    assert ours.tokenizer.tokenize(text) == theirs.tokenizer.tokenize(text)
    assert ours.tokenizer(text)["input_ids"] == theirs.tokenizer(text)["input_ids"]
    assert ours.tokenizer.model_max_length == theirs.tokenizer.model_max_length
    with pytest.raises(NotCovered, match="does not cover setting the tokenizer"):
        ours.tokenizer = theirs.tokenizer


def test_static_embeddings(make: Callable[..., Path], tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(make("bert") / "tokenizer.json"))
    static = sentence_transformers.SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)])
    static.save(str(tmp_path / "static"), create_model_card=False)
    ours, theirs = load_both(tmp_path / "static")
    assert_same(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert ours.max_seq_length == theirs.max_seq_length
    assert ours.tokenizer.encode("the").ids == theirs.tokenizer.encode("the").ids
    assert torch.equal(ours.preprocess(TEXTS)["offsets"], theirs.preprocess(TEXTS)["offsets"])


@pytest.mark.parametrize("method", ["save", "save_pretrained"])
def test_saved_folders_load_under_both(make: Callable[..., Path], tmp_path: Path, method: str) -> None:
    ours, _ = load_both(make("bert"), prompts={"query": "q: "}, similarity_fn_name="dot", truncate_dim=9)
    vectors = ours.encode_query(TEXTS)
    (tmp_path / "model").mkdir()
    getattr(ours, method)(str(tmp_path / "model"), create_model_card=False)
    getattr(ours, method)(str(tmp_path / "model"))  # again, over it
    for again in load_both(tmp_path / "model"):
        assert_same(again.encode_query(TEXTS), vectors)
        assert (again.similarity_fn_name, again.truncate_dim, again.prompts["query"]) == ("dot", 9, "q: ")
    with pytest.raises(InputError):
        ours.save(str(tmp_path / "other"), safe_serialization=False)
    assert not (tmp_path / "other").exists()
    ours.save(str(tmp_path / "carded"), model_name="A name", train_datasets=["some/data"])
    assert "# A name" in (tmp_path / "carded" / "README.md").read_text()
    assert "Trained on some/data" in (tmp_path / "carded" / "README.md").read_text()


def test_places_and_dtypes(both: Both) -> None:
    ours, _ = both("bert")
    assert ours.to("cpu") is ours.to(torch.device("cpu")) is ours.to(device="cpu:0", dtype=torch.float32) is ours
    assert ours.eval() is ours.cpu() is ours.float() is ours.train(False) is ours.to(torch.float32) is ours
    with pytest.raises(InputError, match="Unknown dtype 'int16'"):
        ours.to(torch.int16)
    assert ours.train().training
    ours.encode(TEXTS)
    assert not ours.training  # as theirs: encode switches dropout off


def test_pickle_keeps_the_settings(make: Callable[..., Path]) -> None:
    ours, _ = load_both(make("bert", normalize=False), prompts={"query": "the: "}, truncate_dim=11)
    ours.max_seq_length, ours.similarity_fn_name = 15, "euclidean"
    ours.set_pooling_include_prompt(False)
    again = pickle.loads(pickle.dumps(ours))
    assert (again.max_seq_length, again.similarity_fn_name, again.truncate_dim) == (15, "euclidean", 11)
    np.testing.assert_allclose(again.encode_query(TEXTS), ours.encode_query(TEXTS), atol=2e-6)


def test_the_facade_is_ours(both: Both) -> None:
    ours, _ = both("bert")
    assert isinstance(ours.facade, BiEncoder)
    assert "SentenceTransformer(" in repr(ours)
    assert isinstance(SentenceTransformer.load(str(ours.facade.model.folder)), SentenceTransformer)
    assert ours.supports("text")
    assert not ours.supports("image")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "backend": ({"backend": "onnx"}, "There is no other backend"),
    "card": ({"model_card_data": object()}, "SentenceTransformerModelCardData, not object"),
    "config": ({"config_kwargs": {"hidden_dropout_prob": 0.5}}, r"config\.json"),
    "placing": ({"model_kwargs": {"device_map": "auto"}}, "Give device="),
    "anything else": ({"model_kwargs": {"quantization_config": True}}, "Only dtype is"),
    "dtype": ({"model_kwargs": {"dtype": "int3"}}, "Unknown dtype 'int3'"),
    "prompt": ({"default_prompt_name": "nothing"}, "Unknown default prompt 'nothing'"),
    "similarity": ({"similarity_fn_name": "closeness"}, "Unknown similarity"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_when_loading(tiny_bert: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SentenceTransformer(str(tiny_bert), device="cpu", **options)


def test_no_name_and_no_folder() -> None:
    with pytest.raises(CheckpointError, match="Give the folder or Hub name"):
        SentenceTransformer()
    with pytest.raises(CheckpointError, match="no folder"):
        SentenceTransformer("./nowhere/at/all")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> list[tuple[str, dict[str, Any]]]:
    """What would be asked of the Hub; it answers with the tiny model."""
    asked = []

    def snapshot_download(name: str, **options: Any) -> str:
        asked.append((name, options))
        return str(tiny_bert)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


def test_names_on_the_hub(fetched: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"revision": "v1", "cache_folder": "/somewhere", "token": "t", "local_files_only": True}
    for name in ("all-MiniLM-L6-v2", "intfloat/e5-small", "bert-base-uncased"):
        SentenceTransformer(name, device="cpu", **wanted)
    names = ["sentence-transformers/all-MiniLM-L6-v2", "intfloat/e5-small", "bert-base-uncased"]
    assert list(dict.fromkeys(name for name, _ in fetched)) == names  # each in as many steps as its folders take
    options = fetched[0][1]
    assert (options["revision"], options["cache_dir"], options["token"]) == ("v1", "/somewhere", "t")
    assert options["local_files_only"]
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", "/home")
    SentenceTransformer("a/b", device="cpu", use_auth_token="old")
    assert (fetched[-1][1]["cache_dir"], fetched[-1][1]["token"]) == ("/home", "old")


def test_arguments_without_an_effect_are_accepted(make):
    plain = compat.SentenceTransformer(str(make("bert")), device="cpu")
    model = compat.SentenceTransformer(
        str(make("bert")),
        device="cpu",
        trust_remote_code=True,
        model_kwargs={"attn_implementation": "eager", "use_safetensors": True, "low_cpu_mem_usage": True},
        processor_kwargs={"padding_side": "left", "use_fast": True},
        config_kwargs={"use_cache": False},
    )
    assert np.array_equal(model.encode(TEXTS), plain.encode(TEXTS))


@pytest.mark.parametrize("role", ["query", "document"])
def test_roles_call_encode_with_keywords(make, role, monkeypatch):
    model, calls = compat.SentenceTransformer(str(make("bert")), device="cpu"), []
    monkeypatch.setattr(model, "encode", lambda **keywords: calls.append(keywords))
    getattr(model, f"encode_{role}")("a", None, None, 8, normalize_embeddings=True)
    assert calls[0]["inputs"] == "a"
    assert (calls[0]["batch_size"], calls[0]["normalize_embeddings"]) == (8, True)
    assert (calls[0]["prompt_name"], calls[0]["task"]) == (role, role)


def test_what_is_set_on_the_tokenizer_is_followed_or_refused(make):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    text = "one two three four five six seven eight nine ten " * 2
    model.tokenizer.model_max_length = 6
    assert model.max_seq_length == 6
    assert model.preprocess([text])["input_ids"].shape[1] == 6
    model.max_seq_length = 8
    assert model.tokenizer.model_max_length == 8
    model.tokenizer.add_tokens(["<new>"])
    with pytest.raises(NotCovered, match=r"adding tokens \(\+1 in model.tokenizer\)"):
        model.encode([text])


def test_a_model_moves_to_another_dtype_with_its_settings(make):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    model.max_seq_length, model.truncate_dim = 12, 16
    exact = model.encode(TEXTS)
    assert model.bfloat16() is model
    assert (model.dtype, model.max_seq_length, model.truncate_dim) == (torch.bfloat16, 12, 16)
    assert 0 < np.abs(model.encode(TEXTS) - exact).max() < 0.1
    assert 0 < np.abs(model.float().to("cpu").encode(TEXTS) - exact).max() < 0.1  # digits are lost, as in torch


def test_int8_without_ranges_names_what_is_there(both):
    ours, _ = both("bert")
    with pytest.raises(InputError, match=r"call model\.facade\.calibrate") as caught:
        ours.encode(TEXTS, precision="int8")
    assert callable(ours.facade.calibrate)
    assert "quantize_embeddings" in str(caught.value)
