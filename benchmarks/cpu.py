"""Encoding on this CPU: ours, sentence-transformers and every peer that is installed, side by side in one run.

    make bench                       ours and sentence-transformers, and the peers of `make bench-peers`
    python -m benchmarks.cpu [--data FOLDER] [--count 600] [--rounds 5] [--only munjang] [--out FILE.json] [--record]

Every encoder has a process of its own and takes one turn a round; the others are stopped meanwhile. Cosines are to
sentence-transformers in float32. Bare times say nothing about another machine: read the ratios.
"""

import argparse
import json
import os
import statistics
import tempfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.corpora import corpora
from benchmarks.models import add_model, fill_model
from benchmarks.peers.process import PeerFailed, Process
from benchmarks.peers.table import PEERS, REFERENCE, VENVS
from munjang.engine.measure import processor

SENTENCE = "How fast is one short sentence?"
LATENCY_TURNS, LATENCY_ROUNDS = 3, 20
LARGEST_SAMPLE = 192  # texts on which an encoder tries its batch sizes


class Field:
    """The encoders that run, and why the others do not."""

    def __init__(self, model: Path, threads: int, only: list[str], scratch: Path) -> None:
        self.running: dict[str, Process] = {}
        self.versions: dict[str, dict[str, str]] = {}
        self.skipped: dict[str, str] = {}
        self.scratch = scratch
        for peer in PEERS:
            if only and peer.name != REFERENCE and not any(word in peer.name for word in only):
                continue
            try:
                process = Process(peer, threads, scratch / f"{peer.name}.log")
                self.running[peer.name] = process
                request = {"loader": peer.loader, "model": str(model), "made": str(made_of(model)), "threads": threads}
                answer = process.ask("load", options=peer.options, **request)
                self.versions[peer.name] = answer["versions"]
                say(f"{peer.name}: loaded in {answer['seconds']:.1f} s")
            except PeerFailed as why:
                self.drop(peer.name, str(why))

    def drop(self, name: str, why: str) -> None:
        """Go on without this one."""
        say(f"{name}: skipped, {why}")
        self.skipped[name] = why
        if name in self.running:
            self.running.pop(name).close()

    def each(self, first: int, do: str, **request: Any) -> dict[str, dict[str, Any]]:
        """One turn for everyone; who begins changes from round to round."""
        names = list(self.running)
        answers = {}
        for at in range(len(names)):
            name = names[(at + first) % len(names)]
            files = {"vectors": str(self.scratch / f"{name}.npy")} if do == "encode" else {}
            try:
                answers[name] = self.running[name].ask(do, **request, **files)
            except PeerFailed as why:
                self.drop(name, str(why))
        return answers

    def close(self) -> None:
        """End all processes."""
        for process in self.running.values():
            process.close()


