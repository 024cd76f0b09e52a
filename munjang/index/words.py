"""The words of an index: how its texts and its queries are cut for BM25, by the method that it was made with."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from munjang.text.synonyms import Synonyms
from munjang.text.terms import query_terms, search_terms, terms, words_of

FIRST_METHODS = ("kiwi", "syllables")  # whole English words, and Korean by morphemes or syllables, not by both


def document_terms(texts: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
    """Return what BM25 matches of each text."""
    return terms(texts) if facts["terms"] in FIRST_METHODS else search_terms(texts)


def terms_of_queries(queries: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
    """Return what BM25 looks for, with the synonyms of the index."""
    wider = [" ".join(also(query, facts)) for query in queries]
    if facts["terms"] in FIRST_METHODS:
        return [f"{own} {more}".strip() for own, more in zip(terms(queries), terms(wider), strict=True)]
    own_terms = (" ".join(query_terms(query)) for query in queries)
    return [f"{own} {more}".strip() for own, more in zip(own_terms, search_terms(wider), strict=True)]


def also(query: str, facts: Mapping[str, Any]) -> list[str]:
    """Return the words that the index's synonyms add to a query."""
    lines = facts.get("synonyms")
    return Synonyms.parse(lines).widened(words_of(query)) if lines else []


def read_synonyms(path: str | PathLike[str]) -> tuple[list[str], int]:
    """Return the lines of a file of synonyms, checked, and the number of terms that find others."""
    number = len(Synonyms.read(path).also)
    return Path(path).read_text(encoding="utf-8-sig").splitlines(), number
