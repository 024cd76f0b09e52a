"""The benchmarks: their tables are what the records give, every row of the peers' table can be used, one turn works."""

import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import report, reranking
from benchmarks.chart import bars
from benchmarks.corpora import corpora
from benchmarks.pairs import most_similar
from benchmarks.peers.loaders import LOADERS
from benchmarks.peers.process import PeerFailed, Process
from benchmarks.peers.table import OWN, PEERS, REFERENCE, ROOT, Peer
from munjang import BiEncoder, CrossEncoder

ROW = {"times_median": 1.0, "times_best": 1.1, "cosine_min": 1.0, "cosine_mean": 1.0}
RECORD: dict[str, Any] = {
    "when": "2026-11-15T12:00:00+00:00",
    "machine": "A CPU (AVX2)",
    "threads": 2,
    "rounds": 5,
    "model": "a model",
    "reference": REFERENCE,
    "skipped": {"infinity": "no .venv-peers/infinity/bin/python: make bench-peers"},
    "corpora": [
        {"corpus": "short", "tokens": 27.4, "encoders": {REFERENCE: ROW, "munjang": {**ROW, "times_median": 1.714}}},
        {"corpus": "long", "tokens": 256.0, "encoders": {REFERENCE: ROW, "munjang": {**ROW, "cosine_min": 0.9941}}},
    ],
    "one_sentence_ms": {REFERENCE: 9.34, "munjang": 3.06},
}


def test_table() -> None:
    shown = report.table(RECORD, report.WORDS["README.md"]).splitlines()
    assert shown[0] == "| encoder | short | long | one sentence, ms | cosine, min / mean |"
    assert shown[2] == f"| {REFERENCE} | 1.00 | 1.00 | 9.3 | 1.000000 / 1.000000 |"
    assert shown[3] == "| munjang | 1.71 | 1.00 | 3.1 | 0.994 / 1.000000 |"
    assert "short 27, long 256" in shown[5]
    assert "Did not run: infinity." in shown[5]


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1.000000"), (0.99998, "0.99998"), (0.9953, "0.995"), (0.9, "0.900")]
)
def test_cosines_round_to_one_only_where_they_are(value: float, shown: str) -> None:
    assert report.cosine(value) == shown


def test_record_and_chart_are_written(tmp_path: Path) -> None:
    report.write(RECORD, tmp_path / "cpu.json")
    assert json.loads((tmp_path / "cpu.json").read_text(encoding="utf-8")) == RECORD
    assert "1.71" in (tmp_path / "cpu.svg").read_text(encoding="utf-8")