def measure(field: Field, texts: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Each encoder's seconds, the setting it ran with, and its cosines to the reference."""
    path = field.scratch / "texts.json"
    path.write_text(json.dumps(texts), encoding="utf-8")
    sample = max(min(LARGEST_SAMPLE, len(texts) // 3), 1)
    settings = field.each(0, "texts", path=str(path), sample=sample)
    turns = [field.each(number, "encode") for number in range(rounds)]
    exact = _unit(np.load(field.scratch / f"{REFERENCE}.npy"))
    base = [turn[REFERENCE]["seconds"] for turn in turns]
    rows = {}
    for name in field.running:
        seconds = [turn[name]["seconds"] for turn in turns]
        cosines = (_unit(np.load(field.scratch / f"{name}.npy")) * exact).sum(1)
        rows[name] = {
            "times_median": round(statistics.median(base) / statistics.median(seconds), 3),
            "times_best": round(min(base) / min(seconds), 3),
            "texts_per_s": round(len(texts) / statistics.median(seconds), 1),
            "cosine_min": round(float(cosines.min()), 7),
            "cosine_mean": round(float(cosines.mean()), 7),
            "setting": settings[name]["setting"],
            "seconds": [round(each, 5) for each in seconds],
        }
        row = rows[name]
        faces = f"best {row['times_best']:.2f}, {row['texts_per_s']:,.0f} texts/s, cosine {row['cosine_min']:.5f}"
        say(f"  {name:32} {row['times_median']:5.2f} times, {faces} at least, {row['cosine_mean']:.6f} mean")
    return rows


def latency(field: Field) -> dict[str, float]:
    """Median milliseconds for one short sentence."""
    found: dict[str, list[float]] = {name: [] for name in field.running}
    for number in range(LATENCY_TURNS):
        for name, answer in field.each(number, "latency", text=SENTENCE, rounds=LATENCY_ROUNDS).items():
            found[name] += answer["seconds"]
    return {name: round(1000 * statistics.median(found[name]), 3) for name in field.running}


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All corpora, as one record."""
    texts_of = corpora(options.count, options.data)
    field = Field(options.model, options.threads, options.only, scratch)
    try:
        if REFERENCE not in field.running:
            raise SystemExit(f"{REFERENCE}, which all others are compared with: {field.skipped[REFERENCE]}")
        tokens = num_tokens(options.model, texts_of)
        rows = []
        for corpus, texts in texts_of.items():
            say(f"{corpus}: {len(texts)} texts of {tokens[corpus]:.0f} tokens")
            encoders = measure(field, texts, options.rounds)
            rows.append({"corpus": corpus, "texts": len(texts), "tokens": tokens[corpus], "encoders": encoders})
        one = latency(field)
        for name, milliseconds in one.items():
            say(f"one short sentence: {name:32} {milliseconds:.2f} ms")
    finally:
        field.close()
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "threads": options.threads,
        "command": "python -m benchmarks.cpu",
        "data": "a data folder" if options.data else "the repository's own texts",
        "model": options.name,
        "rounds": options.rounds,
        "reference": REFERENCE,
        "versions": field.versions,
        "skipped": field.skipped,
        "corpora": rows,
        "one_sentence_ms": one,
    }


def made_of(model: Path) -> Path:
    """Return the folder of a model that peers have converted, one for each model."""
    weights = model / "model.safetensors"
    state = f"{model} {weights.stat().st_size} {weights.stat().st_mtime_ns}" if weights.exists() else str(model)
    return VENVS / "models" / f"{model.name}-{zlib.crc32(state.encode()):08x}"


def num_tokens(model: Path, texts_of: dict[str, list[str]]) -> dict[str, float]:
    """Mean tokens a text, as the model reads it."""
    from munjang import checkpoint

    tokenizer = checkpoint.load_bi(model, None).tokenizer
    return {name: round(float(tokenizer(texts).lengths.mean()), 1) for name, texts in texts_of.items()}


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def say(line: str) -> None:
    """Now, even into a pipe."""
    print(line, flush=True)


def parse() -> argparse.Namespace:
    """The command line, with all-MiniLM-L6-v2 from its package where no model is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model(parser)
    parser.add_argument("--data", type=Path, help="folder with text/ and retrieval/; default: the repository's texts")
    parser.add_argument("--count", type=int, default=600, help="texts of each corpus")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=[], help="encoders whose names contain one of these words")
    parser.add_argument("--out", type=Path, help="write the record here, and a chart beside it")
    parser.add_argument("--record", action="store_true", help=f"the same into {report.RECORD}, and the READMEs' tables")
    options = parser.parse_args()
    fill_model(options)
    return options


def main() -> None:
    """Parse, measure, print, write."""
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        record = run(options, Path(scratch))
    for path in [options.out, *([report.ROOT / report.RECORD] if options.record else [])]:
        if path:
            report.write(record, path)
    if options.record:
        print("Now write the tables of the READMEs: make docs FIX=1")


if __name__ == "__main__":
    main()
