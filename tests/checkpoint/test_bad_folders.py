"""Folders that are no model, half a model or a trap: an error that names the thing and the way out."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError, InputError, UnsupportedModel
from tests.checkpoint import folders
from tests.checkpoint.folders import edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]


@pytest.fixture
def folder(make: Make, tmp_path: Path) -> Path:
    """A copy of a tiny BERT with a dense layer, to be broken."""
    return folders.copy(make("bert", dense=24, norm=True), tmp_path / "model")


def refuse(folder: Path | str, match: str, kind: type[Exception] = CheckpointError, load: Any = BiEncoder.load) -> None:
    with pytest.raises(kind, match=match):
        load(folder)


def test_no_folder(tmp_path: Path) -> None:
    refuse(tmp_path / "nowhere", "There is no folder .*nowhere")
    refuse("./nowhere", "There is no folder nowhere")
    refuse("~nobody-here/model", "There is no folder")
    refuse("a/b/c", "There is no folder a/b/c")
    (tmp_path / "file").write_text("x")
    refuse(tmp_path / "file", "is a file; give the folder")
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", "neither modules.json nor config.json")
    refuse(tmp_path / "empty", "neither modules.json nor config.json", load=CrossEncoder.load)


@pytest.mark.parametrize("given", ["", 7, b"model", ["model"]])
def test_not_even_a_name(given: Any) -> None:
    with pytest.raises((InputError, CheckpointError)):
        BiEncoder.load(given)


NEEDED = {
    "modules.json": r"modules\.json is missing, though 1_Pooling is there",
    "config.json": r"config\.json is missing",
    "model.safetensors": "no weights: model.safetensors or pytorch_model.bin is needed",
    "tokenizer.json": "no tokenizer: tokenizer.json, vocab.txt",
    "1_Pooling/config.json": r"1_Pooling/config\.json is missing",
    "2_Dense/config.json": r"2_Dense/config\.json is missing",
    "2_Dense/model.safetensors": "2_Dense has no weights",
    "3_LayerNorm/config.json": r"3_LayerNorm/config\.json is missing",
    "3_LayerNorm/model.safetensors": "3_LayerNorm has no weights",
}


@pytest.mark.parametrize("name", NEEDED)
def test_half_copied(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refuse(folder, NEEDED[name])
    (folder / name).mkdir()  # something else of that name
    refuse(folder, "")


def test_files_that_may_be_missing(folder: Path) -> None:
    vectors = BiEncoder.load(folder).encode(["one text"])
    for name in ("config_sentence_transformers.json", "sentence_bert_config.json", "4_Normalize"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    np.testing.assert_allclose(BiEncoder.load(folder).encode(["one text"]), vectors, atol=2e-6)


@pytest.mark.parametrize("name", ["tf_model.h5", "flax_model.msgpack", "model.gguf", "adapter_model.safetensors"])
def test_weights_of_another_kind_are_named(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    refuse(folder, r"only; (convert|merge|get)")


def test_an_adapter_beside_the_weights(folder: Path) -> None:
    folders.write(folder / "adapter_config.json", {"base_model_name_or_path": "bert"})
    refuse(folder, "PEFT adapter; merge it", UnsupportedModel)


@pytest.mark.parametrize("share", [0, 1e-9, 0.001, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("name", ["model.safetensors", "2_Dense/model.safetensors", "pytorch_model.bin"])
def test_weights_cut_off(folder: Path, name: str, share: float) -> None:
    if name.endswith("bin"):
        folders.as_bin(folder)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: max(int(len(data) * share), int(share > 0))])
    refuse(folder, "damaged")


def test_a_header_that_lies(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes((2**63).to_bytes(8, "little") + data[8:])
    refuse(folder, "damaged or cut off")
    path.write_bytes(data[:8] + b"\xff" * 64 + data[72:])
    refuse(folder, "damaged or cut off")
    path.write_bytes(b"<html>Not found</html>" * 9)  # what a failed download leaves
    refuse(folder, "damaged or cut off")


class Trap:
    """A pickle that makes a folder when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("how", ["pickle", "torch", "old torch"])
