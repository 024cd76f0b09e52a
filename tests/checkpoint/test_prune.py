"""A pruned model: the same vectors for the texts that it was pruned for, and vectors for every other text."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from munjang import BiEncoder, CrossEncoder, checkpoint
from munjang.checkpoint.prune import prune
from munjang.checkpoint.vocabulary import needed, rewrite, vocab_of
from munjang.data.tables import read_texts
from munjang.errors import InputError, UnsupportedModel
from tests.checkpoint import folders
from tests.models import make_tokenizer
from tests.texts import ENGLISH, HOSTILE, KOREAN, mixed

Make = Callable[..., Path]
COVERED = [" ".join(ENGLISH[:30]), *ENGLISH[:30], " ".join(KOREAN[:12]), *KOREAN[:12], "fox[MASK] <mask>"]
FAMILIES = ["bert", "albert", "mpnet", "roberta", "xlm-roberta", "modernbert"]


def load(folder: Path) -> BiEncoder:
    return BiEncoder.load(folder, device="cpu", dtype="float32")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_vectors(make: Make, tmp_path: Path, family: str) -> None:
    source = make(family)
    model = checkpoint.load_bi(source)
    report = prune(model, COVERED)
    assert report.num_used <= report.num_kept < report.num_rows
    assert report.num_kept_parameters < report.num_parameters
    assert (report.unchanged, report.num_texts) == (1.0, len(COVERED))
    checkpoint.save_bi(model, tmp_path / "small")
    whole, small = load(source), load(tmp_path / "small")
    assert small.info()["vocabulary"] == report.num_kept == small.tokenizer.vocab_size
    # the same rows; the last bit of a product varies with where its memory begins
    np.testing.assert_allclose(small.encode(COVERED), whole.encode(COVERED), atol=2e-6)
    assert np.isfinite(small.encode([*HOSTILE, *mixed(30, longest=30)])).all()
    theirs = SentenceTransformer(str(tmp_path / "small"), device="cpu")
    assert folders.difference(theirs.encode(COVERED), whole.encode(COVERED)) < 1e-5
    others = mixed(20, longest=30)
    assert folders.difference(theirs.encode(others), small.encode(others)) < 1e-5


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "roberta"])
def test_other_texts_fall_to_smaller_tokens(make: Make, family: str) -> None:
    model = checkpoint.load_bi(make(family))
    before = model.tokenizer.rust
    prune(model, COVERED)
    after = model.tokenizer.rust
    word = next(word for word in ENGLISH[30:] if word.isalpha() and set(word) <= set("".join(ENGLISH[:30])) - {"'"})
    for tokenizer in (before, after):
        unknown = tokenizer.token_to_id("[UNK]") if family == "bert" else tokenizer.token_to_id("<unk>")
        assert unknown not in tokenizer.encode(word).ids
    assert len(after.encode(word).ids) >= len(before.encode(word).ids)
    assert after.decode(after.encode(word).ids).replace(" ", "").strip("▁") == word


def test_cross_encoders(make: Make, tmp_path: Path) -> None:
    source = make("bert", kind="classifier", num_labels=1)
    model = checkpoint.load_cross(source)
    prune(model, COVERED)
    checkpoint.save_cross(model, tmp_path / "small", torch.nn.Sigmoid())
    pairs = list(zip(COVERED, reversed(COVERED), strict=True))
    whole, small = (CrossEncoder.load(path, device="cpu", dtype="float32") for path in (source, tmp_path / "small"))
    np.testing.assert_allclose(small.predict(pairs), whole.predict(pairs), atol=1e-6)


def test_static_embeddings(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = StaticEmbedding(make_tokenizer("wordpiece"), embedding_dim=16)
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path / "whole"), create_model_card=False)
    model = checkpoint.load_bi(tmp_path / "whole")
    report = prune(model, COVERED)
    assert report.num_kept < report.num_rows
    checkpoint.save_bi(model, tmp_path / "small")
    expected = load(tmp_path / "whole").encode(COVERED)
    np.testing.assert_allclose(load(tmp_path / "small").encode(COVERED), expected, atol=1e-6)
    theirs = SentenceTransformer(str(tmp_path / "small"), device="cpu")
    assert folders.difference(theirs.encode(COVERED), expected) < 1e-5


def test_prompts_are_covered(make: Make, tmp_path: Path) -> None:
    source = make("roberta", prompts='{"query": "search: ", "document": "많다 "}')
    model = checkpoint.load_bi(source)
    report = prune(model, COVERED)
    assert report.num_texts == 3 * len(COVERED)
    checkpoint.save_bi(model, tmp_path / "small")
    whole, small = load(source), load(tmp_path / "small")
    np.testing.assert_allclose(small.encode_query(COVERED), whole.encode_query(COVERED), atol=2e-6)
    np.testing.assert_allclose(small.encode_document(COVERED), whole.encode_document(COVERED), atol=2e-6)


def test_positions_still_begin_behind_the_padding_id(make: Make, tmp_path: Path) -> None:
    """A RoBERTa whose padding is not among the first tokens: all up to it stay, as its id is an offset."""
    source = folders.copy(make("roberta"), tmp_path / "source")
    folders.edit(source / "config.json", pad_token_id=9)
    model = checkpoint.load_bi(source)
    prune(model, ["fox"])
    assert model.config["pad_token_id"] == 9
    assert model.network.encoder.shape.pad_id == 9
    checkpoint.save_bi(model, tmp_path / "small")
    np.testing.assert_allclose(load(tmp_path / "small").encode(["fox"]), load(source).encode(["fox"]), atol=2e-6)


def test_files_of_the_old_vocabulary_stay_behind(make: Make, tmp_path: Path) -> None:
    """vocab.txt with the old numbers beside the new tokenizer.json would be another tokenizer."""
    source = folders.copy(make("bert"), tmp_path / "source")
    rust = Tokenizer.from_file(str(source / "tokenizer.json"))
    vocab = rust.get_vocab()
    (source / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.__getitem__)) + "\n", encoding="utf-8")
    folders.write(source / "special_tokens_map.json", {"unk_token": "[UNK]", "cls_token": "[CLS]"})
    token = {"content": "[MASK]", "special": True}
    folders.edit(source / "tokenizer_config.json", added_tokens_decoder={str(vocab["[MASK]"]): token})
    model = checkpoint.load_bi(source)
    prune(model, COVERED)
    checkpoint.save_bi(model, tmp_path / "small")
    assert not (tmp_path / "small" / "vocab.txt").exists()
    settings = folders.read(tmp_path / "small" / "tokenizer_config.json")
    place = model.tokenizer.rust.token_to_id("[MASK]")
    assert settings["added_tokens_decoder"] == {str(place): token}
    assert settings["unk_token"] == "[UNK]"
    theirs = SentenceTransformer(str(tmp_path / "small"), device="cpu")
    assert folders.difference(theirs.encode(COVERED), load(source).encode(COVERED)) < 1e-5


def test_rare_pieces_and_chosen_ones(make: Make) -> None:
    model = checkpoint.load_bi(make("bert"))
    rust = model.tokenizer.rust
    words = [
        token for token in sorted(rust.get_vocab()) if len(token) > 1 and rust.encode(token).tokens[1:-1] == [token]
    ]
    often, rare, chosen = words[:3]
    report = prune(model, [*[f"{often} {often}"] * 3, f"{rare} {often}"], keep=[chosen], min_count=2)
    kept = model.tokenizer.rust.get_vocab()
    assert {often, chosen} <= kept.keys()
    assert rare not in kept
    assert (report.num_used, report.num_texts, report.num_unchanged) == (1, 4, 3)
    assert "75.0000% of 4 texts" in str(report)


def test_what_is_refused(make: Make) -> None:
    model = checkpoint.load_bi(make("bert"))
    with pytest.raises(InputError, match="min_count must be at least 1"):
        prune(model, ["a"], min_count=0)
    with pytest.raises(InputError, match="Pruning needs texts"):
        prune(model, [])
    with pytest.raises(InputError, match="no token 'xyzzy' to keep"):
        prune(model, ["a"], keep=["xyzzy"])
    with pytest.raises(InputError, match="should be a list of tokens"):
        prune(model, ["a"], keep="fox")
    with pytest.raises(UnsupportedModel, match="not TransformersEncoder"):
        prune(checkpoint.load_bi(make("qwen3")), ["a"])
    with pytest.raises(UnsupportedModel, match="type 'WordLevel' can't be pruned; only WordPiece, Unigram, BPE can"):
        vocab_of({"model": {"type": "WordLevel", "vocab": {}}})


def test_every_way_to_a_piece_stays() -> None:
    """abc comes about as ab + c in one word and as a + bc in another."""
    pairs = ["a b", "b c", "ab c", "a bc", "c d"]
    vocab = {token: number for number, token in enumerate(["a", "b", "c", "d", "ab", "bc", "abc", "cd"])}
    spec = {"model": {"type": "BPE", "vocab": vocab, "merges": pairs}, "added_tokens": []}
    kept = needed(spec, {"abc"})
    assert kept == {"a", "b", "c", "ab", "bc", "abc"}
    new = rewrite(spec, {token: number for number, token in enumerate(sorted(kept))})
    assert new["model"]["merges"] == [["a", "b"], ["b", "c"], ["ab", "c"], ["a", "bc"]]


@pytest.mark.parametrize(
    "ends",
    [
        {"type": "RobertaProcessing", "sep": ["c", 2], "cls": ["a", 0]},
        {"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["c", 2], "cls": ["a", 0]}]},
    ],
)
def test_special_tokens_of_a_text_are_renumbered(ends: dict[str, object]) -> None:
    spec = {"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 1, "c": 2}}, "post_processor": ends}
    assert needed(spec, ()) == {"a", "c"}
    shown = json.dumps(rewrite(spec, {"a": 0, "c": 1})["post_processor"])
    assert '"sep": ["c", 1]' in shown
    assert '"cls": ["a", 0]' in shown


@pytest.mark.slow
def test_the_real_e5(real_models: Path, data_folder: Path, tmp_path: Path) -> None:
    files = [data_folder / "text" / f"{name}.txt.xz" for name in ("en-sentences", "ko-reviews")]
    texts = [text for path in files for text in islice(read_texts(path), 5000)]
    model = checkpoint.load_bi(real_models / "e5-small")
    report = prune(model, texts)
    assert report.num_kept < report.num_rows / 5
    assert report.unchanged == 1.0
    checkpoint.save_bi(model, tmp_path / "small")
    some = texts[::100]
    whole = load(real_models / "e5-small").encode(some, normalize=True)
    np.testing.assert_allclose(load(tmp_path / "small").encode(some, normalize=True), whole, atol=2e-6)
    theirs = SentenceTransformer(str(tmp_path / "small"), device="cpu").encode(some, normalize_embeddings=True)
    assert (theirs.astype(np.float64) * whole).sum(1).min() > 0.999999
