"""Plan a large encoding job: bytes, hours, price and bottleneck from measured rates.

The figures are in figures.json, each with its record in benchmarks/results/.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from munjang.errors import InputError
from munjang.scale.job import GPU_BLOCK_ROWS
from munjang.scale.simulation import Outcome, Stage, simulate

COMPONENT_BYTES = {"float32": 4.0, "int8": 1.0, "binary": 0.125}
ID_BYTES = 8
NUM_NEIGHBOURS = 32  # per node in the lowest layer of an HNSW graph with M = 16, four bytes each
TABLE_SENTENCES = (10**6, 10**8, 10**9)
NUM_SIMULATED_BLOCKS = 400  # per GPU: enough for start-up and end not to matter


@dataclass(frozen=True)
class Cluster:
    """The resources of a cluster."""

    gpus: int = 1
    cores_per_gpu: int = 16
    disk_gb_per_s: float = 2.0  # written by all nodes together; an assumption, as it differs everywhere
    price_per_hour: float | None = None  # of one GPU with its cores


@dataclass(frozen=True)
class Estimate:
    """The cost of encoding a number of sentences in one precision."""

    sentences: int
    precision: str
    vector_bytes: float
    graph_bytes: float
    hours: float
    bottleneck: str
    money: float | None
    scan_core_s: float | None  # one query compared with every vector, on one core; measured for float32 only


def figures() -> dict[str, float]:
    """Return the measured rates by name."""
    return {name: float(each["value"]) for name, each in recorded().items()}


def recorded() -> Mapping[str, Mapping[str, Any]]:
    """Read the rates and their sources."""
    found: Mapping[str, Mapping[str, Any]] = json.loads(
        files("munjang.scale").joinpath("figures.json").read_text(encoding="utf-8")
    )
    return found


def stages(tokens: float, dimension: int, precision: str, cluster: Cluster, block: int = GPU_BLOCK_ROWS) -> list[Stage]:
    """Return the stages that a block passes through, with the time that one server of each takes."""
    known = figures()
    longer, own = tokens / known["tokens"], tokens / known["stage_tokens"]
    vector = dimension * COMPONENT_BYTES[precision] + ID_BYTES
    copied = 4 * tokens + 4 * dimension  # ids there, float32 back
    # one core reads, one packs files, the rest tokenize: more than eight threads don't help
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
    """Simulate the pipeline for long enough to reach a steady state."""
    return simulate(stages(tokens, dimension, precision, cluster), NUM_SIMULATED_BLOCKS * cluster.gpus)


def estimate(sentences: float, tokens: float, dimension: int, precision: str, cluster: Cluster) -> Estimate:
    """Estimate the cost: the time of the measured pipeline, strings to vectors, or of a slower stage around it."""
    known = figures()
    outcome = simulated(tokens, dimension, precision, cluster)
    measured = known["encode_per_s"] * cluster.gpus * known["tokens"] / tokens
    possible = NUM_SIMULATED_BLOCKS * cluster.gpus * GPU_BLOCK_ROWS / outcome.seconds
    rate, bottleneck = min((measured, "encode"), (possible, outcome.bottleneck))
    hours = sentences / rate / 3600
    money = None if cluster.price_per_hour is None else hours * cluster.gpus * cluster.price_per_hour
    size = sentences * dimension * COMPONENT_BYTES[precision]
    scan = size / (1e9 * known["scan_gb_per_s"]) if precision == "float32" else None
    return Estimate(
        int(sentences),
        precision,
        size + ID_BYTES * sentences,
        4 * NUM_NEIGHBOURS * sentences,
        hours,
        bottleneck,
        money,
        scan,
    )


def check(sentences: float, tokens: float, dimension: int, cluster: Cluster) -> None:
    """Raise InputError for values that no estimate is possible for."""
    given = {"sentences": sentences, "tokens": tokens, "dimension": dimension, "gpus": cluster.gpus}
    given |= {"cores-per-gpu": cluster.cores_per_gpu, "disk-gb-per-s": cluster.disk_gb_per_s}
    for name, value in given.items():
        if not 0 < value < float("inf"):
            raise InputError(f"--{name} must be a number over 0, not {value:g}")
    if cluster.price_per_hour is not None and not 0 <= cluster.price_per_hour < float("inf"):
        raise InputError(f"--price-per-hour must be at least 0, not {cluster.price_per_hour:g}")


def plan(sentences: float, tokens: float, dimension: int, cluster: Cluster) -> dict[str, Any]:
    """Estimate every precision for this number of sentences and for 10⁶, 10⁸, 10⁹, with the load of each stage."""
    check(sentences, tokens, dimension, cluster)
    sizes = sorted({*TABLE_SENTENCES, round(sentences)})
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
    """Return a plan as readable lines."""
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
