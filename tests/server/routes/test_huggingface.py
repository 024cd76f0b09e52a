"""The client of Hugging Face: it posts to the address itself, as to a host of one model."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder

TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[Any]:
    hub = pytest.importorskip("huggingface_hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub.constants, "HF_HUB_OFFLINE", False)  # which the tests run under; it means every address
        yield hub.InferenceClient(model=server.url, token="any")


def test_features(client: Any, model: BiEncoder) -> None:
    np.testing.assert_allclose(client.feature_extraction(TEXTS[0]), model.encode(TEXTS[:1], normalize=True), atol=1e-5)
    many = client.feature_extraction(TEXTS, normalize=False, truncate=True, truncation_direction="right")
    np.testing.assert_allclose(many, model.encode(TEXTS, normalize=False), rtol=1e-5, atol=1e-5)


def test_similarity(client: Any, model: BiEncoder) -> None:
    found = client.sentence_similarity(TEXTS[0], TEXTS[1:])
    assert found == pytest.approx(model.similarity(TEXTS[:1], TEXTS[1:])[0].tolist(), abs=1e-5)


def test_errors(client: Any) -> None:
    from huggingface_hub.errors import HfHubHTTPError

    with pytest.raises(HfHubHTTPError) as caught:
        client.feature_extraction("a", prompt_name="none")
    assert caught.value.response.status_code == 422