def test_chart_has_a_bar_for_every_value() -> None:
    tree = ElementTree.fromstring(bars("a < b", {"one": {"x": 1.0, "y": 2.0}, "two": {"x": 0.5}}))
    widths = [float(each.get("width", "")) for each in tree.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == pytest.approx([550, 275, 137.5])  # the longest first in its group; the first of all is the ground


def test_corpora() -> None:
    found = corpora(40)
    assert {name: len(texts) for name, texts in found.items()} == {
        "English short": 40,
        "Korean short": 40,
        "mixed lengths": 40,
        "long documents": 10,
        "30 % duplicates": 40,
    }
    assert found == corpora(40)
    assert len(set(found["30 % duplicates"])) == 28


def test_corpora_of_a_data_folder(data_folder: Path) -> None:
    assert all(len(set(texts)) > 1 and all(texts) for texts in corpora(12, data_folder).values())


@pytest.mark.parametrize("block", [1, 3, 7, 100])
def test_most_similar_pair_is_exact(block: int) -> None:
    vectors = torch.randn(20, 4, generator=torch.Generator().manual_seed(5)) * torch.arange(1, 21)[:, None]
    cosines = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    pairs = {(row, column): float(cosines[row, column]) for row in range(20) for column in range(row + 1, 20)}
    expected = max(pairs, key=pairs.__getitem__)
    score, *place = most_similar(vectors, block)
    assert tuple(place) == expected
    assert score == pytest.approx(pairs[expected], abs=1e-6)


def test_passages_and_tokens_of_re_rankers(make: Callable[..., Path], tmp_path: Path) -> None:
    """Both sides read the same tokens of the same model; lines are put together until there are enough of them."""
    theirs = pytest.importorskip("sentence_transformers").CrossEncoder
    folder, lines = make("bert", kind="cross", num_labels=1), tmp_path / "lines.txt"
    scorer = CrossEncoder.load(folder, "cpu")
    lines.write_text("the quick brown fox jumps over the lazy dogs\n" * 3000, encoding="utf-8")
    passages = reranking.passages_of(lines, scorer)
    assert len(passages) == 100
    assert all(length >= 100 for length in scorer.tokenizer(passages).lengths)
    texts = ["a fox", passages[0] * 3]  # the second is cut at the limit
    lengths = [len(scorer.tokenizer.rust.encode(reranking.QUESTION, text).ids) for text in texts]
    wanted = (lengths[0] + scorer.max_length) / 2
    assert lengths[1] > scorer.max_length
    assert reranking.tokens_of(scorer, texts) == wanted
    assert reranking.tokens_of(theirs(str(folder), device="cpu"), texts) == wanted
    lines.write_text("too short\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="enough for 0 passages"):
        reranking.passages_of(lines, scorer)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_has_a_loader_and_pinned_packages(peer: Peer) -> None:
    assert peer.loader in LOADERS
    if peer.venv != OWN:
        lines = (ROOT / "benchmarks/peers" / f"{peer.venv}.txt").read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line) for line in lines)


def test_names_of_peers_are_distinct() -> None:
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert PEERS[0].name == REFERENCE


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Any:
    folder = tmp_path_factory.mktemp("process")
    found = Process(Peer("munjang", "munjang", options={"dtype": "float32"}), 1, folder / "log")
    request = {"loader": "munjang", "model": str(tiny_bert), "made": str(folder / "made"), "threads": 1}
    assert found.ask("load", **request, options={"dtype": "float32"})["versions"].keys() == {"torch", "tokenizers"}
    yield found
    found.close()


def test_a_turn(process: Process, tmp_path: Path, tiny_bert: Path) -> None:
    texts = ["a quick fox", "나는 오늘", "over lazy dogs"]
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    assert process.ask("texts", path=str(tmp_path / "texts.json"), sample=2) == {"setting": {}}
    assert process.ask("encode", vectors=str(tmp_path / "vectors.npy"))["seconds"] > 0
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), BiEncoder.load(tiny_bert).encode(texts), atol=2e-6)
    assert len(process.ask("latency", text="a fox", rounds=4)["seconds"]) == 4


def test_what_fails_is_said_and_the_process_goes_on(process: Process) -> None:
    with pytest.raises(PeerFailed, match="FileNotFoundError"):
        process.ask("texts", path="/nowhere.json", sample=2)
    assert len(process.ask("latency", text="a fox", rounds=1)["seconds"]) == 1


def test_a_process_that_ends_is_a_failure(tmp_path: Path) -> None:
    process = Process(PEERS[1], 1, tmp_path / "log")
    process.process.kill()
    with pytest.raises(PeerFailed, match="ended with -9"):
        process.ask("latency", text="", rounds=1)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_a_stopped_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    code = (
        "import os, pathlib; from benchmarks.peers.process import Process; from benchmarks.peers.table import PEERS\n"
        f"process = Process(PEERS[1], 1, pathlib.Path({log!r}))\n"
        "try: process.ask('latency', text='', rounds=1)\n"  # nothing is loaded: it answers so, and is stopped
        "except Exception: print(process.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    state = Path("/proc", done.stdout.strip(), "stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split()[2] == "Z":  # gone, or nobody asked for its exit code yet
            return
        time.sleep(0.1)
    pytest.fail("the process is still there")
