"""`munjang index build`, killed at several points and run again: nothing is lost, nothing is there twice."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.index.writing import BATCH_DOCUMENTS
from munjang.stores import open_store
from munjang.stores.base import NoSuchStore

NUM_ROWS = 3 * BATCH_DOCUMENTS + 100


def rows_in(place: Path) -> list[str]:
    """Ids of the documents in the folder."""
    try:
        store = open_store(str(place), None, create=False)
    except NoSuchStore:
        return []
    return [document for rows in store.scan() for document in rows.document_ids]


@pytest.mark.parametrize("points", [(2,), pytest.param((1, 2, 3), marks=pytest.mark.slow)])
def test_killed_and_run_again(tmp_path: Path, tiny_bert: Path, points: tuple[int, ...]) -> None:
    source, place = tmp_path / "documents.jsonl", tmp_path / "index"
    lines = [{"text": f"document {row} about {row % 7}", "year": 2000 + row % 20} for row in range(NUM_ROWS)]
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    arguments = ["index", "build", str(place), str(source), "--model", str(tiny_bert), "--device", "cpu", "--quiet"]
    counts = []
    for num_files in points:  # killed as soon as so many data files are there, whatever was being written
        with subprocess.Popen([sys.executable, "-m", "munjang", *arguments], stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 120
            while len(list(place.glob("**/data/*.lance"))) < num_files:
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.002)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        found = rows_in(place)
        assert len(set(found)) == len(found)
        assert len(found) % BATCH_DOCUMENTS == 0  # whole batches only
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[-1] < NUM_ROWS
    assert main(arguments) == 0
    found = rows_in(place)
    assert len(set(found)) == len(found) == NUM_ROWS
    assert main(arguments) == 0  # once more: everything is there
    assert len(rows_in(place)) == NUM_ROWS
