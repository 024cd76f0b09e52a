"""Static token embeddings: sentence-transformers' StaticEmbedding and model2vec's folders, against both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from munjang import BiEncoder
from munjang.errors import CheckpointError, UnsupportedModel
from tests.checkpoint import folders
from tests.checkpoint.folders import difference
from tests.models import make_tokenizer
from tests.texts import mixed

model2vec = pytest.importorskip("model2vec")
pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = [*mixed(20, longest=30), "", " ", "one", "unknown ☃ piece ☃☃ here", "☃"]
KNOWN = [text for text in TEXTS if "☃" not in text]  # where the two agree: model2vec leaves unknown pieces out
VOCAB_SIZE = len(make_tokenizer("wordpiece").get_vocab())


def vectors(seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).normal(size=(VOCAB_SIZE, 12)).astype(dtype)


def make_model2vec(folder: Path, kind: str = "wordpiece", has_modules: bool = False, **options: Any) -> Any:
    """A model of random vectors, written by model2vec; before 2024 it wrote no modules.json."""
    given = options.pop("vectors", None)
    tokenizer = make_tokenizer(kind)
    rows = np.random.default_rng(1).normal(size=(len(tokenizer.get_vocab()), 12)).astype(np.float32)
    model = model2vec.StaticModel(rows if given is None else given, tokenizer, **options)
    model.save_pretrained(folder)
    if not has_modules:
        (folder / "modules.json").unlink()
    return model


def make_static(folder: Path, *modules: torch.nn.Module, dtype: Any = np.float32) -> SentenceTransformer:
    static = StaticEmbedding(make_tokenizer("wordpiece"), embedding_weights=vectors(dtype=dtype))
    theirs = SentenceTransformer(modules=[static, *modules], device="cpu")
    theirs.save(str(folder), create_model_card=False)
    return theirs


def test_no_compact_form(tmp_path: Path) -> None:
    make_static(tmp_path / "theirs")
    with pytest.raises(UnsupportedModel, match=r"'munjang-int8' is for encoders that .* not StaticEncoder; leave it"):
        BiEncoder.load(tmp_path / "theirs").save(tmp_path / "ours", format="munjang-int8")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("modules", [(), (Normalize(),)])
def test_static_embedding(tmp_path: Path, modules: Any) -> None:
    theirs = make_static(tmp_path / "theirs", *modules)
    ours = BiEncoder.load(tmp_path / "theirs")
    assert (ours.max_length, ours.dimension) == (None, 12)
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-6
    assert not ours.encode("").any()  # no tokens: the zero vector
    ours.save(tmp_path / "ours")
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "ours").encode(TEXTS), ours.encode(TEXTS), atol=2e-6)
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert difference(again.encode(TEXTS), theirs.encode(TEXTS)) < 1e-6


@pytest.mark.parametrize("inner", ["", "0_StaticEmbedding"])
def test_its_older_layouts(tmp_path: Path, inner: str) -> None:
    folder = tmp_path / "theirs"
    make_static(folder)
    entries = folders.read(folder / "modules.json")
    place = entries[0]["path"]
    if place != inner:
        (folder / inner).mkdir(exist_ok=True)
        for name in ("model.safetensors", "tokenizer.json"):
            (folder / place / name).rename(folder / inner / name)
    folders.write(
        folder / "modules.json",
        [{"idx": 0, "name": "0", "path": inner, "type": "sentence_transformers.models.StaticEmbedding"}],
    )
    folders.as_bin(folder)
    theirs = SentenceTransformer(str(folder), device="cpu")
    assert difference(BiEncoder.load(folder).encode(TEXTS), theirs.encode(TEXTS)) < 1e-6


def test_truncation_in_tokenizer_json(tmp_path: Path) -> None:
    make_static(tmp_path / "theirs")
    path = next((tmp_path / "theirs").rglob("tokenizer.json"))
    cut = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    folders.edit(path, truncation=cut)
    theirs, ours = SentenceTransformer(str(tmp_path / "theirs"), device="cpu"), BiEncoder.load(tmp_path / "theirs")
    assert ours.max_length == 5
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-6
    ours.save(tmp_path / "ours")
    assert BiEncoder.load(tmp_path / "ours").max_length == 5
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert difference(again.encode(TEXTS), theirs.encode(TEXTS)) < 1e-6


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bytelevel"])
def test_model2vec(tmp_path: Path, kind: str, normalize: bool) -> None:
    theirs = make_model2vec(tmp_path / "theirs", kind, normalize=normalize)
    ours = BiEncoder.load(tmp_path / "theirs")
    assert ours.info()["layout"] == "model2vec"
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-6


@pytest.mark.parametrize("has_mapping", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_model2vec_with_weights_and_mapping(tmp_path: Path, has_mapping: bool, dtype: Any) -> None:
    random = np.random.default_rng(3)
    rows = vectors(dtype=dtype)[: 50 if has_mapping else None]
    options = {"weights": random.random(VOCAB_SIZE).astype(np.float32)}
    if has_mapping:
        options["token_mapping"] = random.integers(0, 50, VOCAB_SIZE)
    theirs = make_model2vec(tmp_path / "theirs", vectors=rows, **options)
    ours = BiEncoder.load(tmp_path / "theirs")
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < (1e-6 if dtype is np.float32 else 1e-3)


def test_model2vec_in_whole_numbers(tmp_path: Path) -> None:
    rows = (vectors() * 40).clip(-127, 127).astype(np.int8)
    theirs = make_model2vec(tmp_path / "theirs", vectors=rows)
    assert difference(BiEncoder.load(tmp_path / "theirs").encode(TEXTS), theirs.encode(TEXTS)) < 1e-6


@pytest.mark.parametrize("limit", [4, None])
def test_model2vec_limit(tmp_path: Path, limit: int | None) -> None:
    theirs = make_model2vec(tmp_path / "theirs", max_length=limit)
    ours = BiEncoder.load(tmp_path / "theirs")
    assert ours.max_length == limit
    short = [text for text in KNOWN if len(text) < 8]  # it also cuts by characters: median piece times the limit
    assert difference(ours.encode(short), theirs.encode(short)) < 1e-6


@pytest.mark.parametrize("normalize", [True, False])
def test_model2vec_folder_with_modules(tmp_path: Path, normalize: bool) -> None:
    """It says StaticEmbedding in modules.json, so it is what sentence-transformers makes of that."""
    theirs = make_model2vec(tmp_path / "theirs", has_modules=True, normalize=normalize)
    ours, other = BiEncoder.load(tmp_path / "theirs"), SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    assert difference(ours.encode(TEXTS), other.encode(TEXTS)) < 1e-6
    assert difference(ours.encode(KNOWN), theirs.encode(KNOWN)) < 1e-6


def test_model2vec_saved_by_us(tmp_path: Path) -> None:
    theirs = make_model2vec(tmp_path / "theirs", normalize=True)
    ours = BiEncoder.load(tmp_path / "theirs")
    ours.save(tmp_path / "ours")
    again = BiEncoder.load(tmp_path / "ours")
    np.testing.assert_allclose(again.encode(TEXTS), ours.encode(TEXTS), atol=2e-6)  # unknown pieces are still left out
    assert again.max_length == ours.max_length == 512
    other = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert difference(other.encode(KNOWN), theirs.encode(KNOWN)) < 1e-6


def spoil(folder: Path, **tensors: Any) -> None:
    path = next(folder.rglob("model.safetensors"))
    found = load_file(path)
    save_file({name: value for name, value in {**found, **tensors}.items() if value is not None}, path)


def test_bad_static_folders(tmp_path: Path) -> None:
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "NaN": ({"embeddings": np.full((VOCAB_SIZE, 12), np.nan, np.float32)}, "NaN or infinite"),
        "too few rows": ({"embeddings": vectors()[:-1]}, f"embedding table has {VOCAB_SIZE - 1} rows"),
        "flat": ({"embeddings": vectors()[:, 0].copy()}, "two dimensions"),
        "empty": ({"embeddings": vectors()[:, :0].copy()}, "two dimensions"),
        "mapping": ({"mapping": np.full(VOCAB_SIZE, VOCAB_SIZE)}, "mapping names rows outside of 0 to"),
        "negative": ({"mapping": np.full(VOCAB_SIZE, -1)}, "mapping names rows outside of 0 to"),
        "weights": ({"weights": np.ones(3, np.float32)}, "weights has 3 values"),
        "NaN weights": ({"weights": np.full(VOCAB_SIZE, np.nan, np.float32)}, "weights holds .* NaN"),
        "int32": ({"embeddings": vectors().astype(np.int32)}, "stored as torch.int32"),
    }
    make_model2vec(tmp_path / "whole")
    for name, (tensors, match) in cases.items():
        folder = folders.copy(tmp_path / "whole", tmp_path / name)
        spoil(folder, **tensors)
        with pytest.raises(CheckpointError, match=match):
            BiEncoder.load(folder)
    folder = folders.copy(tmp_path / "whole", tmp_path / "no embeddings")
    spoil(folder, embeddings=None, other=np.zeros(2, np.float32))
    folders.edit(folder / "config.json", model_type="model2vec")
    with pytest.raises(CheckpointError, match="holds other, not static embeddings"):
        BiEncoder.load(folder)
    folders.edit(tmp_path / "whole/config.json", model_type="model2vec", max_length="many")
    with pytest.raises(CheckpointError, match="largest number of tokens"):
        BiEncoder.load(tmp_path / "whole")


def test_another_pooling_can_be_used_but_not_saved(tmp_path: Path) -> None:
    make_static(tmp_path / "theirs")
    ours = BiEncoder.load(tmp_path / "theirs", pooling="max")
    ids = ours.tokenize("one text").sequences[0]
    assert np.allclose(ours.encode("one text"), vectors()[ids].max(0))
    with pytest.raises(UnsupportedModel, match="mean pooling only"):
        ours.save(tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
