"""The way to a billion: bytes, hours and money from measured rates, and what saturates first.

The figures are in figures.json, each with the record in benchmarks/results/ that it was taken from.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from munjang.errors import InputError
from munjang.scale.job import GPU_BLOCK
from munjang.scale.simulation import Outcome, Stage, simulate

COMPONENT_BYTES = {"float32": 4.0, "int8": 1.0, "binary": 0.125}
ID_BYTES = 8
NEIGHBOURS = 32  # of a node in the lowest layer of an HNSW graph with M = 16, four bytes each
SIZES = (10**6, 10**8, 10**9)
SIMULATED = 400  # blocks: enough that beginning and end do not count


@dataclass(frozen=True)
class Cluster:
    """What is there to work with."""

    gpus: int = 1
    cores_per_gpu: int = 16
    disk_gb_per_s: float = 2.0  # what all nodes together can write; assumed, as it is another one everywhere
    price_per_hour: float | None = None  # of one GPU with its cores


@dataclass(frozen=True)
class Estimate:
    """What so many sentences cost in one precision."""

    sentences: int
    precision: str
    vector_bytes: float
    graph_bytes: float
    hours: float
    bottleneck: str
    money: float | None
    scan_core_s: float | None  # one query compared with every vector, on one core; measured for float32 only


def figures() -> dict[str, float]:
    """The measured rates by name."""
    return {name: float(each["value"]) for name, each in recorded().items()}


def recorded() -> Mapping[str, Mapping[str, Any]]:
    """The rates with where they come from."""
    found: Mapping[str, Mapping[str, Any]] = json.loads(
        files("munjang.scale").joinpath("figures.json").read_text(encoding="utf-8")
    )
    return found


def stages(tokens: float, dimension: int, precision: str, cluster: Cluster, block: int = GPU_BLOCK) -> list[Stage]:
    """What a block passes through, with the time that one server of each takes for it."""
    known = figures()
    longer, own = tokens / known["tokens"], tokens / known["stage_tokens"]
    vector = dimension * COMPONENT_BYTES[precision] + ID_BYTES
    copied = 4 * tokens + 4 * dimension  # ids there, float32 back
    # a core reads, one packs files, the rest tokenizes: eight threads are the most that helps
    num_tokenizing = min(max(cluster.cores_per_gpu - 2, 1), 8)
    wide = dimension / known["dimension"]
    return [
        Stage("read", block * own / known["read_per_s"], cluster.gpus),
        Stage("tokenize", block * own / known["tokenize_per_s"], num_tokenizing * cluster.gpus),
        Stage("copy", block * copied / (1e9 * known["copy_gb_per_s"]), cluster.gpus),
        Stage("compute", block * longer / known["compute_per_s"], cluster.gpus),
        Stage("pack", block * wide / known[f"write_{precision}_per_s"], cluster.gpus),
        Stage("disk", block * vector / (1e9 * cluster.disk_gb_per_s), 1),
    ]


@cache
def simulated(tokens: float, dimension: int, precision: str, cluster: Cluster) -> Outcome:
    """The pipeline with these stages, long enough to be even."""
    return simulate(stages(tokens, dimension, precision, cluster), SIMULATED * cluster.gpus)


def estimate(sentences: float, tokens: float, dimension: int, precision: str, cluster: Cluster) -> Estimate:
    """Hours are those of the measured pipeline, strings to vectors, unless a stage around it is slower."""
    known = figures()
    outcome = simulated(tokens, dimension, precision, cluster)
    measured = known["encode_per_s"] * cluster.gpus * known["tokens"] / tokens
    possible = SIMULATED * cluster.gpus * GPU_BLOCK / outcome.seconds
    rate, bottleneck = min((measured, "encode"), (possible, outcome.bottleneck))
    hours = sentences / rate / 3600
    money = None if cluster.price_per_hour is None else hours * cluster.gpus * cluster.price_per_hour
    size = sentences * dimension * COMPONENT_BYTES[precision]
    scan = size / (1e9 * known["scan_gb_per_s"]) if precision == "float32" else None
    return Estimate(
        int(sentences),
        precision,
        size + ID_BYTES * sentences,
        4 * NEIGHBOURS * sentences,
        hours,
        bottleneck,
        money,
        scan,
    )


def check(sentences: float, tokens: float, dimension: int, cluster: Cluster) -> None:
    """Refuse what no calculation helps with."""
    given = {"sentences": sentences, "tokens": tokens, "dimension": dimension, "gpus": cluster.gpus}
    given |= {"cores-per-gpu": cluster.cores_per_gpu, "disk-gb-per-s": cluster.disk_gb_per_s}
    for name, value in given.items():
        if not 0 < value < float("inf"):
            raise InputError(f"--{name} must be a number over 0, not {value:g}")
    if cluster.price_per_hour is not None and not 0 <= cluster.price_per_hour < float("inf"):
        raise InputError(f"--price-per-hour must be at least 0, not {cluster.price_per_hour:g}")


def plan(sentences: float, tokens: float, dimension: int, cluster: Cluster) -> dict[str, Any]:
    """Estimates for these sentences in every precision, beside 10⁶, 10⁸ and 10⁹; and the busy share of each stage."""
    check(sentences, tokens, dimension, cluster)
    sizes = sorted({*SIZES, round(sentences)})
    rows = [
        estimate(size, tokens, dimension, precision, cluster).__dict__
        for size in sizes
        for precision in COMPONENT_BYTES
    ]
    busy = {
        precision: {
            name: round(share, 3) for name, share in simulated(tokens, dimension, precision, cluster).busy.items()
        }
        for precision in COMPONENT_BYTES
    }
    given = {"tokens": tokens, "dimension": dimension, **cluster.__dict__}
    return {"given": given, "estimates": rows, "busy": busy, "figures": recorded()}


def describe(planned: Mapping[str, Any]) -> list[str]:
    """Lines for people."""
    given = planned["given"]
    lines = [
        f"{given['tokens']:g} tokens a sentence, {given['dimension']} components, {given['gpus']} GPUs with "
        f"{given['cores_per_gpu']} cores each, a disk of {given['disk_gb_per_s']:g} GB/s (assumed unless given)",
        "",
        f"{'sentences':>13} {'kept as':8} {'vectors':>10} {'graph':>10} {'encoding':>10} {'price':>9} "
        f"{'one exact query':>16}  limited by",
    ]
    for row in planned["estimates"]:
        scan = "-" if row["scan_core_s"] is None else f"{_time(row['scan_core_s'])} core"
        price = "-" if row["money"] is None else f"{row['money']:,.2f}"
        lines.append(
            f"{row['sentences']:>13,} {row['precision']:8} {_bytes(row['vector_bytes']):>10} "
            f"{_bytes(row['graph_bytes']):>10} {_time(row['hours'] * 3600):>10} {price:>9} "
            f"{scan:>16}  {row['bottleneck']}"
        )
    lines += ["", "Busy share of each stage when blocks flow (simulated from measured stage times):"]
    for precision, shares in planned["busy"].items():
        lines.append(f"  {precision:8} " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))
    lines += ["", "Figures:"]
    for name, each in planned["figures"].items():
        lines.append(f"  {name} {each['value']:g}: {each['what']} ({each['source']})")
    return lines


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:,.3g} TB"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 3600 else f"{seconds / 3600:,.3g} h"
