"""Small folders that ask for much: time, memory or a read without an end. Each is refused at once."""

import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError, InputError
from tests.checkpoint import folders
from tests.checkpoint.folders import edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
MAX_S = 10.0  # of two busy cores; each took a minute or more, or gigabytes


@pytest.fixture
def folder(make: Make, tmp_path: Path) -> Path:
    return folders.copy(make("bert"), tmp_path / "model")


def refuse(folder: Path, match: str, load: Any = BiEncoder.load) -> None:
    start = time.monotonic()
    with pytest.raises(CheckpointError, match=match):
        load(folder)
    assert time.monotonic() - start < MAX_S


def change_tokenizer(folder: Path, **changes: Any) -> None:
    path = folder / "tokenizer.json"
    folders.write(path, {**folders.read(path), **changes})


@pytest.mark.parametrize("change", [{"num_hidden_groups": 1000}, {"inner_group_num": 1000}])
def test_more_blocks_than_tensors(make: Make, tmp_path: Path, change: dict[str, int]) -> None:
    folder = folders.copy(make("albert"), tmp_path / "model")
    edit(folder / "config.json", num_hidden_layers=1000, **change)
    refuse(folder, "asks for .* blocks, and the weights have .* tensors")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"num_hidden_layers": 100_000}, "no model has more than 1,000"),
        ({"num_labels": 10**7}, "no model has more than 100,000"),
        ({"vocab_size": 10**8}, "not of one model"),
        ({"intermediate_size": 10**8}, "not of one model"),
    ],
)
def test_a_decoder_larger_than_its_weights(make: Make, tmp_path: Path, change: dict[str, int], match: str) -> None:
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    edit(folder / "config.json", **change)
    refuse(folder, match)


def test_replacements_in_a_chain(folder: Path) -> None:
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    change_tokenizer(folder, normalizer={"type": "Sequence", "normalizers": [double] * 30})
    refuse(folder, r"may make a text 1\.07e\+09 times as long")
    every = {"type": "Replace", "pattern": {"Regex": ""}, "content": "a"}
    change_tokenizer(folder, normalizer={"type": "Sequence", "normalizers": [every] * 30})
    refuse(folder, "times as long")
    mark = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    change_tokenizer(folder, normalizer=None, pre_tokenizer={"type": "Sequence", "pretokenizers": [mark] * 30})
    refuse(folder, "times as long")


def test_words_and_tokens_of_any_length(folder: Path) -> None:
    model = folders.read(folder / "tokenizer.json")["model"]
    change_tokenizer(folder, model={**model, "max_input_chars_per_word": 10**6})
    refuse(folder, "max_input_chars_per_word is 1,000,000; at most 1,000")
    vocab = {"a" * 2000 if token == max(model["vocab"]) else token: id for token, id in model["vocab"].items()}
    change_tokenizer(folder, model={**model, "vocab": vocab})
    refuse(folder, "a token of 2,000 characters")


def test_a_pattern_that_takes_too_long(folder: Path) -> None:
    pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    change_tokenizer(folder, pre_tokenizer=pattern)
    model = BiEncoder.load(folder)
    with pytest.raises(InputError, match="tokenizer can't cut a text"):
        model.encode(["fine", "a" * 40 + "!"])
    assert model.encode(["fine"]).shape[0] == 1


def test_special_tokens_that_leave_no_room(make: Make, tmp_path: Path) -> None:
    for kind, load in (("bert", BiEncoder.load), ("bert cross", CrossEncoder.load)):
        options = {"kind": "classifier", "num_labels": 1} if "cross" in kind else {}
        folder = folders.copy(make("bert", **options), tmp_path / kind)
        vocab = folders.read(folder / "tokenizer.json")["model"]["vocab"]
        special = {"id": "[CLS]", "type_id": 0}
        row = [{"SpecialToken": special}] * 600
        template = {
            "type": "TemplateProcessing",
            "single": [*row, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [*row, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [vocab["[CLS]"]], "tokens": ["[CLS]"]}},
        }
        change_tokenizer(folder, post_processor=template)
        refuse(folder, "puts 600 special tokens around a text", load)


def test_a_compressed_bin(folder: Path) -> None:
    folders.as_bin(folder)
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path) as archive:
        members = {each.filename: archive.read(each) for each in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    refuse(folder, "is compressed .* which torch never writes")


def test_a_bin_that_shows_the_same_bytes_many_times(folder: Path) -> None:
    folders.as_bin(folder)
    torch.save({"a": torch.zeros(1).expand(10**5, 10**5)}, folder / "pytorch_model.bin")
    refuse(folder, "but its tensors take 40,000,000,000")


@pytest.mark.parametrize("name", ["config.json", "modules.json", "1_Pooling/config.json", "vocab.txt", "README.md"])
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_only_regular_files_are_read(folder: Path, name: str, what: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    refuse(folder, "is not a regular file")
    refuse(folder, "is not a regular file", lambda folder: CrossEncoder.create(folder))


def test_a_config_without_an_end(folder: Path) -> None:
    os.truncate(folder / "config.json", 2**40)
    refuse(folder, r"config\.json has 1,099,511,627,776 bytes; at most")


def test_many_poolings(folder: Path) -> None:
    edit(folder / "1_Pooling/config.json", pooling_mode=["mean"] * 100_000)
    refuse(folder, "names 100,000 modes; at most 16")
    edit(folder / "1_Pooling/config.json", pooling_mode="mean")
    with pytest.raises(InputError, match="at most 16 modes"):
        BiEncoder.load(folder, pooling=("mean", "cls") * 9)


@pytest.mark.parametrize("part", [["model-1.safetensors"], {"a": 1}, None])
def test_a_weight_map_of_something_else(folder: Path, part: Any) -> None:
    (folder / "model.safetensors").unlink()
    folders.write(folder / "model.safetensors.index.json", {"weight_map": {"a": part}})
    refuse(folder, "weight_map should give the name of a file")


def test_what_every_real_tokenizer_may_do() -> None:
    from munjang.text.bounds import MAX_GROWTH, growth_of

    albert = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]
    steps = {"type": "Sequence", "normalizers": albert}
    assert growth_of(steps) == 18 * 2 * 2
    assert growth_of(steps) * 18 * 2 < MAX_GROWTH  # with SentencePiece's table and a mark before each word


@pytest.mark.parametrize("output", ["numpy", "torch", "tokens"])
@pytest.mark.parametrize("precision", ["float32", "ubinary"])
def test_vectors_that_are_no_numbers(folder: Path, output: str, precision: str) -> None:
    name = "embeddings.LayerNorm.weight"
    folders.change_weights(folder, lambda found: found | {name: found[name] * 0 + 3e38})
    model = BiEncoder.load(folder)
    if output == "tokens" and precision != "float32":
        return
    with pytest.raises(CheckpointError, match="NaN or infinite values for"):
        model.encode(["one text", "another"], output=output, precision=precision)