def test_a_pickle_that_would_run_code(folder: Path, tmp_path: Path, how: str) -> None:
    folders.as_bin(folder)
    value, path = {"weight": torch.zeros(2), "trap": Trap(tmp_path / "marker")}, folder / "pytorch_model.bin"
    if how == "pickle":
        path.write_bytes(pickle.dumps(value))
    else:
        torch.save(value, path, _use_new_zipfile_serialization=how == "torch")
    refuse(folder, "could run code and is refused.*model.safetensors")
    assert not (tmp_path / "marker").exists()
    with pytest.raises(FileNotFoundError):  # the trap itself works
        (tmp_path / "marker").rmdir()
    if how == "pickle":
        pickle.loads(path.read_bytes())
        assert (tmp_path / "marker").is_dir()


@pytest.mark.parametrize(
    "value", [[torch.zeros(2)], {"a": 1}, {}, torch.zeros(2), {1: torch.zeros(2)}, {"state_dict": 3}]
)
def test_a_bin_of_something_else(folder: Path, value: Any) -> None:
    folders.as_bin(folder)
    torch.save(value, folder / "pytorch_model.bin")
    refuse(folder, "should hold tensors by name")


@pytest.mark.parametrize("index", [{}, [], {"weight_map": []}, {"weight_map": {"a": "../x.safetensors"}}])
@pytest.mark.parametrize("extra", [{}, {"weight_map": {"a": "model-1.safetensors"}}, {"weight_map": {"a": 3}}])
def test_a_list_of_parts_that_lies(folder: Path, index: Any, extra: Any) -> None:
    (folder / "model.safetensors").unlink()
    folders.write(folder / "model.safetensors.index.json", extra or index)
    refuse(folder, "weight_map|leaves the model folder|is missing|JSON object")


JSON_FILES = [
    *("config.json", "modules.json", "tokenizer_config.json", "sentence_bert_config.json", "tokenizer.json"),
    *("config_sentence_transformers.json", "1_Pooling/config.json", "2_Dense/config.json", "3_LayerNorm/config.json"),
]


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize("content", ["{", "[]", "null", "\ufeff{}", "[" * 100_000, "{}" + "\0" * 9])
def test_json_that_is_none_or_of_another_kind(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    refuse(folder, Path(name).name.replace(".", r"\."))


@pytest.mark.parametrize("name", JSON_FILES)
def test_json_in_another_encoding(folder: Path, name: str) -> None:
    (folder / name).write_bytes('{"a": "가"}'.encode("utf-16"))
    refuse(folder, Path(name).name.replace(".", r"\."))


PATHS = [
    *(
        "..",
        "../outside",
        "1_Pooling/../../outside",
        "/etc",
        "C:\\models",
        "C:models",
        "\\\\server\\share",
        "..\\outside",
    ),
    *(None, 3, ["1_Pooling"], "a\0b", "~/x\0"),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("place", [0, 1])
def test_modules_that_leave_the_folder(folder: Path, path: Any, place: int) -> None:
    entries = folders.read(folder / "modules.json")
    entries[place]["path"] = path
    folders.write(folder / "modules.json", entries)
    refuse(folder, "leaves the model folder; that is refused")


def test_links_are_followed(folder: Path, tmp_path: Path) -> None:
    """The Hub's cache is made of links; who can make one here can read the file anyway."""
    vectors = BiEncoder.load(folder).encode(["one text"])
    (folder / "1_Pooling").rename(tmp_path / "elsewhere")
    (folder / "1_Pooling").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "config.json").rename(tmp_path / "config.json")
    (folder / "config.json").symlink_to(tmp_path / "config.json")
    np.testing.assert_allclose(BiEncoder.load(folder).encode(["one text"]), vectors, atol=2e-6)


MODULES: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], str]] = {
    "empty": (lambda e: [], "should hold a list of modules"),
    "no list": (lambda e: {"0": e[0]}, "should hold a list of modules"),
    "no type": (lambda e: [{"idx": 0, "path": ""}], "should have an idx, a name, a path and a type"),
    "no object": (lambda e: ["Transformer"], "should have an idx"),
    "twice": (lambda e: [e[0], e[1], {**e[1], "idx": 1}], "in order, each once"),
    "out of order": (lambda e: [e[1], e[0]], "in order, each once"),
    "one name": (lambda e: [e[0], {**e[1], "name": "0"}], "one name"),
    "two encoders": (lambda e: [e[0], {**e[0], "idx": 1, "name": "1"}], "must come first, and only once"),
    "no encoder": (lambda e: [{**e[1], "idx": 0}], "must come first"),
    "no pooling": (lambda e: [e[0]], "a Pooling must follow"),
    "two poolings": (lambda e: [e[0], e[1], {**e[1], "idx": 2, "name": "2"}], "one Pooling, first"),
    "foreign": (lambda e: [{**e[0], "type": "os.system"}], "asks for the module 'os.system'.*never run"),
    "their own code": (lambda e: [{**e[0], "type": "custom_st.Transformer"}], "asks for the module 'custom_st"),
    "unknown": (lambda e: [{**e[0], "type": "sentence_transformers.models.LSTM"}], "asks for the module.*we compute"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_json(folder: Path, tmp_path: Path, name: str) -> None:
    change, match = MODULES[name]
    (folder / "custom_st.py").write_text(
        f"import os\nos.mkdir({str(tmp_path / 'marker')!r})\nclass Transformer: pass\n"
    )
    folders.write(folder / "modules.json", change(folders.read(folder / "modules.json")))
    refuse(folder, match)
    assert not (tmp_path / "marker").exists()


def test_unknown_pooling(folder: Path) -> None:
    edit(folder / "1_Pooling/config.json", pooling_mode="means")
    refuse(folder, "Unknown pooling 'means'; choose from cls, .* Did you mean 'mean'")
    edit(folder / "1_Pooling/config.json", pooling_mode=["mean", 3])
    refuse(folder, "Unknown pooling 3")
    edit(folder / "1_Pooling/config.json", pooling_mode=[])
    refuse(folder, "should be a name or a list")
    edit(folder / "1_Pooling/config.json", pooling_mode=..., pooling_mode_median_tokens=True)
    refuse(folder, "Unknown pooling 'pooling_mode_median_tokens'")


def test_unknown_names(folder: Path) -> None:
    edit(folder / "config.json", hidden_act="swiglu")
    refuse(folder, "Unknown activation 'swiglu'; we compute", UnsupportedModel)
    edit(folder / "config.json", hidden_act="gelu", model_type="no-such-model")
    refuse(folder, "'no-such-model'", UnsupportedModel)
    edit(folder / "config.json", model_type=..., architectures=...)
    refuse(folder, "names no model_type", UnsupportedModel)
    edit(folder / "2_Dense/config.json", activation_function="os.system")
    refuse(folder, "'os.system', which is not on the list", UnsupportedModel)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 64},
        {"intermediate_size": 47},
        {"num_hidden_layers": 4},
        {"vocab_size": 99},
        {"max_position_embeddings": 512},
        {"type_vocab_size": 3},
        {"model_type": "albert"},
        {"model_type": "distilbert", "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48},
    ],
)
def test_shapes_that_disagree(folder: Path, change: dict[str, Any]) -> None:
    edit(folder / "config.json", **change)
    refuse(folder, "not of one model")


