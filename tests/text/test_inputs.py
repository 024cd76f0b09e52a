"""Texts as callers pass them."""

import io
from collections import UserList
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from munjang.errors import InputError
from munjang.text.inputs import as_texts, is_stream

TEXTS = ["하나", "two", ""]


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        UserList(TEXTS),
        dict.fromkeys(TEXTS).keys(),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, index=[7, 7, 2]),
        pd.Series(TEXTS, dtype="category"),
        pd.Series(TEXTS, dtype="string"),
        pd.Index(TEXTS),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
        pa.table({"text": TEXTS})["text"],
        (text for text in TEXTS),
    ],
    ids=lambda given: type(given).__name__,
)
def test_columns(given: Any) -> None:
    assert as_texts(given) == TEXTS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "should be a list of strings, not missing"),
        (3, r"not int \(3\)"),
        ("one text", r"not str \('one text'\)"),
        (b"bytes", "not bytes"),
        ({"a": 1}, "not dict"),
        ({"a"}, "not set"),
        (np.array("one"), "not a single str"),
        (pd.DataFrame({"text": TEXTS}), r"one column, not a whole DataFrame: table\['text'\]"),
        (pa.table({"text": TEXTS}), "one column, not a whole Table"),
        (["a", None], "Item 1 of the texts is missing.*Drop or fill"),
        (["a", float("nan")], "Item 1 of the texts is missing.*Drop or fill"),
        (pd.Series(["a", None]), "Item 1 of the texts is missing.*Drop or fill"),
        (pd.Series(["a", None], dtype="string"), "Item 1 of the texts is missing.*Drop or fill"),
        (pa.array(["a", None]), "Item 1 of the texts is missing.*Drop or fill"),
        (["a", 2.5], r"Item 1 of the texts is float \(2.5\), not a string\.$"),
        (np.array([1, 2]), r"Item 0 of the texts is int \(1\)"),
        (["a", b"b"], "Item 1 of the texts is bytes.*Decode it first"),
        (["a", ["b"]], "Item 1 of the texts is list.*TokenIds"),
        (np.array([["a", "b"]]), "Item 0 of the texts is list.*CrossEncoder"),
        ([("a", "b")], "Item 0 of the texts is tuple.*CrossEncoder"),
        (["a", {"text": "b"}], "Item 1 of the texts is dict"),
        (["a", ["x" * 10_000]], "Item 1 of the texts is list"),
    ],
    ids=lambda given: repr(given)[:30] if not isinstance(given, str) else "",
)
def test_refused_by_name(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        as_texts(given)
    assert len(str(caught.value)) < 250


def test_items_are_numbered_from_where_the_caller_counts() -> None:
    with pytest.raises(InputError, match="Item 4097 of the texts"):
        as_texts(["a", 1], first=4096)


def test_streams() -> None:
    assert is_stream(iter(TEXTS))
    assert is_stream(map(str, TEXTS))
    assert is_stream(io.StringIO("a\nb"))
    assert is_stream(text for text in TEXTS)
    assert not any(is_stream(given) for given in (TEXTS, tuple(TEXTS), "text", pd.Series(TEXTS), pa.array(TEXTS), None))
