"""8-bit floats (e4m3) for the linear layers: what they would bring on a GPU, and what accuracy they leave.

    python -m benchmarks.gpu_fp8 OUT.json [--models FOLDER ...] [--texts FILE ...] [--count 200]

On a GPU: each product of MiniLM's and BERT-base's layers in bf16 and in fp8, the rounding of its input apart, and whole
encoders. For every model, anywhere: the cosine of its vectors to float32 with layers rounded to fp8 (on the CPU, summed
in fp32), and on a GPU as it would really be computed. The issue's limit for a GPU is 0.9995.
"""

import argparse
import json
import statistics
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import fp8
from benchmarks.corpora import corpora
from munjang import BiEncoder
from munjang.data.tables import read_texts
from munjang.nn.encoder import Architecture, Encoder
from munjang.nn.packed import equalisers
from munjang.nn.similarity import PAIRWISE
from munjang.runtime.measure import processor
from munjang.text.packing import pack
from munjang.types import Floats

Record = dict[str, Any]
Ways = dict[str, Callable[[], Any]]
SHAPES = {"MiniLM": (6, 384, 1536), "BERT-base": (12, 768, 3072)}  # layers, width, width between
TOKENS = (16384, 65536, 131072)
ROUNDS, REPEATS = 20, 10
AHEAD = 20_000_000  # cycles, about 10 ms, in which the host gets ahead of the device: launches are not timed
LIMIT = 0.9995
# which maps are rounded, and whether columns are made even first, as int8 does it
VARIANTS = {
    "fp8": (fp8.KINDS, False),
    "fp8, equalised": (fp8.KINDS, True),
    "fp8, equalised, feed-forward part only": (("up", "down"), True),
    **{f"fp8, {kind} only": ((kind,), True) for kind in fp8.KINDS},
}


def products(width: int, inner: int) -> dict[str, tuple[int, int]]:
    """Width in and out of a layer's four products."""
    return {"qkv": (width, 3 * width), "out": (width, width), "up": (width, inner), "down": (inner, width)}


def ways(kind: str, tokens: int, width: int, out_width: int, device: str) -> Ways:
    """What is compared, on random numbers: one product, its input's rounding, both; GELU where it belongs."""
    random_ = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random_, device=device, dtype=torch.bfloat16)

    x_TD, weight_ND, bias_N = draw(tokens, width), 0.05 * draw(out_width, width), draw(out_width)
    bias = bias_N if x_TD.is_cuda else bias_N.float()
    given, weight = fp8.quantize(x_TD), fp8.quantize(weight_ND)
    one, is_down = torch.ones((), device=device), kind == "down"
    found: Ways = {
        "bf16": lambda: F.linear(x_TD, weight_ND, bias_N),
        "fp8": lambda: fp8.product(given, weight, bias),
        "quantize": lambda: fp8.quantize(x_TD),
        "quantize and fp8": lambda: fp8.product(fp8.quantize(x_TD), weight, bias),
        "fp8, one scale": lambda: fp8.product((given[0], one), (weight[0], one), bias),
    }
    if kind == "up":  # as the package computes it in bf16: GELU in the product's own pass
        found["bf16 and gelu"] = lambda: torch._addmm_activation(bias_N, x_TD, weight_ND.t(), use_gelu=True)
    if is_down:  # in fp8 GELU can come with the rounding
        found["gelu, quantize and fp8"] = lambda: fp8.product(fp8.quantize(x_TD, has_gelu=True), weight, bias)
    return found


