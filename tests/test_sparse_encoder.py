"""Sparse vectors beside sentence-transformers: every layout, saved again, in odd shapes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SparseEncoder as Incumbent

from munjang import BiEncoder, SparseEncoder
from munjang.errors import CheckpointError, InputError, MunjangError, UnsupportedModel
from munjang.nn import sparse as heads
from tests.models import NATIVE, make_model
from tests.texts import ENGLISH, KOREAN
from tests.token_models import make_csr, make_inference_free, make_m3, make_masked, make_splade

TEXTS = ["", "a", "Hello, world!", *ENGLISH[:6], *KOREAN[:6]]
MIN_COSINE = 0.9999
LAYOUTS: dict[str, Any] = {
    "splade": make_splade,
    "splade-sum": lambda folder: make_splade(folder, pooling="sum"),
    "splade-log": lambda folder: make_splade(folder, "distilbert", "max", "log1p_relu"),
    "inference-free": make_inference_free,
    "csr": make_csr,
    "csr-normalized": lambda folder: make_csr(folder, normalize=True),
    **{f"family-{name}": lambda folder, name=name: make_masked(name, folder) for name in NATIVE},
    "fallback": lambda folder: make_masked("nomic-like", folder),
}


def cosines(found: Any, wanted: Any) -> Any:
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
    same = np.abs(found - wanted).max(1) < 1e-4
    return np.where(same, 1, (found * wanted).sum(1) / np.maximum(lengths, 1e-12))


def check(ours: SparseEncoder, theirs: Incumbent, **options: Any) -> None:
    for role in ("query", "document"):
        wanted = getattr(theirs, f"encode_{role}")(TEXTS, convert_to_sparse_tensor=False, **options).numpy()
        found = getattr(ours, f"encode_{role}")(TEXTS, **options)
        assert found.shape == wanted.shape
        assert cosines(found.to_dense(), wanted).min() > MIN_COSINE, role


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_are_those_of_the_incumbent(layout: str, tmp_path: Path) -> None:
    folder = LAYOUTS[layout](tmp_path / "model")
    theirs, ours = Incumbent(str(folder), device="cpu"), SparseEncoder.load(folder)
    check(ours, theirs)
    check(ours, theirs, max_active_dims=5)
    ours.save(tmp_path / "saved")
    check(SparseEncoder.load(tmp_path / "saved"), Incumbent(str(tmp_path / "saved"), device="cpu"))


def test_long_texts_in_blocks_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pooling in ("max", "sum"):
        model = SparseEncoder.load(make_splade(tmp_path / pooling, pooling=pooling))
        whole = model.encode(TEXTS)
        monkeypatch.setattr(heads, "MAX_BLOCK_SCORES", model.dimension * 3)
        np.testing.assert_allclose(model.encode(TEXTS).to_dense(), whole.to_dense(), atol=1e-5)
        monkeypatch.undo()


def test_bge_m3_weighs_each_token_once(tmp_path: Path) -> None:
    folder = make_m3(tmp_path)
    layer = torch.nn.Linear(32, 1)
    layer.load_state_dict(torch.load(folder / "sparse_linear.pt"))
    bi, texts = BiEncoder.load(folder), ["a a b", *TEXTS]
    found = SparseEncoder.load(folder).encode_document(texts).to_dense()
    special = {bi.tokenizer.rust.token_to_id(token) for token in ("<s>", "</s>", "<pad>", "<unk>")}
    states, wanted = bi.encode(texts, output="tokens"), np.zeros_like(found)
    tokens = bi.tokenize(texts)
    all_ids = np.split(tokens.flat, np.cumsum(tokens.lengths)[:-1])
    for row, (ids, tokens_TD) in enumerate(zip(all_ids, states, strict=True)):
        for token, weight in zip(ids, torch.relu(layer(torch.from_numpy(tokens_TD)))[:, 0].tolist(), strict=True):
            if int(token) not in special:
                wanted[row, int(token)] = max(wanted[row, int(token)], weight)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SparseEncoder:
    return SparseEncoder.load(make_splade(tmp_path_factory.mktemp("sparse") / "model"))


def test_one_text_none_and_duplicates(model: SparseEncoder) -> None:
    twice = model.encode_document(["a", "Hello, world!", "a"])
    assert model.encode("a").shape == (1, model.dimension)
    assert len(model.encode([])) == 0
    np.testing.assert_allclose(twice.to_dense()[0], twice.to_dense()[2])
    np.testing.assert_allclose(model.encode("a").to_dense()[0], twice.to_dense()[0], atol=1e-4)


def test_similarity_words_and_pickle(model: SparseEncoder) -> None:
    rows = model.encode(ENGLISH[:4])
    dense = rows.to_dense()
    np.testing.assert_allclose(model.similarity(rows, rows), dense @ dense.T, rtol=1e-4)
    assert isinstance(model.similarity("a", "b"), float)
    [words] = model.decode(model.encode("a"), top_k=3)
    best = int(np.argmax(model.encode("a").to_dense()[0]))
    assert words[0][0] == model.tokenizer.rust.id_to_token(best)
    assert len(words) == 3
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.encode("a").to_dense(), model.encode("a").to_dense())
    copied.similarity_name = "cosine"
    assert copied.similarity("a", "a") == pytest.approx(1, abs=1e-5)


def test_what_does_not_fit_is_refused_by_name(model: SparseEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_active_dims"):
        model.encode("a", max_active_dims=0)
    with pytest.raises(MunjangError, match="no argument convert_to_tensor"):
        model.encode("a", convert_to_tensor=True)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="SparseVectors"):
        model.similarity(np.zeros((1, 3)), "a")
    with pytest.raises(UnsupportedModel, match="SpladePooling"):
        SparseEncoder.load(make_model("bert", tmp_path / "bi"))
    with pytest.raises(CheckpointError, match="masked language model"):
        SparseEncoder.load(make_model("bert", tmp_path / "plain", "plain"))
    with pytest.raises(CheckpointError, match=r"SparseEncoder\.load"):
        BiEncoder.load(model.model.folder)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
def test_a_new_model_finds_the_words_of_its_texts(family: str, tmp_path: Path) -> None:
    folder = make_model(family, tmp_path / "bi")
    created = SparseEncoder.create(folder, ENGLISH, "cpu")
    rows = created.encode_document(ENGLISH)
    counts = (rows.to_dense() > 0).sum(1)
    assert 0 < counts.mean() < created.dimension / 2
    special = np.concatenate([ids for ids, _ in created.tokenizer.single.parts])
    assert not rows.to_dense()[:, special].any()
    own = [created.tokenizer([text]).ids for text in ENGLISH[:10]]
    shares = [np.mean(rows.to_dense()[row][ids[1:-1]] > 0) for row, ids in enumerate(own) if len(ids) > 2]
    assert np.mean(shares) > 2 * counts.mean() / created.dimension  # more than words drawn at random
    created.save(tmp_path / "saved")
    again = SparseEncoder.load(tmp_path / "saved", "cpu")
    np.testing.assert_allclose(again.encode(ENGLISH[:3]).to_dense(), created.encode(ENGLISH[:3]).to_dense(), atol=1e-4)
    with pytest.raises(InputError, match="some texts"):
        SparseEncoder.create(folder, [], "cpu")
