"""Prompts: by name, by role, by default."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from tests.bi_encoder.given import TEXTS, prompted


def test_prompts(make: Callable[..., Path]) -> None:
    model = prompted(make)
    for how, prompt in (
        ({"prompt_name": "other"}, "fox: "),
        ({"prompt": "my own: "}, "my own: "),
        ({"prompt": ""}, ""),
        ({}, ""),
    ):
        expected = model.encode([prompt + text for text in TEXTS], prompt="")
        np.testing.assert_allclose(model.encode(TEXTS, **how), expected, atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS), model.encode(TEXTS, prompt_name="query"), atol=2e-6)
    np.testing.assert_allclose(model.encode_document(TEXTS), model.encode(TEXTS, prompt_name="document"), atol=2e-6)
    np.testing.assert_allclose(model.encode_query("one"), model.encode("one", prompt="quick: "), atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS, prompt=""), model.encode(TEXTS), atol=2e-6)
    with pytest.raises(InputError, match=r"Unknown prompt 'quary'; choose from document, other, query\. Did you mean"):
        model.encode(TEXTS, prompt_name="quary")


def test_the_default_prompt(make: Callable[..., Path]) -> None:
    model = prompted(make)
    model.default_prompt_name = "other"
    np.testing.assert_allclose(model.encode(TEXTS), model.encode(TEXTS, prompt="fox: "), atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS), model.encode(TEXTS, prompt="quick: "), atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, prompt=""), prompted(make).encode(TEXTS), atol=2e-6)


def test_without_prompts_both_roles_are_plain(model: BiEncoder, vectors: np.ndarray) -> None:
    np.testing.assert_allclose(model.encode_query(TEXTS), vectors, atol=2e-6)
    np.testing.assert_allclose(model.encode_document(TEXTS), vectors, atol=2e-6)


def test_equal_texts_under_another_prompt_are_not_equal(make: Callable[..., Path]) -> None:
    model = prompted(make)
    assert not np.allclose(model.encode_query("fox"), model.encode_document("fox"), atol=1e-3)