def agreement(device: str) -> Record:
    """The kernel beside plain torch, and the product beside fp32: rows of all sizes, of zeros, with NaN, infinity."""
    x_TD = torch.randn(512, 384, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 6, 512)[:, None]
    x_TD[1], x_TD[2, 5], x_TD[3, 7] = 0, torch.nan, torch.inf
    x_TD = x_TD.to(device, torch.bfloat16)
    found: Record = {}
    for name, has_gelu in (("codes", False), ("codes behind gelu", True)):
        ours, plain = (fp8.dequantize(*way(x_TD, has_gelu)) for way in (fp8.quantize, fp8.quantize_plainly))
        found[f"{name}, equal share"] = round(float(torch.isclose(ours, plain, 1e-3, 0, True).float().mean()), 6)
        found[f"{name}, equal NaN"] = bool((ours.isnan() == plain.isnan()).all())
    given, weight = fp8.quantize(x_TD), fp8.quantize(x_TD[4:100])
    out_TN, exact_TN = fp8.product(given, weight, None).float(), fp8.dequantize(*given) @ fp8.dequantize(*weight).t()
    fine = exact_TN.isfinite().all(1)
    error_T = (out_TN - exact_TN)[fine].norm(dim=1) / exact_TN[fine].norm(dim=1).clamp(min=fp8.LEAST)
    found |= {"product, largest relative error": round(float(error_T.max()), 6), "product, rows": int(fine.sum())}
    print(json.dumps(found), flush=True)
    return found


