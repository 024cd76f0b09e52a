"""The examples of pairs, clusters and duplicates run, and say what they should."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("paraphrases", "How do I reset my password?  =  I forgot my password, what can I do?"),
        ("cluster", "4 texts, parcel, arrived: Where is my parcel?"),
        ("dedupe", "test rows that stay: ['A child rides a bicycle.']"),
    ],
)
def test_example(name: str, line: str) -> None:
    """With the bundled model, as their thresholds are made for its cosines."""
    path = ROOT / "examples" / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, cwd=ROOT)
    assert line in done.stdout