@pytest.mark.parametrize("name", ["2_Dense/config.json", "3_LayerNorm/config.json"])
def test_modules_that_disagree(folder: Path, name: str) -> None:
    for key, value in folders.read(folder / name).items():
        if isinstance(value, int) and not isinstance(value, bool):
            edit(folder / name, **{key: value + 1})
            refuse(folder, "not of one model")
            edit(folder / name, **{key: value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", [".", "2_Dense", "3_LayerNorm"])
def test_weights_that_are_not_numbers(folder: Path, name: str, value: float) -> None:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        tensors[sorted(name for name in tensors if "pooler" not in name)[-1]].view(-1)[-1] = value

    folders.change_weights(folder / name, spoil)
    refuse(folder, "holds 1 NaN or infinite values; the file is damaged", UnsupportedModel)


def test_a_head_that_is_not_numbers(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("roberta", kind="classifier", num_labels=1), tmp_path / "model")
    folders.change_weights(folder, lambda found: found | {"classifier.out_proj.bias": torch.tensor([torch.nan])})
    refuse(folder, "classifier.out_proj.bias holds 1 NaN", UnsupportedModel, CrossEncoder.load)


def test_the_weights_of_a_fallback_that_are_not_numbers(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    folders.change_weights(folder, lambda found: found | {"norm.weight": found["norm.weight"] * torch.nan})
    refuse(folder, "norm.weight holds 32 NaN", UnsupportedModel)


def test_weights_in_whole_numbers(folder: Path) -> None:
    name = "encoder.layer.0.output.dense.weight"
    folders.change_weights(folder, lambda found: found | {name: found[name].to(torch.int8)})
    refuse(folder, f"{name} is stored as torch.int8", UnsupportedModel)


def test_a_tokenizer_with_too_many_ids(folder: Path) -> None:
    tokenizer = folders.read(folder / "tokenizer.json")
    extra = {**tokenizer["added_tokens"][0], "content": "[EXTRA]", "id": len(tokenizer["model"]["vocab"])}
    tokenizer["added_tokens"].append(extra)
    folders.write(folder / "tokenizer.json", tokenizer)
    refuse(folder, r"ids up to 400 \(the first one too many is '\[EXTRA\]'\), but the embedding table has 400 rows")
    refuse(folder, "embedding table", load=lambda path: CrossEncoder.create(path))


def test_a_tokenizer_that_is_damaged(folder: Path) -> None:
    path = folder / "tokenizer.json"
    whole = folders.read(path)
    path.write_text(path.read_text(encoding="utf-8")[:-100], encoding="utf-8")
    refuse(folder, r"tokenizer\.json can't be read as a tokenizer")
    for change in ({"model": {"type": "Magic"}}, {"model": {**whole["model"], "vocab": []}}, {"version": 7}):
        folders.write(path, {**whole, **change})
        refuse(folder, r"tokenizer\.json can't be read as a tokenizer")
    folders.write(path, {**whole, "model": {**whole["model"], "vocab": {}}, "added_tokens": [], "post_processor": None})
    refuse(folder, "tokenizer")


def test_a_sentencepiece_file_alone(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "sentencepiece.bpe.model")
    refuse(folder, r"no tokenizer\.json\. Write one once with transformers")


def test_settings_of_the_wrong_kind(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    for key, value in {
        "prompts": ["query"],
        "default_prompt_name": "nothing",
        "similarity_fn_name": "cosmic",
        "truncate_dim": 999,
        "model_type": 3,
    }.items():
        before = folders.read(path).get(key, ...)
        edit(path, **{key: value})
        refuse(folder, f"{key}|default prompt|Unknown similarity|truncate_dim")
        edit(path, **{key: before})
    edit(path, prompts={"query": 3})
    refuse(folder, "prompts should give a text")


def test_a_limit_of_the_wrong_kind(folder: Path) -> None:
    for value in ("100", -1, 0, 2.5, True, [3]):
        edit(folder / "sentence_bert_config.json", max_seq_length=value)
        refuse(folder, "largest number of tokens should be a whole number")


def test_ranges_of_another_model(folder: Path) -> None:
    from safetensors.numpy import save_file

    path = folder / "munjang_ranges.safetensors"
    save_file({"ranges": np.zeros((2, 7), np.float32)}, path)
    refuse(folder, "should hold two finite rows of 24; remove it and calibrate")
    path.write_bytes(b"junk")
    refuse(folder, "damaged .*; remove it and calibrate")


def test_no_error_shows_a_bare_key(folder: Path) -> None:
    """A message is for people: it names the file."""
    edit(folder / "config.json", hidden_size=...)
    with pytest.raises(CheckpointError) as caught:
        BiEncoder.load(folder)
    assert json.dumps("hidden_size").replace('"', "'") in str(caught.value)
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(("name", "why"), [("CLIPModel", "it reads images"), ("LSTM", "recurrent"), ("X", "never run")])
def test_modules_that_we_do_not_have(folder: Path, name: str, why: str) -> None:
    entries = folders.read(folder / "modules.json")
    entries[0]["type"] = f"sentence_transformers.models.{name}"
    folders.write(folder / "modules.json", entries)
    refuse(folder, why, UnsupportedModel)


@pytest.mark.parametrize("layout", ["transformers", "with Pooling", "without Pooling"])
def test_models_of_images(folder: Path, layout: str) -> None:
    entries = folders.read(folder / "modules.json")
    folders.edit(folder / entries[0]["path"] / "config.json", model_type="clip")
    if layout == "transformers":
        (folder / "modules.json").unlink()
        for entry in entries[1:]:
            shutil.rmtree(folder / entry["path"], ignore_errors=True)
    else:
        folders.write(folder / "modules.json", entries[:2] if layout == "with Pooling" else entries[:1])
    refuse(folder, "family 'clip': it reads images, and only texts are computed", UnsupportedModel)
