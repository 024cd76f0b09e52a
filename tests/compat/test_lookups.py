"""resolve_ids, beside the incumbent's."""

from typing import Any

import pytest

datasets = pytest.importorskip("datasets", reason="pip install 'munjang[compat-train]'")
from sentence_transformers.util import resolve_ids as theirs  # noqa: E402

from munjang.compat.util import resolve_ids  # noqa: E402

ROWS: dict[str, list[Any]] = {"query_id": ["b", "a"], "document_ids": [[3, 1, 2], [2, 2, 3]], "scores": [[1, 2, 3]] * 2}


@pytest.fixture
def lookups() -> dict[str, Any]:
    queries = datasets.Dataset.from_dict({"query_id": ["a", "b"], "text": ["A?", "B?"]})
    documents = datasets.Dataset.from_dict(
        {"id": [1, 2, 3, 3], "title": list("tuvw"), "text": ["1.", "2.", "old", "3."]}
    )
    return {"query_id": queries, "document_ids": (documents, "id", "text")}


@pytest.mark.parametrize("options", [{}, {"max_list_length": 2}, {"output_format": "lists"}, {"keep_columns": ["x"]}])
def test_texts_in_the_place_of_ids(lookups: dict[str, Any], options: dict[str, Any]) -> None:
    assert resolve_ids(lookups, **options)(ROWS) == theirs(lookups, **options)(ROWS)


def test_a_dataset_resolves_as_it_is_read(lookups: dict[str, Any]) -> None:
    rows = datasets.Dataset.from_dict(ROWS)
    rows.set_transform(resolve_ids(lookups))
    assert rows[0] == {"query": "B?", "document_1": "3.", "document_2": "1.", "document_3": "2.", "scores": [1, 2, 3]}


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ({"query_id": ["c"], "document_ids": [[1]]}, KeyError, "'c' from input column 'query_id' was not found"),
        ({"query_id": ["a", "a"], "document_ids": [[1], [1, 2]]}, ValueError, "differing lengths"),
        ({"query_id": ["a"], "document_ids": [[]]}, ValueError, "empty ID lists"),
        ({"query_id": ["a"], "document_ids": ["[1"]}, ValueError, "string-encoded"),
    ],
)
def test_rows_that_cannot_be_resolved(lookups: dict[str, Any], rows: Any, error: Any, message: str) -> None:
    for function in (resolve_ids, theirs):
        with pytest.raises(error, match=message):
            function(lookups)(rows)


def test_lookups_that_are_unclear(lookups: dict[str, Any]) -> None:
    documents = lookups["document_ids"][0]
    for given, message in (
        (documents, "value column"),
        ((documents, "nothing"), "not a column"),
        ((documents,), "tuple"),
    ):
        with pytest.raises(ValueError, match=message):
            resolve_ids({"document_ids": given})
