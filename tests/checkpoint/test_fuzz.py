"""Every key of every JSON file, removed or replaced: an error of ours, or vectors; never a bare KeyError."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.errors import MunjangError
from tests.checkpoint import folders

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
REPLACEMENTS: list[Any] = [..., None, "x", "", -1, 0, 3, 0.5, 1e40, True, [], ["x"], {}, {"x": 1}]
TEXTS = ["one text", "", "가나 " * 60]
SAMPLE = pytest.mark.parametrize("every", [13, pytest.param(3, marks=pytest.mark.slow)])  # of all changes


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value, a few levels down."""
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ()
    if len(path) < 4:
        for key in keys:
            yield from places(value[key], (*path, key))


def changed(value: Any, path: tuple[Any, ...], replacement: Any) -> Any:
    """A copy with one value replaced, or removed."""
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if replacement is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = replacement
    return value


def fuzz(folder: Path, name: str, run: Callable[[Path], Any], every: int, skip: str = "") -> int:
    """How many changes of one file still gave a result; all others must be our errors."""
    before, text, passed, number = folders.read(folder / name), (folder / name).read_text(encoding="utf-8"), 0, 0
    for path in places(before):
        for replacement in REPLACEMENTS:
            number += 1
            if number % every or path[0] == skip:
                continue
            folders.write(folder / name, changed(before, path, replacement))
            try:
                run(folder)
                passed += 1
            except MunjangError:
                continue
            except Exception as error:
                pytest.fail(f"{name} {path} = {replacement!r}: {type(error).__name__}: {error}")
    (folder / name).write_text(text, encoding="utf-8")
    return passed


def encode(folder: Path) -> Any:
    return BiEncoder.load(folder).encode(TEXTS)


def predict(folder: Path) -> Any:
    return CrossEncoder.load(folder).predict([("one", text) for text in TEXTS])


@SAMPLE
@pytest.mark.parametrize("family", ["bert", "electra", "albert-groups", "distilbert", "mpnet", "modernbert", "roberta"])
def test_config_of_a_bi_encoder(make: Make, tmp_path: Path, family: str, every: int) -> None:
    folder = folders.copy(make(family), tmp_path / "model")
    assert fuzz(folder, "config.json", encode, every) > 5


@SAMPLE
@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_config_of_a_cross_encoder(make: Make, tmp_path: Path, family: str, every: int) -> None:
    folder = folders.copy(make(family, kind="classifier", num_labels=3), tmp_path / "model")
    folders.edit(folder / "config.json", sentence_transformers={"activation_fn": "torch.nn.Sigmoid"})
    assert fuzz(folder, "config.json", predict, every) > 5


@SAMPLE
def test_config_of_a_fallback(make: Make, tmp_path: Path, every: int) -> None:
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    assert fuzz(folder, "config.json", encode, every) > 5


@SAMPLE
def test_config_of_a_fallback_classifier(make: Make, tmp_path: Path, every: int) -> None:
    folder = folders.copy(make("qwen3", kind="classifier", num_labels=1), tmp_path / "model")
    assert fuzz(folder, "config.json", predict, every) > 5


@SAMPLE
@pytest.mark.parametrize(
    "name",
    [
        *("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer_config.json"),
        *("1_Pooling/config.json", "2_Dense/config.json", "3_LayerNorm/config.json", "4_Normalize/config.json"),
    ],
)
def test_files_of_a_bi_encoder(make: Make, tmp_path: Path, name: str, every: int) -> None:
    folder = folders.copy(make("bert", dense=24, norm=True, prompts='{"query": "q: "}'), tmp_path / "model")
    fuzz(folder, name, encode, min(every, 7))


@SAMPLE
def test_tokenizer(make: Make, tmp_path: Path, every: int) -> None:
    """Not its vocabulary: any words are some vocabulary."""
    folder = folders.copy(make("bert"), tmp_path / "model")
    fuzz(folder, "tokenizer.json", encode, every, skip="model")


@SAMPLE
def test_folder_without_tokenizer_json(make: Make, tmp_path: Path, every: int) -> None:
    folder = folders.copy(make("bert"), tmp_path / "model")
    vocab = folders.read(folder / "tokenizer.json")["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    folders.write(folder / "special_tokens_map.json", {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}})
    folders.write(folder / "added_tokens.json", {"seoul": 7})
    folders.edit(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)
    for name in ("special_tokens_map.json", "added_tokens.json", "tokenizer_config.json"):
        fuzz(folder, name, encode, every)
