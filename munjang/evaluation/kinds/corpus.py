"""Read folders of retrieval sets: corpus, queries and qrels, in our layout or BEIR's.

corpus.tsv    id, title (may be missing), text          corpus.jsonl    _id, title, text
queries.tsv   id, text                                  queries.jsonl   _id, text
qrels.tsv     query id, corpus id, relevance            qrels/test.tsv  query-id, corpus-id, score
All of them may be .csv, .tsv, .jsonl or .parquet, also with .gz .xz .bz2; other columns are left alone.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from munjang.data.published import shape_of
from munjang.data.published.documents import squad_rows
from munjang.data.published.miracl import is_miracl, read_miracl
from munjang.data.rows import Broken, Choose
from munjang.data.tables import SUFFIXES, place, read_rows
from munjang.errors import InputError

ID_COLUMNS = ("_id", "id", "docid", "doc_id", "corpus_id", "corpus-id", "query_id", "query-id", "qid", "pid")
TEXT_COLUMNS = ("text", "contents", "content", "body", "passage", "document", "query", "question", "sentence")
COMPRESSED = ("", ".xz", ".gz", ".bz2")


@dataclass(frozen=True)
class Retrieval:
    """Documents, queries, and which documents answer which query."""

    name: str
    corpus: dict[str, str]  # id: title and text
    queries: dict[str, str]  # only those that something is judged for
    relevances: dict[str, dict[str, float]]  # query id: document id: relevance
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)


def is_retrieval(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder has relevances in it."""
    return Path(folder).is_dir() and (find(folder, "qrels") is not None or (Path(folder) / "qrels").is_dir())


def find(folder: str | os.PathLike[str], stem: str) -> Path | None:
    """Return the table of this name, whatever its format."""
    names = (Path(folder) / f"{stem}{suffix}{packed}" for suffix in SUFFIXES for packed in COMPRESSED)
    return next((path for path in names if path.is_file()), None)


def read_retrieval(folder: str | os.PathLike[str], split: str = "test", max_queries: int | None = None) -> Retrieval:
    """Read a folder, ours, BEIR's or MIRACL's, and check its tables against each other; or a file like SQuAD's."""
    notes: list[str] = []
    if Path(folder).is_file() and shape_of(folder) == "squad":
        corpus, queries, relevances = _squad(folder)
    elif not Path(folder).is_dir():
        raise InputError(f"{folder}: a folder with corpus, queries and qrels is needed, or a file like SQuAD's.")
    elif is_miracl(folder):
        corpus, queries, relevances, note = read_miracl(Path(folder), split)
        notes += [note] if note else []
    else:
        relevances = read_relevances(_qrels(folder, split))
        queries = read_texts(_needed(folder, "queries"))
        corpus = read_texts(_needed(folder, "corpus"))
    answerable = {
        query: judged
        for query, judged in relevances.items()
        if query in queries and any(relevance > 0 for relevance in judged.values())
    }
    if len(answerable) < len(relevances):
        notes.append(f"{len(relevances) - len(answerable):,} queries of qrels are unknown or have nothing relevant")
    lost = sum(name not in corpus for judged in answerable.values() for name in judged)
    if lost:
        notes.append(f"{lost:,} judged documents are not in the corpus and can't be found")
    if not answerable:
        raise InputError(f"{folder}: no query of queries has a relevant document in qrels; are the ids the same?")
    if lost == sum(map(len, answerable.values())):
        raise InputError(f"{folder}: no document of qrels is in the corpus; are the ids the same?")
    kept = dict(list(answerable.items())[:max_queries])
    return Retrieval(os.fspath(folder), corpus, {query: queries[query] for query in kept}, kept, tuple(notes))


def read_texts(path: Path) -> dict[str, str]:
    """Read texts by id, the title in front as BEIR puts it."""
    found: dict[str, str] = {}
    for where, (name, *parts) in _rows(path, choose_document):
        if str(name) in found:
            raise InputError(f"{place(path, where)}: the id {name!r} is there twice; ids must differ.")
        found[str(name)] = " ".join(str(part) for part in parts if part not in (None, "")).strip()
    return found


def read_relevances(path: Path) -> dict[str, dict[str, float]]:
    """Read relevances by query id and document id."""
    found: dict[str, dict[str, float]] = {}
    for where, (query, document, relevance) in _rows(path, choose_judgement):
        try:
            found.setdefault(str(query), {})[str(document)] = float(str(relevance))
        except ValueError:
            raise InputError(f"{place(path, where)}: the relevance {relevance!r:.40} is not a number.") from None
    return found


def _squad(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]]]:
    """Read paragraphs as documents, and questions that the paragraph answers as queries."""
    rows = [row for row in squad_rows(path) if not row[-1]]
    names = {passage: f"p{number}" for number, passage in enumerate(dict.fromkeys(row[2] for row in squad_rows(path)))}
    queries = {name: question for name, question, *_ in rows}
    relevances = {name: {names[passage]: 1.0} for name, _, passage, *_ in rows}
    return {name: passage for passage, name in names.items()}, queries, relevances


def choose_document(columns: list[str]) -> list[str]:
    """Choose the columns of id, title where there is one, and text."""
    name = next((name for name in columns if name.lower() in ID_COLUMNS), columns[0])
    text = next((each for each in columns if each.lower() in TEXT_COLUMNS and each != name), columns[-1])
    titles = [title for title in columns if title.lower() == "title" and title not in (name, text)]
    return [name, *titles, text]


def choose_judgement(columns: list[str]) -> list[str]:
    """Choose query id, document id and relevance: the first three columns, as everyone writes them."""
    if len(columns) < 3:
        raise InputError(f"qrels needs three columns: query id, corpus id, relevance; it has {', '.join(columns)}.")
    return columns[:3]


def _rows(path: Path, choose: Choose) -> Iterator[tuple[int, list[object]]]:
    for where, values in read_rows(path, choose):
        if isinstance(values, Broken):
            raise InputError(f"{place(path, where)}: {values.reason}")
        yield where, values


def _needed(folder: str | os.PathLike[str], stem: str) -> Path:
    path = find(folder, stem)
    if path is None:
        raise InputError(f"{folder} has no {stem}: a table {stem}.tsv, .csv, .jsonl or .parquet is needed.")
    return path


def _qrels(folder: str | os.PathLike[str], split: str) -> Path:
    inner = Path(folder) / "qrels"
    return _needed(inner, split) if inner.is_dir() else _needed(folder, "qrels")
