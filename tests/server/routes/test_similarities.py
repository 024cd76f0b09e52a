"""Every text with every other over HTTP."""

from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from tests.server.running import Running
from tests.texts import ENGLISH

TEXTS = [*dict.fromkeys(ENGLISH)][:20]


def test_similarities_are_the_models(server: Running, model: BiEncoder) -> None:
    answer = server.client.post("/similarities", json={"texts": TEXTS[:5]}).json()
    assert answer["similarity"] == model.similarity_name
    assert np.array(answer["scores"]) == pytest.approx(np.asarray(model.similarity(TEXTS[:5], TEXTS[:5])), abs=1e-5)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"texts": []}, 422),
        ({"texts": ["a"] * 65}, 413),
        ({"texts": ["a" * 2001]}, 413),
        ({"texts": "a"}, 422),
        ({}, 422),
    ],
)
def test_similarities_refuse(body: dict[str, Any], status: int, server: Running) -> None:
    answer = server.client.post("/similarities", json=body)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "error_type"})
