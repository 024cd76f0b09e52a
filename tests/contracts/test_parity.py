"""Our vectors and scores beside sentence-transformers', for a tiny wide model of every family."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import CrossEncoder as TheirCross
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder
from munjang.nn import families
from tests.models import FAMILIES, NATIVE
from tests.texts import ENGLISH, KOREAN, mixed

TEXTS = [*mixed(60), "", " ", "one", "하나"]
POOLINGS = ["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


def relative(ours: Any, theirs: Any) -> float:
    """Largest difference, as a share of the largest value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9))


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_family_is_compared() -> None:
    assert set(families.FAMILIES) <= set(FAMILIES), "give tests/models.py the settings of a small one"


@pytest.mark.parametrize("family", FAMILIES)
def test_token_states_and_vectors(make: Callable[..., Path], family: str) -> None:
    folder = make(family)
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    vectors = theirs.encode(TEXTS)
    assert relative(ours.encode(TEXTS), vectors) < 1e-5
    states = theirs.encode(TEXTS, output_value="token_embeddings")
    for mine, other in zip(ours.encode(TEXTS, output="tokens"), states, strict=True):
        assert relative(mine, other) < 1e-5
    # the weights are wide: different texts are different vectors, so a swapped layer would show
    places = ((0, 1), (8, 2), (16, 8), (30, 8))
    apart = theirs.encode([" ".join(words[at : at + n]) for words in (ENGLISH, KOREAN) for at, n in places])
    assert np.median((apart @ apart.T)[~np.eye(8, dtype=bool)]) < 0.9


@pytest.mark.parametrize("pooling", [*POOLINGS, ("cls", "max"), ("mean", "cls"), ("lasttoken", "weightedmean", "mean")])
def test_every_pooling(make: Callable[..., Path], pooling: Any) -> None:
    folder = make("bert", pooling=pooling, normalize=False)
    assert (
        relative(BiEncoder.load(folder).encode(TEXTS), SentenceTransformer(str(folder), device="cpu").encode(TEXTS))
        < 1e-5
    )


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_spelled_padding_has_its_place(make: Callable[..., Path], family: str) -> None:
    """It has no position of its own in these families, but it is a token of the text like any other."""
    folder = make(family, pooling="weightedmean", normalize=False)
    texts = ["a <pad> fox <pad> jumps", "[PAD] a fox [PAD]", "a fox"]
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    assert relative(BiEncoder.load(folder).encode(texts), theirs) < 1e-5


@pytest.mark.parametrize("pooling", [*POOLINGS])
def test_prompts_in_and_out_of_pooling(make: Callable[..., Path], pooling: str) -> None:
    for include in (True, False) if pooling == "mean" else (False,):  # with them, it pools longer texts
        folder = make(
            "bert", pooling=pooling, normalize=False, include_prompt=include, prompts='{"query": "search for: "}'
        )
        ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
        texts = [text for text in TEXTS if text.strip()][::3]
        assert relative(ours.encode(texts, prompt_name="query"), theirs.encode(texts, prompt_name="query")) < 1e-5
        assert relative(ours.encode_query(texts), theirs.encode_query(texts)) < 1e-5
        assert relative(ours.encode_document(texts), theirs.encode_document(texts)) < 1e-5
        assert relative(ours.encode(texts, prompt="a: "), theirs.encode(texts, prompt="a: ")) < 1e-5


def test_dense_norm_and_normalize(make: Callable[..., Path]) -> None:
    folder = make("bert", dense=24, norm=True)
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    assert ours.dimension == 24
    assert relative(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-5
    assert (
        relative(
            ours.encode(TEXTS, truncate_dim=8, normalize=True),
            theirs.encode(TEXTS, truncate_dim=8, normalize_embeddings=True),
        )
        < 1e-5
    )


@pytest.mark.parametrize(("family", "num_labels"), [*((family, 1) for family in FAMILIES), ("bert", 3), ("roberta", 3)])
def test_cross_encoder_logits(make: Callable[..., Path], family: str, num_labels: int) -> None:
    folder = make(family, kind="classifier", num_labels=num_labels)
    ours, theirs = CrossEncoder.load(folder), TheirCross(str(folder), device="cpu")
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    import torch

    logits = theirs.predict(pairs, activation_fn=torch.nn.Identity())
    assert np.abs(ours.predict(pairs, activation="Identity") - logits).max() < 1e-4
    assert np.abs(ours.predict(pairs) - theirs.predict(pairs)).max() < 1e-4
    assert logits.std() > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_folders_of_either_load_in_the_other(make: Callable[..., Path], family: str, tmp_path: Path) -> None:
    folder = make(family)
    ours = BiEncoder.load(folder)
    vectors = ours.encode(TEXTS)
    ours.save(tmp_path / "ours")
    again, theirs = BiEncoder.load(tmp_path / "ours"), SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), vectors)
    assert again.fingerprint == ours.fingerprint
    assert relative(theirs.encode(TEXTS), vectors) < 1e-5
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    assert relative(BiEncoder.load(tmp_path / "theirs").encode(TEXTS), vectors) < 1e-5


@pytest.mark.parametrize("family", NATIVE)
def test_cross_encoder_folders_load_in_the_other(make: Callable[..., Path], family: str, tmp_path: Path) -> None:
    folder = make(family, kind="classifier", num_labels=1)
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    ours = CrossEncoder.load(folder)
    scores = ours.predict(pairs)
    ours.save(tmp_path / "ours")
    theirs = TheirCross(str(tmp_path / "ours"), device="cpu")
    assert np.abs(theirs.predict(pairs) - scores).max() < 1e-5
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    assert np.abs(CrossEncoder.load(tmp_path / "theirs").predict(pairs) - scores).max() < 1e-5


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_our_own_head_loads_there(make: Callable[..., Path], family: str, tmp_path: Path) -> None:
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    ours = CrossEncoder.create(make(family), num_labels=1)
    scores = ours.predict(pairs)
    ours.save(tmp_path / "own")
    assert np.array_equal(CrossEncoder.load(tmp_path / "own").predict(pairs), scores)
    assert np.abs(TheirCross(str(tmp_path / "own"), device="cpu").predict(pairs) - scores).max() < 1e-5
