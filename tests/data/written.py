"""Rows as files of every format."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

Rows = list[dict[str, object]]
PAIRS: Rows = [
    {"sentence1": "A plane is taking off.", "sentence2": "비행기가 이륙한다.", "score": 5},
    {"sentence1": 'He said "no", twice.', "sentence2": "A cat sits.", "score": 0.5},
    {"sentence1": "남자가 연주한다.", "sentence2": "A man plays.", "score": 2.5},
]


def as_csv(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_tsv(rows: Rows) -> bytes:
    return "".join("\t".join(map(str, line)) + "\n" for line in [list(rows[0]), *(r.values() for r in rows)]).encode()


def as_jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({name: [row[name] for row in rows] for name in rows[0]}), file)
    return file.getvalue()


WRITERS = {"csv": as_csv, "tsv": as_tsv, "jsonl": as_jsonl, "parquet": as_parquet}


def write(path: Path, rows: Rows) -> Path:
    path.write_bytes(WRITERS[path.suffix[1:]](rows))
    return path


def labelled(*labels: object, **columns: str) -> Rows:
    return [{"text": f"text {row}", **columns, "label": label} for row, label in enumerate(labels)]
