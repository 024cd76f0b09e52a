"""Long Korean pages with questions, made of public data: encyclopedia articles and court decisions of six fields.

Pages of 800 characters and more, each with questions that it answers, as search meets them: KorQuAD's paragraphs put
together to pages of their articles, and holdings of Korean courts, which are asked for by the question of law. Of
several questions the one that repeats least of its page's wording is taken: searchers have not read the page.

`build_short` makes pages of 830 characters on average, like those of reports and brochures.

    python -m benchmarks.korean_pages DATA OUT    writes OUT/corpus.tsv, queries.tsv and qrels.tsv; --short: of those
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from munjang.data.tables import Broken, read_rows
from munjang.evaluation.kinds.corpus import Retrieval, find, read_retrieval

MIN_PAGE_CHARACTERS = 800
MAX_PAGES_OF_A_FIELD = 100
SHORT_ARTICLES, SHORT_DECISIONS = range(650, 1051), range(700, 951)  # characters of a short page
MIN_SHORT_CHARACTERS, MAX_SHORT_ARTICLES, MAX_SHORT_OF_A_FIELD = 700, 260, 24

Parts = tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]]]


def build(data: Path) -> Retrieval:
    """Return pages and questions; the same ones for the same data."""
    wiki, law = _articles(data), _decisions(data)
    corpus, queries, relevances = ({**first, **second} for first, second in zip(wiki, law, strict=True))
    return Retrieval("korean-pages", corpus, queries, relevances)


def is_development(query_id: str) -> bool:
    """Tell whether defaults may be chosen on this query; the other half is what is reported."""
    return hashlib.blake2b(query_id.encode(), digest_size=1).digest()[0] % 2 == 0


def build_short(data: Path) -> Retrieval:
    """Return shorter pages, and of an article's questions the two that repeat least of its page."""
    wiki = _articles(data, MIN_SHORT_CHARACTERS, SHORT_ARTICLES, 2, MAX_SHORT_ARTICLES)
    law = _decisions(data, SHORT_DECISIONS, MAX_SHORT_OF_A_FIELD)
    corpus, queries, relevances = ({**first, **second} for first, second in zip(wiki, law, strict=True))
    return Retrieval("korean-pages-short", corpus, queries, relevances)


def _articles(
    data: Path,
    min_characters: int = MIN_PAGE_CHARACTERS,
    lengths: range = range(MIN_PAGE_CHARACTERS, sys.maxsize),
    num_questions: int = 1,
    max_pages: int | None = None,
) -> Parts:
    """Put the paragraphs of an article together, in their order, to pages of at least the length wanted."""
    folder = data / "retrieval/korquad"
    paragraphs, titles = _paragraphs(folder)
    pages: list[list[str]] = []
    for id in paragraphs:
        is_full = not pages or sum(len(paragraphs[each]) for each in pages[-1]) >= min_characters
        if is_full or titles[pages[-1][0]] != titles[id]:
            pages.append([])
        pages[-1].append(id)
    corpus = {f"wiki-{page[0]}": "\n".join(paragraphs[id] for id in page) for page in pages}
    page_of = {id: f"wiki-{page[0]}" for page in pages for id in page}
    corpus = {id: text for id, text in corpus.items() if len(text) in lengths}
    data_set = read_retrieval(folder)
    of_page: dict[str, list[tuple[float, str]]] = {}
    for query, text in data_set.queries.items():
        page = page_of[next(iter(data_set.relevances[query]))]
        if page in corpus:
            of_page.setdefault(page, []).append((repeated(text, corpus[page]), query))
    if max_pages is not None:  # those with questions
        of_page = {page: of_page[page] for page in sorted(of_page)[:max_pages]}
        corpus = {page: corpus[page] for page in of_page}
    chosen = {query: page for page, asked in of_page.items() for _, query in sorted(asked)[:num_questions]}
    queries = {query: data_set.queries[query] for query in chosen}
    return corpus, queries, {query: {page: 1.0} for query, page in chosen.items()}


def repeated(question: str, page: str) -> float:
    """Return the fraction of a question's pairs of letters that stand in the page."""
    pairs = {"".join(pair) for word in question.split() for pair in pairwise(word)}
    return sum(pair in page for pair in pairs) / max(len(pairs), 1)


def _paragraphs(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    rows = list(rows_of(folder / "corpus", ["id", "title", "text"]))
    return {id: text for id, _, text in rows}, {id: title for id, title, _ in rows}


def _decisions(
    data: Path, lengths: range = range(MIN_PAGE_CHARACTERS, sys.maxsize), max_pages: int = MAX_PAGES_OF_A_FIELD
) -> Parts:
    """Take long holdings, of every field equally many where there are enough, and the question that each answers."""
    rows = enumerate(rows_of(data / "qa/korean-precedents", ["question", "passage", "field"]))
    long = [(repeated(row[0], row[1]), number, *row) for number, row in rows if len(row[1]) in lengths]
    corpus: dict[str, str] = {}
    queries: dict[str, str] = {}
    num_pages: Counter[str] = Counter()
    seen: set[str] = set()
    for _, number, question, passage, field in sorted(long):
        if num_pages[field] < max_pages and not {question, passage} & seen:
            num_pages[field] += 1
            seen |= {question, passage}
            corpus[f"law-{number}"], queries[f"law-{number}"] = passage, question
    return corpus, queries, {id: {id: 1.0} for id in queries}


def rows_of(stem: Path, columns: list[str]) -> Iterator[list[str]]:
    path = find(stem.parent, stem.name)
    if path is None:
        raise SystemExit(f"{stem}.tsv.xz is missing.")
    for _, values in read_rows(path, lambda names: columns):
        if not isinstance(values, Broken):
            yield [str(value) for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with retrieval/korquad and qa/korean-precedents")
    parser.add_argument("out", type=Path, help="folder to write the set to")
    parser.add_argument("--short", action="store_true", help="pages of 830 characters on average")
    options = parser.parse_args()
    pages = build_short(options.data) if options.short else build(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    tables = {
        "corpus": [["id", "text"], *pages.corpus.items()],
        "queries": [["id", "text"], *pages.queries.items()],
        "qrels": [["query-id", "corpus-id", "score"]]
        + [[query, id, "1"] for query, judged in pages.relevances.items() for id in judged],
    }
    for name, rows in tables.items():
        lines = ["\t".join(" ".join(value.split()) for value in row) for row in rows]
        (options.out / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(pages.corpus):,} pages, {len(pages.queries):,} questions in {options.out}")


if __name__ == "__main__":
    main()
