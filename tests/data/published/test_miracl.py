"""MIRACL's folders: queries and relevances in one, passages in another."""

import gzip
import json
from pathlib import Path

import pytest

from munjang.errors import InputError
from munjang.evaluation import Settings, prepare


@pytest.fixture
def miracl(tmp_path: Path) -> Path:
    folder = tmp_path / "miracl-v1.0-ko"
    for name, content in {
        "topics/topics.miracl-v1.0-ko-dev.tsv": "1#0\t수도는?\n2#0\t강은?\n",
        "topics/topics.miracl-v1.0-ko-test-a.tsv": "3#0\t산은?\n",
        "qrels/qrels.miracl-v1.0-ko-dev.tsv": "1#0\tQ0\td1#0\t1\n1#0\tQ0\td2#0\t0\n2#0\tQ0\td2#0\t1\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    corpus = tmp_path / "miracl-corpus-v1.0-ko"
    corpus.mkdir()
    passages = [{"docid": "d1#0", "title": "서울", "text": "수도"}, {"docid": "d2#0", "title": "한강", "text": "강"}]
    lines = "".join(json.dumps(passage) + "\n" for passage in passages)
    (corpus / "docs-0.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return folder


def test_corpus_beside(miracl: Path) -> None:
    kind, data = prepare(miracl, None, Settings())
    assert kind == "retrieval"
    assert data.corpus == {"d1#0": "서울 수도", "d2#0": "한강 강"}
    assert data.queries == {"1#0": "수도는?", "2#0": "강은?"}
    assert data.relevances == {"1#0": {"d1#0": 1.0, "d2#0": 0.0}, "2#0": {"d2#0": 1.0}}
    assert data.notes == ("MIRACL publishes no relevances of test; dev is measured",)


def test_what_is_missing_is_said(miracl: Path) -> None:
    with pytest.raises(InputError, match="has qrels of dev, not of 'train'; give --split"):
        prepare(miracl, None, Settings(split="train"))
    (miracl.parent / "miracl-corpus-v1.0-ko" / "docs-0.jsonl.gz").unlink()
    with pytest.raises(InputError, match=r"has no corpus: put the files .* of miracl-corpus-v1\.0-ko"):
        prepare(miracl, None, Settings())
