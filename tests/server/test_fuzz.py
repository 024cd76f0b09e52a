"""schemathesis on every route, from the OpenAPI document of a running server."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("schemathesis")
ROOT = Path(__file__).parents[2]
