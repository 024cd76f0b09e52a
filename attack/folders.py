"""Hostile model folders: values of JSON files replaced, files cut and bombed; loading ends soon, and in order.

Each folder is loaded in a process of its own with bounds of time and memory; nothing of it is ever run.
"""

import argparse
import json
import os
import pickle
import random
import resource
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from attack.child import PROCESSES, outcome_of
from attack.verdict import Verdict
from munjang.bi_encoder import BiEncoder
from munjang.errors import MunjangError
from tests.checkpoint.test_fuzz import REPLACEMENTS, changed, places
from tests.models import make_model

NUM_FOLDERS = 1000  # at scale 1
MAX_S, MAX_MORE_BYTES = 60.0, 3 * 2**30
RAN = "MUNJANG_ATTACK_RAN"


class Bomb:
    """Leave a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, (f"touch {os.environ[RAN]}",)


def run(options: argparse.Namespace) -> Verdict:
    """Change a folder in many ways, and load each."""
    PROCESSES.set_forkserver_preload(["attack.folders"])
    verdict, draws = Verdict("folders"), random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        os.environ[RAN] = str(Path(place) / "ran")
        whole = make_model("bert", Path(place) / "whole")
        attacks = [*_json_attacks(whole, draws, max(20, round(NUM_FOLDERS * options.scale))), *_file_attacks(whole)]
        for number, (name, change) in enumerate(attacks):
            folder = Path(place) / str(number)
            shutil.copytree(whole, folder)
            change(folder)
            outcome = outcome_of(_load, (folder,), MAX_S)
            outcomes[outcome] += 1
            verdict.expect(outcome in ("loaded", "refused"), f"{name}: {outcome}")
            shutil.rmtree(folder)
        verdict.expect(not Path(os.environ[RAN]).exists(), "code of a folder was run")
    verdict.counts = {"folders": len(attacks), **outcomes}
    return verdict


def _json_attacks(whole: Path, draws: random.Random, number: int) -> list[tuple[str, Callable[[Path], None]]]:
    """Replace or remove values of JSON files."""
    attacks = []
    for _ in range(number):
        file = draws.choice(sorted(whole.rglob("*.json")))
        content = json.loads(file.read_text(encoding="utf-8"))
        path = draws.choice([*places(content)] or [()])
        replacement = draws.choice(REPLACEMENTS)
        name = file.relative_to(whole)
        if path:
            new = json.dumps(changed(content, path, replacement))
            attacks.append((f"{name} {path} = {replacement!r}", partial(_write, name, new)))
    return attacks


def _file_attacks(whole: Path) -> list[tuple[str, Callable[[Path], None]]]:
    """Replace whole files, by each of these."""
    kinds: dict[str, Callable[[Path], None]] = {
        "empty": lambda path: path.write_bytes(b""),
        "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
        "a pickle": lambda path: path.write_bytes(pickle.dumps(Bomb())),
        "a pipe": _pipe,
        "a device": lambda path: _link(path, "/dev/zero"),
        "deep": lambda path: path.write_bytes(b"[" * 100_000),
        "a link to itself": lambda path: _link(path, path.name),
    }
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    attacks = [
        (f"{file}: {kind}", lambda folder, file=file, change=change: change(folder / file))
        for file in files
        for kind, change in kinds.items()
    ]
    weights = ("pytorch_model.bin", "model.safetensors")

    def pickled(folder: Path) -> None:
        (folder / weights[1]).unlink()
        (folder / weights[0]).write_bytes(pickle.dumps(Bomb()))

    return [*attacks, ("pickled weights", pickled)]


def _write(name: Path, text: str, folder: Path) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def _link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _load(folder: Path, send: object) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MAX_MORE_BYTES, size + MAX_MORE_BYTES))
    warnings.simplefilter("ignore")
    try:
        BiEncoder.load(folder, "cpu", threads=1).encode(["one text", "", "가나 " * 60], progress=False)
        outcome = "loaded"
    except MunjangError:
        outcome = "refused"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"[:200]
    send.send(outcome)  # type: ignore[attr-defined]
