"""Shipping: a trained folder becomes a bundled model with its card, and the wheel really holds it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError, InputError
from munjang.nn.cpu import can_pack
from recipes.card import DATA, STORIES, scores
from recipes.ship import ship

ROOT = Path(__file__).parents[2]
TEXTS = ["a fox", "서울은 대한민국의 수도이다"]
REPORTS = {"model": "ours", "reports": {"korsts-test": {"main": "cosine_spearman", "score": 0.8312}}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(REPORTS), encoding="utf-8")
    return path


def test_a_bi_encoder(make: Callable[..., Path], results: Path, unbundled: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    source = make("xlm-roberta")
    target = ship("ko-en-small", source, [results], texts, unbundled)
    model = BiEncoder.load(device="cpu")
    assert model.model.folder == target
    assert (model.info()["format"], model.info()["dtype"]) == ("munjang-int8", "float32")
    assert (model.encode(TEXTS) * BiEncoder.load(source).encode(TEXTS)).sum(1).min() > 0.99
    assert model.encode(TEXTS, precision="int8").dtype == np.int8  # its ranges were measured
    assert json.loads((target / "config.json").read_text())["matryoshka_dimensions"] == [64, 128, 256]
    card = (target / "README.md").read_text(encoding="utf-8")
    assert "| KorSTS, test | cosine spearman | 83.12 |" in card
    assert "{" not in card
    assert all(DATA[name][0] in (target / "NOTICE").read_text(encoding="utf-8") for name in STORIES["ko-en-small"].data)
    weights = (target / "munjang_int8.safetensors").read_bytes()
    ship("ko-en-small", target, [], None, unbundled)
    assert (target / "munjang_int8.safetensors").read_bytes() == weights
    assert "Not measured yet" in (target / "README.md").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="rounded already"):
        ship("ko-en-small", target, [], texts, unbundled)


def test_a_cross_encoder(make: Callable[..., Path], results: Path, unbundled: Path, tmp_path: Path) -> None:
    CrossEncoder.create(make("xlm-roberta"), device="cpu", dtype="float32").save(tmp_path / "cross")
    target = ship("ko-en-reranker", tmp_path / "cross", [results], None, unbundled)
    scorer = CrossEncoder.load(device="cpu")
    assert scorer.model.folder == target
    assert scorer.info()["dtype"] == ("int8" if can_pack(torch.int8) else "float32")
    assert CrossEncoder.load(target, "cpu", "float32").info()["dtype"] == "float32"
    scorer.save(tmp_path / "float")
    assert CrossEncoder.load(tmp_path / "float", "cpu").info()["dtype"] == "float32"
    assert "| Activation | Sigmoid |" in (target / "README.md").read_text(encoding="utf-8")


def test_one_table_of_words_serves_both(make: Callable[..., Path], unbundled: Path, tmp_path: Path) -> None:
    encoder = make("xlm-roberta")
    CrossEncoder.create(encoder, device="cpu", dtype="float32").save(tmp_path / "cross")
    alone = ship("ko-en-reranker", tmp_path / "cross", [], None, tmp_path / "alone")
    ship("ko-en-small", encoder, [], None, unbundled)
    target = ship("ko-en-reranker", tmp_path / "cross", [], None, unbundled)
    sizes = [(folder / "munjang_int8.safetensors").stat().st_size for folder in (alone, target)]
    table = BiEncoder.load(encoder).network.encoder.embeddings.word.weight  # type: ignore[union-attr]
    assert sizes[0] - sizes[1] > table.numel()
    pairs, scorer = [(TEXTS[0], TEXTS[1])], CrossEncoder.load(device="cpu", dtype="float32")
    assert scorer.model.folder == target
    assert scorer.predict(pairs) == CrossEncoder.load(alone, "cpu", "float32").predict(pairs)
    scorer.save(tmp_path / "whole", format="munjang-int8")
    (unbundled / "ko-en-small/munjang_int8.safetensors").unlink()
    np.testing.assert_allclose(
        CrossEncoder.load(tmp_path / "whole", "cpu", "float32").predict(pairs), scorer.predict(pairs), atol=1e-5
    )
    with pytest.raises(CheckpointError, match=r"'ko-en-small' is a model of the package, but .* holds no weights"):
        CrossEncoder.load(target)
    config = json.loads((target / "config.json").read_text())
    for other in ("../../elsewhere", ["ko-en-small"], {}, 1):
        (target / "config.json").write_text(json.dumps({**config, "munjang_words_of": other}))
        with pytest.raises(CheckpointError, match="munjang_words_of should be one of ko-en-small, ko-en-reranker"):
            CrossEncoder.load(target)


def test_what_is_refused(make: Callable[..., Path], unbundled: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"reports": {"korsts-test": 0.8}}')
    with pytest.raises(InputError, match="each set with its main metric"):
        ship("ko-en-small", make("xlm-roberta"), [tmp_path / "bad.json"], None, unbundled)
    assert not unbundled.exists()


def test_scores_beside_others() -> None:
    other = {"model": "e5", "reports": {"sts12": {"main": "cosine_spearman", "score": 0.7}}}
    mine = {"reports": {**REPORTS["reports"], "sts12": {"main": "cosine_spearman", "score": 0.75}}}
    assert scores("ko-en-small", [mine, other]).splitlines()[2:] == [
        "| KorSTS, test | cosine spearman | 83.12 |  |",
        "| STS 2012 | cosine spearman | 75.00 | 70.00 |",
    ]
