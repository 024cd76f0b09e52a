import pytest
import torch

from munjang.nn.cpu import can_pack, has_vnni


@pytest.fixture(autouse=True)
def needs_int8() -> None:
    if not can_pack(torch.int8):
        pytest.skip("this CPU or torch has no 8-bit products")


@pytest.fixture
def whatever_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny wide random networks are much more sensitive than real ones: without this their layers stay in float32."""
    monkeypatch.setattr("munjang.nn.int8.prepack.MAX_LOSS", 2.0)


@pytest.fixture(params=["as it comes", "rows"])
def int8_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Known ranges where the CPU and the model can; or a scale for each row."""
    monkeypatch.delenv("MUNJANG_INT8", raising=False)
    if request.param == "rows":
        if not has_vnni():
            pytest.skip("rows are what comes")
        monkeypatch.setenv("MUNJANG_INT8", "dynamic")
    return str(request.param)
