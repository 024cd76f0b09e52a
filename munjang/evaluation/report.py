"""Reports of evaluations: as JSON, or as a table of several models side by side."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from munjang.errors import InputError


@dataclass(frozen=True)
class Report:
    """One model on one dataset. Metrics are fractions; tables show them times 100.

    `evaluate(BiEncoder.load(), "stsb-test.tsv").score` is its Spearman correlation.
    """

    model: str
    kind: str
    dataset: str
    rows: int
    metrics: dict[str, float]
    main: str  # the metric that stands for all
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    machine: str = ""
    date: str = ""

    @property
    def score(self) -> float:
        """The main metric's value; NaN where it is undefined."""
        return self.metrics[self.main]

    def to_json(self) -> dict[str, Any]:
        """Return a record for `json.dump`; undefined metrics are null."""
        return asdict(self) | {"metrics": {name: _or_none(value) for name, value in self.metrics.items()}}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Report":
        """Read a record of `to_json`."""
        try:
            metrics = {name: math.nan if value is None else value for name, value in record["metrics"].items()}
            return cls(**{**record, "metrics": metrics, "notes": tuple(record.get("notes", ()))})
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"This is not a report of an evaluation: {error}.") from None

    def __str__(self) -> str:
        return "\n".join([table([self]), "", *details(self)])


def dumps(reports: Iterable[Report]) -> str:
    """Write all reports as one JSON text."""
    return json.dumps([report.to_json() for report in reports], ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def shown(metric: str, value: float | None) -> str:
    """Format a number for people: times 100, but for thresholds, which are on the scale of the scores."""
    if value is None:
        return ""
    if math.isnan(value):
        return "undefined"
    return f"{value:.4f}" if "threshold" in metric else f"{100 * value:.2f}"


def cells(reports: Sequence[Report]) -> list[list[str]]:
    """Make a row for each dataset and a column for each model, with the main metrics; the first row is the head."""
    models = list(dict.fromkeys(report.model for report in reports))
    datasets = list(dict.fromkeys((report.dataset, report.kind) for report in reports))
    rows = [["dataset", "kind", "rows", "metric", *models]]
    for dataset, kind in datasets:
        here = {report.model: report for report in reports if (report.dataset, report.kind) == (dataset, kind)}
        mains = list(dict.fromkeys(report.main for report in here.values()))
        num_rows = f"{next(iter(here.values())).rows:,}"
        values = [shown(here[model].main, here[model].score) if model in here else "" for model in models]
        rows.append([dataset, kind, num_rows, ", ".join(mains), *values])
    return rows


def table(reports: Sequence[Report]) -> str:
    """Format reports as a table of aligned lines."""
    return aligned(cells(reports))


def details(report: Report) -> list[str]:
    """List all metrics of one report, and its notes."""
    width = max(map(len, report.metrics), default=0)
    lines = [f"{name:{width}}  {shown(name, value):>9}" for name, value in report.metrics.items()]
    return [*lines, *(f"note: {note}" for note in report.notes)]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Align columns; numbers, from the third column on, to the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        padded = []
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            padded.append(cell + space if place < 2 or place == 3 else space + cell)
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _width(text: str) -> int:
    """Count the columns that a terminal takes; Hangul and other wide characters take two."""
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
