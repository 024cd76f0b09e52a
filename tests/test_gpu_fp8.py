"""8-bit floats: what the benchmark computes, on a CPU: codes, products, an encoder of them, sums of its times."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import fp8, gpu_fp8
from benchmarks.peers.table import ROOT
from munjang import BiEncoder

TEXTS = ["a quick fox", "나는 오늘", "over lazy dogs", "fox"]


def rows() -> Tensor:
    """Of very different sizes, with values from large to nothing in each."""
    values = torch.randn(64, 96, generator=torch.Generator().manual_seed(0)) ** 3
    return values * torch.logspace(-9, 9, 64)[:, None]


def assert_within_its_error(values: Tensor, codes: Tensor, scale: Tensor) -> None:
    """Three bits behind the first: half a step is a sixteenth of the value; below 2^-6 steps are 2^-9 wide."""
    allowed = torch.maximum(values.abs() / 16, scale * 2**-10) * 1.0001
    assert ((fp8.dequantize(codes, scale) - values).abs() <= allowed).all()


def test_values_come_back_within_the_error_of_e4m3() -> None:
    codes, scale = fp8.quantize(rows())
    assert codes.dtype == torch.float8_e4m3fn
    assert scale.shape == (64, 1)
    assert_within_its_error(rows(), codes, scale)
    assert codes.float().abs().amax(1).tolist() == [448.0] * 64  # the largest of each row is the last code


def test_codes_by_hand() -> None:
    codes, scale = fp8.quantize(torch.tensor([[448.0, 1.0, 1.0625, 1.1875, -17.0, 2**-10, 0.0]]))
    assert scale.item() == 1.0
    assert codes.float().tolist() == [[448.0, 1.0, 1.0, 1.25, -16.0, 0.0, 0.0]]  # ties go to the even one


def test_gelu_before_rounding() -> None:
    x = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
    assert_within_its_error(F.gelu(x, approximate="tanh"), *fp8.quantize(x, has_gelu=True))


def test_zero_nan_and_infinity_stay_in_their_rows() -> None:
    x = torch.ones(5, 16)
    x[1] = 0
    x[2, 3], x[3, 0], x[4, 7] = torch.nan, torch.inf, -torch.inf
    given = fp8.quantize(x)
    found = fp8.dequantize(*given)
    assert found[:2].tolist() == x[:2].tolist()
    assert found[2:].isnan().all()
    out = fp8.product(given, fp8.quantize(torch.ones(2, 16)), None)
    assert out[:2].tolist() == [[16.0, 16.0], [0.0, 0.0]]
    assert out[2:].isnan().all()
    assert [len(each) for each in fp8.quantize(torch.zeros(0, 16))] == [0, 0]


@pytest.mark.parametrize("kind", fp8.KINDS)
def test_what_is_timed_computes_the_same(kind: str) -> None:
    """bf16 and fp8 are within fp8's error of each other: a few hundredths of what a sum of random signs comes to."""
    width, out_width = gpu_fp8.products(64, 128)[kind]
    found = {name: way() for name, way in gpu_fp8.ways(kind, 48, width, out_width, "cpu").items() if "gelu" not in name}
    exact = found["bf16"].float()
    assert exact.shape == (48, out_width)
    for name in ("fp8", "quantize and fp8"):
        assert (found[name] - exact).norm() / exact.norm() < 0.05
    assert_within_its_error(fp8.dequantize(*found["quantize"]), *found["quantize"])


def test_gelu_is_timed_where_it_belongs() -> None:
    up, down = (gpu_fp8.ways(kind, 16, 32, 32, "cpu") for kind in ("up", "down"))
    gelu = F.gelu(up["bf16"]().float(), approximate="tanh")
    assert (up["bf16 and gelu"]().float() - gelu).norm() / gelu.norm() < 0.02
    assert (down["gelu, quantize and fp8"]() - down["quantize and fp8"]()).norm() > 0.1
    assert not any("gelu" in name for name in gpu_fp8.ways("qkv", 16, 32, 96, "cpu"))


def test_agreement_with_plain_torch() -> None:
    """On a CPU both are plain torch, and the product is the fp32 one: all but the two rows that are NaN."""
    found = gpu_fp8.agreement("cpu")
    assert found.pop("product, largest relative error") < 1e-6
    assert found == {
        "codes, equal share": 1.0,
        "codes, equal NaN": True,
        "codes behind gelu, equal share": 1.0,
        "codes behind gelu, equal NaN": True,
        "product, rows": 510,
    }


