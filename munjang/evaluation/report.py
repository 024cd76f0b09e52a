"""Reports of evaluations: as JSON, or as a table of several models side by side."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from munjang import display
from munjang.errors import InputError
from munjang.evaluation.metrics.bootstrap import Difference, difference
from munjang.types import Doubles


@dataclass(frozen=True)
class Report:
    """One model on one dataset. Metrics are fractions; tables show them times 100.

    `evaluate(BiEncoder.load(), "stsb-test.tsv").score` is its Spearman correlation.

    >>> Report("my-model", "sts", "stsb-test", 1379, {"spearman_cosine": 0.85}, "spearman_cosine")
    Report('my-model' on 'stsb-test', 1,379 rows: spearman_cosine 85.00)
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
    interval: tuple[float, float] | None = None  # 95 % confidence of the main metric, by bootstrap over the rows
    draws: Doubles | None = field(default=None, compare=False, repr=False)  # what `differences` compares; not in JSON

    @property
    def score(self) -> float:
        """The main metric's value; NaN where it is undefined."""
        return self.metrics[self.main]

    def to_json(self) -> dict[str, Any]:
        """Return a record for `json.dump`; undefined metrics are null.

        >>> Report("my-model", "sts", "stsb-test", 1379, {"pearson": float("nan")}, "pearson").to_json()["metrics"]
        {'pearson': None}
        """
        record = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "draws"}
        return record | {"metrics": {name: _or_none(value) for name, value in self.metrics.items()}}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Report":
        """Read a record of `to_json`.

        Raises InputError for anything else.

        >>> report = Report("my-model", "sts", "stsb-test", 1379, {"pearson": 0.85}, "pearson")
        >>> Report.from_json(report.to_json()) == report
        True
        """
        try:
            metrics = {name: math.nan if value is None else value for name, value in record["metrics"].items()}
            kept = {name: value for name, value in record.items() if name != "differences"}
            between = tuple(kept["interval"]) if kept.get("interval") else None
            return cls(**kept | {"metrics": metrics, "notes": tuple(record.get("notes", ())), "interval": between})
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"This is not a report of an evaluation: {error}.") from None

    def __str__(self) -> str:
        return "\n".join([table([self]), "", *details(self)])

    def __repr__(self) -> str:
        return f"Report({self.model!r} on {self.dataset!r}, {self.rows:,} rows: {self.main} {100 * self.score:.2f})"

    def _repr_html_(self) -> str:
        rows = [[name, f"{100 * value:.2f}"] for name, value in self.metrics.items()]
        if self.interval is not None:
            low, high = (100 * limit for limit in self.interval)
            between = f" ({low:.2f} to {high:.2f})"
            rows = [[name, value + between * (name == self.main)] for name, value in rows]
        title = f"{self.model} on {self.dataset}, {self.rows:,} rows: {100 * self.score:.2f}"
        return display.table(title, [f"metric, × 100 ({self.kind})", ""], rows, "; ".join(self.notes))


def dumps(reports: Sequence[Report]) -> str:
    """Write all reports as one JSON text; each with its differences from the other models on the dataset."""
    records = [
        report.to_json()
        | {"differences": {other: _record(each) for other, each in differences(report, reports).items()}}
        for report in reports
    ]
    return json.dumps(records, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def differences(report: Report, reports: Sequence[Report]) -> dict[str, Difference]:
    """Compare a report with those of other models on the same rows, by paired bootstrap."""
    found: dict[str, Difference] = {}
    for other in reports:
        is_paired = (other.dataset, other.kind, other.rows) == (report.dataset, report.kind, report.rows)
        if is_paired and other.model != report.model and report.draws is not None and other.draws is not None:
            each = difference(report.score - other.score, report.draws, other.draws)
            found |= {} if each is None else {other.model: each}
    return found


def comparisons(reports: Sequence[Report]) -> list[str]:
    """Say for each dataset by how much its best model beats each other one, and whether chance explains that."""
    lines = []
    for dataset, kind in dict.fromkeys((report.dataset, report.kind) for report in reports):
        here = [report for report in reports if (report.dataset, report.kind) == (dataset, kind)]
        best = max(here, key=lambda report: -math.inf if math.isnan(report.score) else report.score)
        for other, each in differences(best, here).items():
            low, high = (f"{100 * end:+.2f}" for end in each.interval)
            verdict = "significant" if each.is_significant else "not significant"
            chance = f"p {'< 0.01' if each.p < 0.01 else f'= {each.p:.2f}'}"
            lines.append(
                f"{dataset}: {best.model} over {other}: {100 * each.value:+.2f} ({low} to {high}), {chance}: {verdict}"
            )
    return lines


def with_interval(report: Report, metric: str) -> str:
    """Format a metric, with its confidence interval where it is the main one."""
    number = shown(metric, report.metrics.get(metric))
    if metric != report.main or report.interval is None:
        return number
    low, high = (shown(metric, end) for end in report.interval)
    return f"{number} ({low} to {high})"


def _record(each: Difference) -> dict[str, Any]:
    return {**asdict(each), "is_significant": each.is_significant}


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
    if report.interval is not None:
        low, high = (shown(report.main, end) for end in report.interval)
        place = list(report.metrics).index(report.main)
        lines[place] += f"  ({low} to {high}, 95 % confidence)"
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
