"""Read MIRACL's folders: topics/, qrels/ in TREC's format, and the corpus of the language inside or beside them."""

import json
import os
import re
from pathlib import Path

from munjang.data.files import read_lines
from munjang.errors import InputError

TOPICS = re.compile(r"topics\.miracl-v[\d.]+-(?P<language>[a-z]{2})-(?P<split>.+)\.tsv")
DOCUMENT_FILES = "docs-*.jsonl*"

# Documents by id, queries by id, relevances by query and document, and a note
Collection = tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]], str]


def is_miracl(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder has MIRACL's topics and qrels, such as miracl-v1.0-ko."""
    return bool(_topics(Path(folder))) and (Path(folder) / "qrels").is_dir()


def read_miracl(folder: Path, split: str) -> Collection:
    """Read one split; instead of test, whose relevances are not published, dev."""
    topics = {match["split"]: (path, match["language"]) for path, match in _topics(folder)}
    judged = {name: folder / "qrels" / path.name.replace("topics.", "qrels.", 1) for name, (path, _) in topics.items()}
    measured = [name for name, path in judged.items() if path.is_file()]
    note = ""
    if split not in measured and split == "test" and "dev" in measured:
        split, note = "dev", "MIRACL publishes no relevances of test; dev is measured"
    if split not in measured:
        raise InputError(f"{folder} has qrels of {', '.join(measured) or 'nothing'}, not of {split!r}; give --split")
    path, language = topics[split]
    queries = dict(_fields(path, 2))
    relevances: dict[str, dict[str, float]] = {}
    for query, _, document, relevance in _fields(judged[split], 4):
        relevances.setdefault(query, {})[document] = float(relevance)
    return _corpus(folder, language), queries, relevances, note


def _topics(folder: Path) -> list[tuple[Path, re.Match[str]]]:
    paths = sorted((folder / "topics").glob("topics.*.tsv"))
    return [(path, match) for path in paths if (match := TOPICS.fullmatch(path.name)) is not None]


def _corpus(folder: Path, language: str) -> dict[str, str]:
    """Read the passages, title in front; they are published apart from the queries."""
    places = [folder, folder / "corpus"]
    places += sorted(folder.glob(f"miracl-corpus-*-{language}"))
    places += sorted(folder.parent.glob(f"miracl-corpus-*-{language}"))
    files = next((found for place in places if (found := sorted(place.glob(DOCUMENT_FILES)))), [])
    if not files:
        raise InputError(
            f"{folder} has no corpus: put the files {DOCUMENT_FILES.rstrip('*')}.gz of miracl-corpus-v1.0-{language} "
            "into it, or that folder beside it"
        )
    corpus: dict[str, str] = {}
    for file in files:
        for number, line in read_lines(file):
            try:
                passage = json.loads(line)
                corpus[passage["docid"]] = f"{passage['title']} {passage['text']}".strip()
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file}, line {number}: not a passage with docid, title and text ({error})") from None
    return corpus


def _fields(path: Path, num_fields: int) -> list[list[str]]:
    rows = []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if line and len(fields) != num_fields:
            raise InputError(f"{path}, line {number}: {len(fields)} fields between tabs, not {num_fields}")
        rows += [fields] if line else []
    return rows
