"""Real models on real data: the figures that others report."""

from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.evaluation import evaluate


@pytest.mark.slow
def test_sts_benchmark(minilm: Path, data_folder: Path) -> None:
    report = evaluate(BiEncoder.load(minilm, device="cpu", dtype="float32"), data_folder / "sts" / "stsb-test.tsv")
    assert report.rows == 1379
    assert 100 * report.score == pytest.approx(82.03, abs=0.02)  # as sentence-transformers' vectors and scipy give it


@pytest.mark.slow
def test_cranfield(minilm: Path, data_folder: Path) -> None:
    report = evaluate(BiEncoder.load(minilm, device="cpu", dtype="float32"), data_folder / "retrieval" / "cranfield")
    assert (report.kind, report.rows) == ("retrieval", 225)
    assert 100 * report.score == pytest.approx(38.17, abs=0.1)
