"""Small data with known answers, and tiny models to measure."""

from collections.abc import Callable
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder


@pytest.fixture(scope="session")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, device="cpu", threads=1)


@pytest.fixture(scope="session")
def cross(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="cross", num_labels=1), device="cpu", threads=1)


@pytest.fixture(scope="session")
def cross_nli(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="cross", num_labels=3), device="cpu", threads=1)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """`write("a.tsv", "text\tlabel", "one\t1")`: a file of these lines."""

    def put(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return put


@pytest.fixture
def retrieval(write: Callable[..., Path]) -> Path:
    """Four documents, two of them the very words of the queries; query 3 has nothing relevant."""
    write(
        "set/corpus.tsv",
        "id\ttitle\ttext",
        "d1\t\ta quick fox",
        "d2\t나는\t오늘 학교에",
        "d3\tx\tlazy",
        "d4\t\tdogs run",
    )
    write("set/queries.tsv", "id\ttext", "1\ta quick fox", "2\t나는 오늘 학교에", "3\tunanswered", "4\tnot judged")
    judged = write("set/qrels.tsv", "query_id\tcorpus_id\tscore", "1\td1\t2", "2\td2\t1", "2\td3\t1", "3\td4\t0")
    return judged.parent
