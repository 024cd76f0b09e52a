"""The compact format: what is in the file, what comes back, what loses nothing, what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor

from munjang import BiEncoder, CrossEncoder, checkpoint
from munjang.checkpoint.compact import restore
from munjang.checkpoint.files import Weights
from munjang.errors import CheckpointError, InputError, UnsupportedModel
from munjang.nn.cpu import can_pack
from munjang.nn.int8.weights import quantize_weights
from tests.checkpoint import folders
from tests.checkpoint.folders import PAIRS, TEXTS
from tests.models import NATIVE
from tests.texts import mixed, natural

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
FILE, FORMAT = "munjang_int8.safetensors", "munjang-int8"
QUERY = "encoder.layer.0.attention.self.query.weight"
WORDS = "embeddings.word_embeddings.weight"


def save(source: Path, target: Path, **options: Any) -> Path:
    BiEncoder.load(source, device="cpu", **options).save(target, format=FORMAT)
    return target


@pytest.fixture
def folder(make: Make, tmp_path: Path) -> Path:
    return save(make("bert", dense=24, norm=True), tmp_path / "compact")


def change(folder: Path, **changes: Any) -> None:
    """Replace tensors of the compact file; None takes one out."""
    tensors = {**load_file(folder / FILE), **changes}
    save_file({name: value for name, value in tensors.items() if value is not None}, folder / FILE)


def test_by_hand() -> None:
    codes = torch.tensor([[127, -64], [0, 1]], dtype=torch.int8)
    scale, equal = torch.tensor([0.5, 4.0]), torch.tensor([1, -2], dtype=torch.int8)
    assert restore("w", codes, scale, None).tolist() == [[63.5, -32.0], [0.0, 4.0]]
    assert restore("w", codes, scale, equal).tolist() == [[31.75, -128.0], [0.0, 16.0]]


def test_undoing_powers_of_two_is_exact() -> None:
    exponents = torch.arange(-60, 61, dtype=torch.int8)
    found = restore("w", torch.ones(1, 121, dtype=torch.int8), torch.ones(1), exponents)
    assert found[0].tolist() == [2.0**-exponent for exponent in range(-60, 61)]


def test_what_is_in_the_file(folder: Path) -> None:
    stored = load_file(folder / FILE)
    small = {name for name, tensor in stored.items() if tensor.dtype == torch.int8 and not name.endswith(".equal")}
    assert {WORDS, QUERY, "encoder.layer.1.output.dense.weight", "embeddings.position_embeddings.weight"} <= small
    grown = {name.removesuffix(".equal") for name in stored if name.endswith(".equal")}
    behind_norms = ("query", "key", "value", "intermediate.dense")
    assert grown == {name for name in small if name.removesuffix(".weight").endswith(behind_norms)}
    assert all(stored[f"{name}.scale"].shape == stored[name].shape[:1] for name in small)
    others = [tensor for name, tensor in stored.items() if name not in small and not name.endswith(".equal")]
    assert {tensor.dtype for tensor in others} == {torch.float32}
    assert stored["embeddings.token_type_embeddings.weight"].dtype == torch.float32  # see squeeze
    assert not (folder / "model.safetensors").exists()
    assert folders.load_file(folder / "2_Dense/model.safetensors")["linear.weight"].dtype == torch.float32


@pytest.mark.parametrize("family", NATIVE)
def test_every_family(family: str, make: Make, tmp_path: Path) -> None:
    """Near the model it was made of; its float export is the same model."""
    source = make(family)
    target = save(source, tmp_path / "compact")
    small, exact = BiEncoder.load(target, device="cpu"), BiEncoder.load(source, device="cpu")
    texts = mixed(60, longest=40)
    cosines = (small.encode(texts, normalize=True) * exact.encode(texts, normalize=True)).sum(1)
    assert 0.99 < cosines.mean() < 1  # tiny wide random networks are much more sensitive than real ones
    small.save(tmp_path / "float", format="sentence-transformers")
    export = BiEncoder.load(tmp_path / "float", device="cpu")
    np.testing.assert_allclose(export.encode(texts), small.encode(texts), atol=2e-6)
    assert export.fingerprint == small.fingerprint != exact.fingerprint
    assert (export.info()["format"], small.info()["format"]) == ("float", FORMAT)
    theirs = SentenceTransformer(str(tmp_path / "float"), device="cpu")
    assert folders.difference(theirs.encode(TEXTS), small.encode(TEXTS)) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_whatever_it_is_computed_in(make: Make, tmp_path: Path, dtype: str) -> None:
    if dtype == "int8" and not can_pack(torch.int8):
        pytest.skip("no 8-bit products here")
    model = BiEncoder.load(make("bert"), device="cpu", dtype=dtype)
    before = model.encode(TEXTS)
    model.save(tmp_path / "small", format=FORMAT)
    np.testing.assert_allclose(model.encode(TEXTS), before, atol=2e-6)  # saving leaves it as it was
    save(make("bert"), tmp_path / "from_float")
    ours, theirs = (load_file(tmp_path / name / FILE) for name in ("small", "from_float"))
    assert ours.keys() == theirs.keys()
    if dtype != "bfloat16":  # whose weights are others
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert BiEncoder.load(tmp_path / "small", device="cpu", dtype=dtype).encode(TEXTS).shape == before.shape


def test_settings_come_along(make: Make, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert", dense=24), device="cpu")
    model.prompts, model.default_prompt_name, model.truncate_dim, model.max_length = {"query": "q: "}, "query", 9, 17
    model.calibrate(TEXTS)
    model.save(tmp_path / "small", format=FORMAT)
    again = BiEncoder.load(tmp_path / "small", device="cpu")
    names = ("prompts", "default_prompt_name", "truncate_dim", "similarity_name", "max_length")
    assert [getattr(again, name) for name in names] == [getattr(model, name) for name in names]
    assert np.array_equal(again.ranges, model.ranges)
    assert checkpoint.kind(tmp_path / "small") == "bi"


@pytest.mark.parametrize("kind", ["classifier", "cross", "created"])
def test_cross_encoders(make: Make, tmp_path: Path, kind: str) -> None:
    created = kind == "created"
    source = make("bert") if created else make("bert", kind=kind, num_labels=1)
    exact = CrossEncoder.create(source, device="cpu") if created else CrossEncoder.load(source, device="cpu")
    exact.save(tmp_path / "small", format=FORMAT)
    assert checkpoint.kind(tmp_path / "small") == "cross"
    small = CrossEncoder.load(tmp_path / "small", device="cpu")
    assert small.info()["format"] == FORMAT
    differences = np.abs(small.predict(PAIRS) - exact.predict(PAIRS))
    assert 0 < differences.mean() < 0.03, differences
    if not created:
        stored, floats = load_file(tmp_path / "small" / FILE), Weights(source)
        assert torch.equal(stored["classifier.weight"], floats["classifier.weight"])  # the head is exact
    small.save(tmp_path / "float")
    again = CrossEncoder.load(tmp_path / "float", device="cpu")
    np.testing.assert_allclose(again.predict(PAIRS), small.predict(PAIRS), atol=2e-6)
    assert again.fingerprint == small.fingerprint


def test_models_take_each_others_place(make: Make, tmp_path: Path) -> None:
    model, target = BiEncoder.load(make("bert"), device="cpu"), tmp_path / "model"
    model.save(target)
    (target / "notes.txt").write_text("mine")
    for format, name, other in ((FORMAT, FILE, "model.safetensors"), (None, "model.safetensors", FILE)):
        model.save(target, format=format)
        assert (target / name).is_file()
        assert not (target / other).exists()
        assert (target / "notes.txt").read_text() == "mine"
    model.save(target, format=FORMAT)
    small = BiEncoder.load(target, device="cpu")
    vectors = small.encode(TEXTS)
    small.save(target)  # over the file that it was read from
    np.testing.assert_allclose(BiEncoder.load(target, device="cpu").encode(TEXTS), vectors, atol=2e-6)
    np.testing.assert_allclose(small.encode(TEXTS), vectors, atol=2e-6)


def test_sentence_transformers_fails_clearly(folder: Path) -> None:
    with pytest.raises(OSError, match=r"model\.safetensors"):
        SentenceTransformer(str(folder), device="cpu")


def test_in_parts(folder: Path) -> None:
    expected = BiEncoder.load(folder, device="cpu").encode(TEXTS)
    (folder / FILE).rename(folder / "model.safetensors")
    folders.split(folder, "model.safetensors")
    for path in list(folder.glob("model*")):
        path.rename(folder / path.name.replace("model", "munjang_int8"))
    index = folder / f"{FILE}.index.json"
    index.write_text(index.read_text().replace("model-0", "munjang_int8-0"))
    np.testing.assert_allclose(BiEncoder.load(folder, device="cpu").encode(TEXTS), expected, atol=2e-6)


def test_what_has_no_compact_form(make: Make, tmp_path: Path) -> None:
    target = tmp_path / "small"
    with pytest.raises(InputError, match=r"Unknown format 'int8'; choose from munjang-int8, sentence-transformers\."):
        BiEncoder.load(make("bert")).save(target, format="int8")
    with pytest.raises(InputError, match="Unknown format ''"):
        CrossEncoder.create(make("bert")).save(target, format="")
    with pytest.raises(UnsupportedModel, match=r"'munjang-int8' is for encoders that .* not TransformersEncoder"):
        BiEncoder.load(make("qwen3")).save(target, format=FORMAT)
    with pytest.raises(UnsupportedModel, match="not TransformersClassifier"):
        CrossEncoder.load(make("qwen3", kind="classifier", num_labels=1)).save(target, format=FORMAT)
    diverged = BiEncoder.load(make("bert"), device="cpu")
    with torch.no_grad():
        diverged.network.encoder.blocks[0].out.weight[0, 0] = torch.nan
    with pytest.raises(UnsupportedModel, match=r"attention\.output\.dense\.weight holds 1 NaN"):
        diverged.save(target, format=FORMAT)
    assert list(tmp_path.iterdir()) == []


def broken(tensor: Tensor, value: float) -> Tensor:
    tensor = tensor.clone()
    tensor[0] = value
    return tensor


@pytest.mark.parametrize(
    ("suffix", "damage", "told"),
    [
        (".scale", lambda found: None, r"its \.scale is missing"),
        (".scale", lambda found: found[:-1].clone(), r"its \.scale is torch\.float32 of shape \(31,\), not .* \(32,\)"),
        (".scale", lambda found: found[:, None].clone(), r"its \.scale is torch\.float32 of shape \(32, 1\)"),
        (".scale", lambda found: found.half(), r"its \.scale is torch\.float16"),
        (".scale", lambda found: broken(found, torch.nan), r"1 numbers of its \.scale are not finite and positive"),
        (".scale", lambda found: broken(found, torch.inf), r"1 numbers of its \.scale"),
        (".scale", lambda found: broken(found, -1.0), r"1 numbers of its \.scale"),
        (".scale", lambda found: broken(found, 0.0), r"1 numbers of its \.scale"),
        (".equal", lambda found: found[:-1].clone(), r"its \.equal is torch\.int8 of shape \(31,\)"),
        (".equal", lambda found: found.float(), r"its \.equal is torch\.float32"),
        (".equal", lambda found: broken(found, -128), "NaN or infinite"),
        ("", lambda found: found[:-1].clone(), r"its \.scale is torch\.float32 of shape \(32,\), not .* \(31,\)"),
        ("", lambda found: found[0].clone(), r"of shape \(32,\)"),
        ("", lambda found: found.to(torch.int16), r"stored as torch\.int16"),
        ("", lambda found: None, "lacks the tensors"),
    ],
)
def test_damaged_tensors(folder: Path, suffix: str, damage: Callable[[Tensor], Tensor | None], told: str) -> None:
    change(folder, **{QUERY + suffix: damage(load_file(folder / FILE)[QUERY + suffix])})
    with pytest.raises(CheckpointError, match=told) as found:
        BiEncoder.load(folder)
    assert QUERY in str(found.value)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_cut_off(folder: Path, share: float) -> None:
    path = folder / FILE
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=r"munjang_int8\.safetensors is damaged or cut off"):
        BiEncoder.load(folder)


def test_whole_numbers_in_an_ordinary_file_stay_refused(folder: Path) -> None:
    (folder / FILE).rename(folder / "model.safetensors")
    with pytest.raises(UnsupportedModel, match=r"stored as torch\.int8"):
        BiEncoder.load(folder)


@pytest.mark.slow  # 90 MB written twice and read four times
def test_the_real_minilm(minilm: Path, tmp_path: Path) -> None:
    target = save(minilm, tmp_path / "compact")
    assert (target / FILE).stat().st_size < 23e6  # 90.3 MB in float32
    exact, small = (BiEncoder.load(path, device="cpu") for path in (minilm, target))
    texts = mixed(30, longest=100)
    vectors = small.encode(texts)
    assert (exact.encode(texts) * vectors).sum(1).mean() > 0.998  # measured 0.9990; 0.9996 on natural text
    small.save(tmp_path / "float")
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "float", device="cpu").encode(texts), vectors, atol=2e-6)
    stored, weights = load_file(target / FILE), Weights(target)
    for name in (name for name in weights if stored[name].dtype == torch.int8):
        equal = stored.get(f"{name}.equal", torch.zeros(1))
        codes, _ = quantize_weights(weights[name] * torch.exp2(equal.float()))
        assert torch.equal(codes, stored[name]), name  # quantizing again changes nothing


@pytest.mark.skipif(not can_pack(torch.int8), reason="no 8-bit products here")
def test_the_real_minilm_computed_in_8_bits(minilm: Path, tmp_path: Path) -> None:
    """The promise of int8 holds for weights that were rounded on disk, too."""
    target = save(minilm, tmp_path / "compact")
    texts = natural(40)
    exact, small = (BiEncoder.load(minilm, device="cpu"), BiEncoder.load(target, device="cpu", dtype="int8"))
    cosines = (exact.encode(texts) * small.encode(texts)).sum(1)
    assert cosines.mean() >= 0.997
    assert cosines.min() >= 0.985