def microseconds(actions: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> Record:
    """Best and median of the device's time for each, in turns; what fails is said in its place."""
    found: Record = {}
    for name, action in actions.items():
        try:
            for _ in range(3):
                action()
            torch.cuda.synchronize()
        except Exception as error:  # an operator that this torch or card does not have
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    able = {name: action for name, action in actions.items() if name not in found}
    times: dict[str, list[float]] = {name: [] for name in able}
    for _ in range(rounds):
        for name, action in able.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            torch.cuda._sleep(AHEAD)  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(REPEATS):
                action()
            end.record()
            torch.cuda.synchronize()
            times[name].append(1000 * start.elapsed_time(end) / REPEATS)
    return found | {
        name: {"best": round(min(each), 2), "median": round(statistics.median(each), 2)} for name, each in times.items()
    }


def speed_of_products() -> list[Record]:
    """Every product at every number of tokens; behind them what a layer's four take together."""
    rows: list[Record] = []
    for name, (_, width, inner) in SHAPES.items():
        for tokens in TOKENS:
            layer: dict[str, Record] = {}
            for kind, (given, out) in products(width, inner).items():
                with torch.inference_mode():
                    layer[kind] = microseconds(ways(kind, tokens, given, out, "cuda"))
                rows.append({"shape": name, "tokens": tokens, "product": kind, "us": layer[kind]})
                rows[-1]["tflops"] = {
                    way: round(2e-6 * tokens * given * out / layer[kind][way]["best"])
                    for way in ("bf16", "fp8", "fp8, one scale")
                    if isinstance(layer[kind][way], dict)
                }
                print(json.dumps(rows[-1]), flush=True)
            rows.append({"shape": name, "tokens": tokens, "product": "all four", "times_bf16": summary(layer)})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def summary(layer: Mapping[str, Mapping[str, Any]]) -> Record:
    """How many times bf16's speed a layer's four products have, by best times; bf16 has GELU in its up product."""
    instead = {"bf16": {"up": "bf16 and gelu"}, "quantize and fp8": {"down": "gelu, quantize and fp8"}}
    sums: dict[str, float] = {}
    for way in ("bf16", "fp8", "quantize and fp8"):
        found = [times[instead.get(way, {}).get(kind, way)] for kind, times in layer.items()]
        if all(isinstance(each, dict) for each in found):
            sums[way] = sum(each["best"] for each in found)
    return {way: round(sums["bf16"] / seconds, 3) for way, seconds in sums.items() if "bf16" in sums}


def speed_of_encoders(tokens: int = 65536, length: int = 32) -> list[Record]:
    """Whole encoders of random weights over ready batches: bf16 as it is, and with all four products in fp8."""
    rows = []
    lengths = np.full(tokens // length, length)
    ids = np.random.default_rng(0).integers(0, 30522, tokens)
    batch = pack(ids, lengths).to(torch.device("cuda"))
    for name, (layers, width, inner) in SHAPES.items():
        shape = Architecture(30522, width, layers, 12, inner, "gelu", 1e-12, 512, 512, num_types=2)
        encoders = [Encoder(shape).eval().to("cuda", torch.bfloat16) for _ in range(2)]
        fp8.replace(encoders[1], fuse=True)
        with torch.inference_mode():
            us = microseconds({"bf16": lambda: encoders[0](batch), "fp8": lambda: encoders[1](batch)})  # noqa: B023
        rows.append({"shape": name, "tokens": tokens, "texts_of": length, "us": us})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def closeness(reference_BD: Floats, found_BD: Floats) -> dict[str, float]:
    """Of matching rows: the smallest cosine, the first percentile, the mean."""
    cosines = PAIRWISE["cosine"](reference_BD.astype(np.float64), found_BD.astype(np.float64))
    values = {"min": cosines.min(), "percentile_1": np.percentile(cosines, 1), "mean": cosines.mean()}
    return {name: round(float(value), 6) for name, value in values.items()}


def accuracy(folder: Path, texts: list[str]) -> Record:
    """Cosines to float32 by variant; bf16 as a measure of what is small."""
    reference = BiEncoder.load(folder, "cpu", "float32").encode(texts, progress=False)
    found: Record = {}

    def note(name: str, model: BiEncoder) -> None:
        found[name] = closeness(reference, model.encode(texts, progress=False))
        found[name]["holds"] = found[name]["min"] >= LIMIT
        print(f"{folder.name}, {name}: {found[name]}", flush=True)

    note("bf16", BiEncoder.load(folder, "cpu", "bfloat16"))
    for name, (kinds, is_equalised) in VARIANTS.items():
        model = BiEncoder.load(folder, "cpu", "float32")
        note(name, rounded(model, kinds, is_equalised))
    if torch.cuda.is_available():
        note("bf16 on the GPU", BiEncoder.load(folder, "cuda", "bfloat16"))
        model = BiEncoder.load(folder, "cuda", "bfloat16")
        fp8.replace(encoder_of(model), fuse=True)
        torch.cuda.synchronize()  # the model computes in a stream of its own
        note("fp8 on the GPU", model)
    return {"model": folder.name, "texts": len(texts), "cosine": found}


def rounded(model: BiEncoder, kinds: tuple[str, ...], is_equalised: bool) -> BiEncoder:
    """The model with these maps rounded."""
    encoder = encoder_of(model)
    with torch.no_grad():
        equal = equalisers(encoder) if is_equalised else None
    fp8.replace(encoder, kinds, equal)
    return model


def encoder_of(model: BiEncoder) -> Encoder:
    """The network that has the layers."""
    encoder = model.network.encoder
    if not isinstance(encoder, Encoder):
        raise SystemExit(f"{type(encoder).__name__} has no layers of ours to round; give another model")
    return encoder


def main() -> None:
    """Parse, measure, print, write after every part: a run may be cut off."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path, nargs="*", default=[], help="model folders whose accuracy is measured")
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="files of texts; default: the repository's")
    parser.add_argument("--count", type=int, default=200, help="texts of each file")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    record: Record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.gpu_fp8", *sys.argv[1:]]),
        "machine": processor(device),
        "torch": torch.__version__,
        "limit": LIMIT,
    }
    texts = [text for path in options.texts for text in islice(read_texts(path), options.count)]
    if not texts:
        texts = [text for name, own in corpora(options.count).items() if "short" in name for text in own]
    parts: Ways = {
        f"accuracy of {folder.name}": partial(accuracy, folder.resolve(), texts) for folder in options.models
    }
    if device.type == "cuda":
        parts = {
            "agreement": partial(agreement, "cuda"),
            "products": speed_of_products,
            "encoders": speed_of_encoders,
            **parts,
        }
    for name, part in parts.items():
        try:
            record[name] = part()
        except Exception as error:  # the other parts are still worth the device's time
            traceback.print_exc()
            record[name] = {"failed": f"{type(error).__name__}: {error}"}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
