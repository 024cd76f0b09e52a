"""Late interaction beside sentence-transformers: every layout, saved again, in odd shapes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder as Incumbent

from munjang import BiEncoder, MultiVectorEncoder
from munjang.errors import CheckpointError, InputError, MunjangError, TruncationWarning
from tests.models import NATIVE, make_model
from tests.texts import ENGLISH, KOREAN
from tests.token_models import EXPANSION, make_colbert, make_late, make_m3, make_pylate

TEXTS = ["", "a", "Hello, world!", *ENGLISH[:5], *KOREAN[:5], "한국어, 그리고 English."]
MIN_COSINE = 0.9999
pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")
LAYOUTS: dict[str, Any] = {
    "late": lambda folder: make_late(folder, words=list("!,.")),
    "late-expanded": lambda folder: make_late(folder, query_expansion=EXPANSION, words=[","]),
    "late-seen": lambda folder: make_late(folder, query_expansion={**EXPANSION, "attend": True}),
    "late-min": lambda folder: make_late(folder, query_expansion={**EXPANSION, "strategy": "min"}, query_length=30),
    "late-lengths": lambda folder: make_late(folder, query_length=8, document_length=12),
    "late-pooled": lambda folder: make_late(folder, pool_factor=2.0),
    "pylate": make_pylate,
    "pylate-typed": lambda folder: make_pylate(folder, model_type="ColBERT", attend_to_expansion_tokens=True),
    "pylate-plain": lambda folder: make_pylate(folder, do_query_expansion=False, skiplist_words=["a"]),
    "colbert": make_colbert,
    "colbert-seen": lambda folder: make_colbert(folder, attend_to_mask_tokens=True, mask_punctuation=False),
    **{
        f"family-{name}": lambda folder, name=name: make_late(folder, name, query_expansion=EXPANSION)
        for name in NATIVE
    },
    "fallback": lambda folder: make_late(folder, "nomic-like", query_expansion=EXPANSION),
}


def check(ours: MultiVectorEncoder, theirs: Incumbent) -> None:
    for role in ("query", "document"):
        wanted = getattr(theirs, f"encode_{role}")(TEXTS, convert_to_numpy=True)
        found = getattr(ours, f"encode_{role}")(TEXTS)
        assert [len(rows) for rows in found] == [len(rows) for rows in wanted], role
        flat, other = np.concatenate(found), np.concatenate(wanted)
        cosines = (flat * other).sum(1) / np.linalg.norm(flat, axis=1) / np.linalg.norm(other, axis=1)
        assert cosines.min() > MIN_COSINE, role
    queries, documents = ours.encode_query(TEXTS[:3]), ours.encode_document(TEXTS)
    wanted = theirs.similarity([torch.from_numpy(q) for q in queries], [torch.from_numpy(d) for d in documents])
    has_tokens = np.array([len(rows) > 0 for rows in documents])
    np.testing.assert_allclose(ours.similarity(queries, documents)[:, has_tokens], wanted[:, has_tokens], atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_are_those_of_the_incumbent(layout: str, tmp_path: Path) -> None:
    folder = LAYOUTS[layout](tmp_path / "model")
    theirs = Incumbent(str(folder), device="cpu")
    ours = MultiVectorEncoder.load(folder)
    check(ours, theirs)
    ours.save(tmp_path / "saved")
    check(MultiVectorEncoder.load(tmp_path / "saved"), Incumbent(str(tmp_path / "saved"), device="cpu"))
    again = MultiVectorEncoder.load(tmp_path / "saved").encode_query(TEXTS)
    for first, second in zip(ours.encode_query(TEXTS), again, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_bge_m3_gives_every_token_but_the_first(tmp_path: Path) -> None:
    folder = make_m3(tmp_path)
    layer = torch.nn.Linear(32, 32)
    layer.load_state_dict(torch.load(folder / "colbert_linear.pt"))
    states = BiEncoder.load(folder).encode(TEXTS, output="tokens")
    for found, tokens_TD in zip(MultiVectorEncoder.load(folder).encode_document(TEXTS), states, strict=True):
        wanted = torch.nn.functional.normalize(layer(torch.from_numpy(tokens_TD[1:])), dim=-1)
        np.testing.assert_allclose(found, wanted.detach(), atol=1e-5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> MultiVectorEncoder:
    folder = make_late(tmp_path_factory.mktemp("late") / "model", query_expansion=EXPANSION, document_length=20)
    return MultiVectorEncoder.load(folder)


def test_one_text_none_and_duplicates(model: MultiVectorEncoder) -> None:
    one = model.encode_document("Hello, world!")
    twice = model.encode_document(["a", "Hello, world!", "a", "Hello, world!"])
    np.testing.assert_allclose(one, twice[1], atol=1e-5)
    assert model.encode_query([]) == []
    assert len(twice) == 4
    assert model.encode_query("x").shape == (EXPANSION["length"], model.dimension)


def test_int8_and_pooled_tokens_score_alike(model: MultiVectorEncoder) -> None:
    queries, documents = model.encode_query(ENGLISH[:3]), model.encode_document(ENGLISH)
    codes = model.encode_document(ENGLISH, precision="int8")
    assert codes[0].dtype == np.int8
    np.testing.assert_allclose(
        model.similarity(queries, codes), model.similarity(queries, documents), atol=0.01 * EXPANSION["length"]
    )
    halved = model.encode_document(ENGLISH, pool_factor=2)
    assert all(len(few) <= len(many) // 2 + 1 for few, many in zip(halved, documents, strict=True))


def test_rank_and_pickle(model: MultiVectorEncoder) -> None:
    hits = model.rank(ENGLISH[0], ENGLISH[:6], top_k=2)
    scores = model.similarity([ENGLISH[0]], ENGLISH[:6])[0]
    assert [hit.score for hit in hits] == sorted(scores.tolist(), reverse=True)[:2]
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.encode_query("a"), model.encode_query("a"))


def test_what_does_not_fit_is_refused_by_name(model: MultiVectorEncoder, tmp_path: Path) -> None:
    with pytest.warns(TruncationWarning, match="1 of 1 texts are longer than 20"):
        model.encode_document("word " * 50)
    with pytest.raises(MunjangError, match="precision"):
        model.encode_query("a", precision="int4")
    with pytest.raises(MunjangError, match="no argument batch_size"):
        model.encode_query("a", batch_size=3)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="at least 1"):
        model.encode_document("a", pool_factor=0.5)
    bi = make_model("bert", tmp_path / "bi")
    with pytest.raises(CheckpointError, match=r"MultiVectorEncoder\.create"):
        MultiVectorEncoder.load(bi)
    with pytest.raises(CheckpointError, match=r"MultiVectorEncoder\.load"):
        BiEncoder.load(model.model.folder)
    created = MultiVectorEncoder.create(bi, dimension=8)
    assert created.encode_document("a b").shape[1] == 8


def test_a_new_model_keeps_the_directions_of_its_texts(tmp_path: Path) -> None:
    """Cosines of tokens after the projection are nearer to those before it than after a random one."""
    folder = make_model("bert", tmp_path / "bi")
    states = np.concatenate(BiEncoder.load(folder, "cpu").encode(ENGLISH, output="tokens"))
    units = states / np.linalg.norm(states, axis=1, keepdims=True)
    errors = []
    for texts in (ENGLISH, None):
        found = np.concatenate(MultiVectorEncoder.create(folder, 12, "cpu", texts=texts).encode(ENGLISH))
        errors.append(np.abs(found @ found.T - units @ units.T).mean())
    assert errors[0] < 0.7 * errors[1]