def test_sums_of_a_layer() -> None:
    one = {"bf16": {"best": 4.0}, "fp8": {"best": 2.0}, "quantize and fp8": {"best": 3.0}}
    layer = {
        "qkv": one,
        "out": one,
        "up": {**one, "bf16 and gelu": {"best": 6.0}},
        "down": {**one, "gelu, quantize and fp8": {"best": 5.0}},
    }
    assert gpu_fp8.summary(layer) == {"bf16": 1.0, "fp8": 18 / 8, "quantize and fp8": round(18 / 14, 3)}
    layer["qkv"] = {**one, "fp8": "RuntimeError: not on this card"}
    assert gpu_fp8.summary(layer).keys() == {"bf16", "quantize and fp8"}


def test_closeness_by_hand() -> None:
    found = gpu_fp8.closeness(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 5.0]]))
    assert found == {"min": 0.6, "percentile_1": 0.604, "mean": 0.8}


def test_an_encoder_in_fp8(tiny_bert: Path) -> None:
    """Every map is replaced, and vectors stay near, with columns made even or not."""
    exact = BiEncoder.load(tiny_bert, "cpu", "float32").encode(TEXTS)
    results = []
    for kinds, is_equalised in ((fp8.KINDS, False), (fp8.KINDS, True), (("out",), False)):
        model = gpu_fp8.rounded(BiEncoder.load(tiny_bert, "cpu", "float32"), kinds, is_equalised)
        maps = [module for module in model.network.encoder.modules() if isinstance(module, fp8.Fp8)]
        assert len(maps) == len(kinds) * len(gpu_fp8.encoder_of(model).blocks)
        results.append(gpu_fp8.closeness(exact, model.encode(TEXTS))["min"])
    assert all(0.95 < closest < 1 for closest in results)
    assert results[2] > max(results[:2])  # one map of four
    fused = BiEncoder.load(tiny_bert, "cpu", "float32")
    fp8.replace(gpu_fp8.encoder_of(fused), fuse=True)  # GELU later: the same but for its tanh
    assert gpu_fp8.closeness(exact, fused.encode(TEXTS))["min"] == pytest.approx(results[0], abs=1e-2)


def test_the_command_on_a_cpu(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    given = [
        str(tmp_path / "out.json"),
        "--models",
        str(tiny_bert),
        str(tmp_path),
        "--texts",
        str(tmp_path / "texts.txt"),
    ]
    monkeypatch.setattr(sys, "argv", ["gpu_fp8", *given, "--count", "3"])
    gpu_fp8.main()
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    found = record[f"accuracy of {tiny_bert.name}"]
    assert found["texts"] == 3
    assert found["cosine"].keys() == {"bf16", *gpu_fp8.VARIANTS}
    assert "failed" in record[f"accuracy of {tmp_path.name}"]  # no model there; the rest of the record stands


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_the_kernel_by_the_interpreter() -> None:
    """In a process of its own: the interpreter has to be asked for before Triton is imported."""
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    code = "from tests.test_gpu_fp8 import check; check()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]


def check() -> None:
    """The kernel beside plain torch, over widths that fill a block and those that don't."""
    from benchmarks import fp8_kernel

    for width in (96, 128, 5000):
        x = torch.randn(11, width, generator=torch.Generator().manual_seed(2))
        x[3] = 0
        x[5, 1], x[6, 2] = torch.nan, torch.inf
        for has_gelu in (False, True):
            # fp32 out, rounded here: the interpreter's own rounding to e4m3 loses a carry (124 becomes 64)
            values, scale = fp8_kernel.quantize(x, fp8.LEAST, fp8.LARGEST, has_gelu, torch.float32)
            expected = fp8.quantize(x, has_gelu)
            torch.testing.assert_close(scale, expected[1], rtol=1e-5, atol=0, equal_nan=True)
            codes = [each.float().nan_to_num(1000) for each in (values.to(torch.float8_e4m3fn), expected[0])]
            assert (codes[0] != codes[1]).float().mean() < 0.005  # a value between two codes may go to either one
            assert ((codes[0] - codes[1]).abs() <= codes[1].abs() / 7.5 + 2**-9).all()
