"""The table of attacks: of each part the newest run in benchmarks/results/, with its figures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.generate.part import Stale

RECORDS = "benchmarks/results/*-attack*.json"
Counts = dict[str, Any]
MAX_SHOWN = 2  # failures of a part


def table(root: Path, document: str) -> str:
    """Return a line for each part: what it counted, whether it held, when and at which scale it ran."""
    newest: dict[str, tuple[str, str]] = {}
    for path in root.glob(RECORDS):
        record = json.loads(path.read_text(encoding="utf-8"))
        for part in record["parts"]:
            when = part.get("when", record["when"])
            if part["name"] in FIGURES and when > newest.get(part["name"], ("", ""))[0]:
                scale = part.get("scale", record.get("scale"))
                run = when[:10] + ("" if scale is None else f", scale {scale:g}")
                newest[part["name"]] = when, f"| {row(part)} | {run} |"
    if not newest:
        raise Stale(f"there is no record {RECORDS}")
    head = ["| part | figures | held | run |", "|---|---|---|---|"]
    return "\n".join(head + [f"| {name} {newest[name][1]}" for name in FIGURES if name in newest])


def row(part: dict[str, Any]) -> str:
    """Return figures and verdict of a part."""
    counts, failures = part["counts"], part["failures"]
    if "skipped" in counts:
        return f"skipped: {counts['skipped']} | no"
    shown = FIGURES[part["name"]](counts)
    if failures:
        more = f" and {len(failures) - MAX_SHOWN} more" if len(failures) > MAX_SHOWN else ""
        shown += "; failed: " + "; ".join(each.replace("|", "/")[:100] for each in failures[:MAX_SHOWN]) + more
    return f"{shown} | {'yes' if part['held'] else 'no'}"


def _kills(counts: Counts) -> str:
    names = {name.split(",")[0] for name, each in counts.items() if isinstance(each, dict)}
    return f"{counts['kills']:,} kills in {len(names)} operations on LanceDB, PostgreSQL and folders"


def _writers(counts: Counts) -> str:
    engines = [each for each in counts.values() if isinstance(each, dict)]
    writes, searches = (sum(sum(each[what]) for each in engines) for what in ("writes", "searches"))
    return f"two writers and two readers on each of {len(engines)} engines: {writes:,} writes, {searches:,} searches"


def _disk(counts: Counts) -> str:
    kinds = [each for each in counts.values() if isinstance(each, dict)]
    return f"{sum(each['faults'] for each in kinds):,} full disks in {len(kinds)} operations"


def _clock(counts: Counts) -> str:
    runs = [each for name, each in counts.items() if isinstance(each, int) and "seconds" not in name]
    return f"{sum(runs)} runs of {len(runs)} operations, a year ahead, a year behind and now by turns"


def _growth(counts: Counts) -> str:
    rows = counts.get("rows")
    if rows is None:
        return "not finished"
    shown = f"{rows['added']:,} rows in {rows['seconds']:,.0f} s, {rows['MB more at most']:,} MB of memory at most, "
    shown += f"{rows['folder in MB']:,.0f} MB of folder for {rows['texts and vectors in MB']:,.0f}, "
    shown += f"a search {rows['seconds of a search']} s"
    if loads := counts.get("loads"):
        first, last = next(each for name, each in loads.items() if name.startswith("MB"))
        shown += f"; {loads['number']} loads: {first:,.0f} MB after ten, {last:,.0f} at the end"
    return shown


def _tokenizer(counts: Counts) -> str:
    kinds = [each for each in counts.values() if isinstance(each, dict)]
    texts, others = sum(each["texts"] for each in kinds), sum(each["other ids"] for each in kinds)
    return f"{texts:,} hostile texts through {len(kinds)} tokenizers: {others} with other ids than `tokenizers` gives"


def _filters(counts: Counts) -> str:
    engines = [each for each in counts.values() if isinstance(each, dict)]
    return f"{sum(each['random'] + each['hostile'] for each in engines):,} filters on {len(engines)} engines"


def _folders(counts: Counts) -> str:
    return (
        f"{counts['folders']:,} hostile folders: {counts.get('refused', 0):,} refused, {counts.get('loaded', 0)} loaded"
    )


def _access(counts: Counts) -> str:
    page = counts["page"]
    views = f"{page['views']} views of the page" if isinstance(page, dict) else f"the page {page}"
    return f"{counts['requests']:,} requests with wrong keys or another's to {counts['routes']} routes; {views}"


def _schema(counts: Counts) -> str:
    cases = counts["test cases"]
    return f"{''.join(cases) if isinstance(cases, list) else f'{cases:,}'} requests made up by schemathesis, all checks"


def _http(counts: Counts) -> str:
    large = sum(counts["large bodies"].values())
    slowest = max(counts["slowest /health in s"].values())
    malformed = counts["malformed bodies"] + len(counts["malformed requests"])
    return f"{large} bodies of 2 MB, {malformed} malformed ones; /health at most {slowest} s"


def _connections(counts: Counts) -> str:
    waits = [each["slowest /health in s"] for each in counts.values() if "slowest /health in s" in _dict(each)]
    return f"{len(waits)} kinds of half-open and silent connections, 1,100 at once; /health at most {max(waits)} s"


def _overload(counts: Counts) -> str:
    loads = [each for each in counts.values() if "answers" in _dict(each)]
    number = sum(sum(each["answers"].values()) for each in loads)
    slowest = max(values["max"] for each in loads for values in each["seconds"].values())
    p99 = max(_dict(each.get("/health in s")).get("p99", 0) for each in loads)
    statuses = ", ".join(sorted({status for each in loads for status in each["answers"]}))
    return f"{number:,} requests, answered with {statuses} within {slowest:.1f} s; /health p99 {p99} s"


def _fairness(counts: Counts) -> str:
    alone = counts["alone"]
    worst = {
        name: max(each[path]["p99"] - alone[path]["p50"] for path in alone)
        for name, each in counts.items()
        if name != "alone" and isinstance(each, dict)
    }
    slowest = max(worst, key=lambda name: worst[name])
    return f"a short request beside {len(worst)} of the worst: delayed by at most {worst[slowest]:.2f} s ({slowest})"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


FIGURES: dict[str, Callable[[Counts], str]] = {
    "kills": _kills,
    "disk": _disk,
    "clock": _clock,
    "writers": _writers,
    "growth": _growth,
    "tokenizer": _tokenizer,
    "filters": _filters,
    "folders": _folders,
    "access": _access,
    "schema": _schema,
    "http": _http,
    "connections": _connections,
    "fairness": _fairness,
    "overload": _overload,
}
