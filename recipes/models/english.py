"""English questions and abstracts from public repositories, as tables of the data folder (gather.py runs this).

tiagoft/NLP and gechhai/Topic_Discovery have titles and abstracts of arXiv, allenai/scitldr one-sentence summaries of
abstracts; for evaluation alone are pubmedqa/pubmedqa and the classic collections CACM (in
kavinsan/Information-Retrieval-Project) and CISI (in Shakiba-Alipour/Information-Retrieval-on-CISI).
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from munjang.data.writing import write_table

Row = tuple[str, str]
SCITLDR = "scitldr/SciTLDR-Data/SciTLDR-A/train.jsonl"
MIN_ABSTRACT = 300  # characters
FIELD = re.compile(r"^\.([A-Z])\s*(.*)$")


def gather(repositories: Path, data: Path) -> None:
    """Write DATA/qa/{arxiv,scitldr}.tsv and DATA/retrieval/{cisi,cacm,pubmedqa}/."""
    (data / "qa").mkdir(parents=True, exist_ok=True)
    _write_pairs(data / "qa/arxiv.tsv", _arxiv(repositories))
    _write_pairs(data / "qa/scitldr.tsv", _summaries(repositories / SCITLDR))
    cisi, cacm = repositories / "Information-Retrieval-on-CISI", repositories / "Information-Retrieval-Project"
    _write_set(data / "retrieval/cisi", _entries(cisi / "CISI.ALL"), _entries(cisi / "CISI.QRY"), cisi / "CISI.REL")
    _write_set(data / "retrieval/cacm", _entries(cacm / "cacm.all"), _entries(cacm / "query.text"), cacm / "qrels.text")
    _write_medical(data / "retrieval/pubmedqa", repositories / "pubmedqa/data/ori_pqal.json")


def _arxiv(repositories: Path) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    for path, title, abstract in (
        (repositories / "NLP/arxiv_data.csv", "titles", "summaries"),
        (repositories / "Topic_Discovery/arxiv_data.csv", "title", "abstract"),
    ):
        with path.open(encoding="utf-8", newline="") as lines:
            yield from ((_clean(row[title]), _clean(row[abstract])) for row in csv.DictReader(lines))


def _summaries(path: Path) -> Iterator[Row]:
    for line in path.read_text("utf-8").splitlines():
        paper = json.loads(line)
        yield from ((_clean(summary), _clean(" ".join(paper["source"]))) for summary in paper["target"])


def _write_pairs(path: Path, rows: Iterable[Row]) -> None:
    """Write short texts with the abstract that each is about, none twice."""
    kept = [row for row in dict.fromkeys(rows) if len(row[1]) >= MIN_ABSTRACT and len(row[0]) > 15]
    write_table(path, {"query": [query for query, _ in kept], "passage": [passage for _, passage in kept]})
    print(f"{path}: {len(kept):,} pairs", flush=True)


def _entries(path: Path) -> dict[str, str]:
    """Read title and text by number from SMART's format: .I number, then fields .T, .A, .W, ... of several lines."""
    found: dict[str, str] = {}
    number, field = "", ""
    for line in path.read_text("latin-1").splitlines():
        match = FIELD.match(line)
        if match and match[1] == "I":
            number, field = match[2].strip(), ""
            found[number] = ""
        elif match and not match[2]:
            field = match[1]
        elif field in "TW" and number:
            found[number] = f"{found[number]} {line}"
    return {number: text for number, given in found.items() if (text := _clean(given))}


def _write_set(folder: Path, corpus: dict[str, str], queries: dict[str, str], relevances: Path) -> None:
    judged = [line.split()[:2] for line in relevances.read_text("latin-1").splitlines() if line.strip()]
    pairs = [(str(int(query)), str(int(number))) for query, number in judged]
    known = [(query, number) for query, number in pairs if query in queries and number in corpus]
    asked = dict.fromkeys(query for query, _ in known)
    _write_tables(folder, corpus, {query: queries[query] for query in asked}, known)


def _write_medical(folder: Path, path: Path) -> None:
    papers = json.loads(path.read_text("utf-8"))
    corpus = {number: _clean(" ".join(paper["CONTEXTS"])) for number, paper in papers.items()}
    queries = {number: _clean(paper["QUESTION"]) for number, paper in papers.items()}
    _write_tables(folder, corpus, queries, [(number, number) for number in papers])


def _write_tables(folder: Path, corpus: dict[str, str], queries: dict[str, str], judged: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in (("corpus", corpus), ("queries", queries)):
        write_table(folder / f"{name}.tsv", {"id": list(texts), "text": list(texts.values())})
    columns = {"query-id": [query for query, _ in judged], "corpus-id": [number for _, number in judged]}
    write_table(folder / "qrels.tsv", {**columns, "score": [1] * len(judged)})
    print(f"{folder}: {len(corpus):,} documents, {len(queries):,} queries, {len(judged):,} judgements", flush=True)


def _clean(text: str) -> str:
    return " ".join(text.split())
