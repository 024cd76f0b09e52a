import pytest
import torch

from munjang.nn import cpu

ISA = "ONEDNN_MAX_CPU_ISA"


@pytest.mark.parametrize(("isa", "vnni", "bf16"), [("avx2", False, False), ("AVX512_CORE_VNNI", True, False)])
def test_a_weaker_cpu_is_followed(monkeypatch: pytest.MonkeyPatch, isa: str, vnni: bool, bf16: bool) -> None:
    for question in ("_is_vnni_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, question, lambda: True)
    monkeypatch.setenv(ISA, isa)
    assert (cpu.has_vnni(), cpu.has_bf16(), cpu.can_pack(torch.bfloat16)) == (vnni, bf16, bf16)


@pytest.mark.parametrize("isa", [None, "ALL", "DEFAULT", "AVX512_CORE_AMX"])
def test_otherwise_the_cpu_decides(monkeypatch: pytest.MonkeyPatch, isa: str | None) -> None:
    monkeypatch.delenv(ISA, raising=False)
    if isa:
        monkeypatch.setenv(ISA, isa)
    for answer in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda answer=answer: answer)
        assert cpu.has_vnni() is answer
