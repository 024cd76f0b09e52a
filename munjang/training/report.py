"""The report of a run as a page: curves of the log, evaluations, data and settings. TensorBoard shows more of it."""

import json
import math
import re
import statistics
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from munjang.data.files import replacing
from munjang.pages.blocks import section, table
from munjang.pages.chart import Axis, Point, Series, chart, is_finite, smoothed
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, element, number, say
from munjang.training.config import TrainConfig
from munjang.training.run import Run

MIN_WINDOW, WINDOWS_PER_RUN = 3, 30  # the moving average looks back over a thirtieth of the log, at least three lines
DATA_COLUMNS = ("rows", "objective", "batch_size", "sampler", "hash")
RUN_FACTS = ("model", "num_updates", "processes", "version")  # of run.json, beside the configuration
UNKNOWN = "–"
Evaluations = Sequence[tuple[int, dict[str, Any]]]  # the update, and what was measured


def write_report(path: Path, run: Run, config: TrainConfig) -> None:
    """Write what is known of a run so far. A failure is only a warning: the run is worth more."""
    try:
        with replacing(path) as file:
            file.write(_page(run, config).encode())
    except Exception as error:
        warnings.warn(f"The report {path} can't be written: {error}.", RuntimeWarning, stacklevel=2)


def evaluations(lines: Iterable[Mapping[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Return the updates at which a log has evaluations, and those evaluations."""
    return [(line["step"], line["evaluation"]) for line in lines if "evaluation" in line]


def best_of(found: Evaluations) -> tuple[int, dict[str, Any]] | None:
    """Return the evaluation whose weights are kept: the first with the highest score."""
    finite = [evaluation for evaluation in found if is_finite(evaluation[1]["main"])]
    return max(finite or found[:1], key=lambda evaluation: evaluation[1]["main"], default=None)


def plain(value: object) -> str:
    """Write a setting as people write it."""
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or UNKNOWN
    return UNKNOWN if value is None else value if isinstance(value, str) else json.dumps(value)


def _page(run: Run, config: TrainConfig) -> str:
    settings = _settings(run)
    lines = [line for line in run.read_log() if isinstance(line, dict) and isinstance(line.get("step"), int)]
    found = evaluations(lines)
    missing = say("no_evaluation_yet" if config.evaluate else "no_evaluation")
    sections = [
        section(say("training"), element("div", *_curves(lines), class_="charts")),
        section(
            say("evaluation"),
            element("div", *_scores(found), class_="charts"),
            _metrics(found) if found else element("p", missing, class_="hint"),
        ),
        _data(settings.get("data", {})),
        _config(settings),
    ]
    subtitle = say("written_at", date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))
    return page(say("training_of", name=run.output.name), _figures(lines, found, settings), sections, subtitle)


def _settings(run: Run) -> dict[str, Any]:
    try:
        return dict(json.loads((run.folder / "run.json").read_bytes()))
    except (OSError, ValueError):  # the run has not begun
        return {}


def _figures(lines: Sequence[dict[str, Any]], found: Evaluations, settings: Mapping[str, Any]) -> dict[Phrase, object]:
    done, total = lines[-1]["step"] if lines else 0, settings.get("num_updates")
    losses = [line["loss"] for line in lines if "loss" in line]
    rates = [line["examples_per_s"] for line in lines if is_finite(line.get("examples_per_s"))]
    figures: dict[Phrase, object] = {
        say("updates"): say("updates_of", done=done, total=total) if total else done,
        say("last_loss"): losses[-1] if losses else UNKNOWN,
        say("examples_per_s"): statistics.median(rates) if rates else UNKNOWN,
    }
    best = best_of(found)
    if best is not None:
        name = best[1].get("name")
        score = say("best_at", score=best[1]["main"], step=best[0])
        figures[say("best_evaluation")] = [score, element("small", f" {name}")] if name else score
    return figures


def _curves(lines: Sequence[dict[str, Any]]) -> list[Html]:
    def points(name: str) -> list[Point]:
        return [Point(line["step"], line[name]) for line in lines if name in line]

    loss = points("loss")
    series = [Series(say("loss"), loss)]
    if len(loss) > 2:
        window = max(len(loss) / WINDOWS_PER_RUN, MIN_WINDOW)
        average = Series(say("moving_average", count=round(window)), smoothed(loss, window))
        series = [Series(say("each_line"), loss, shape="pale"), average]
    updates, from_zero = Axis(say("update"), low=0, is_whole=True), Axis(low=0)
    return [
        chart(say("loss"), series, updates, Axis()),
        chart(say("learning_rate"), [Series(say("learning_rate"), points("learning_rate"))], updates, from_zero),
        chart(say("speed"), [Series(say("speed"), points("examples_per_s"))], updates, from_zero),
    ]


def _scores(found: Evaluations) -> list[Html]:
    """Draw the main metric of each dataset; all charts mark the update whose weights are kept."""
    best = best_of(found)
    curves: dict[str, list[Point]] = {}
    metrics: dict[str, str] = {}
    for step, evaluation in found:
        for name, report in evaluation.get("on", {}).items():
            metrics[name] = report["main"]
            curves.setdefault(name, []).append(Point(step, report["metrics"].get(report["main"], math.nan)))
    charts = []
    for name, curve in curves.items():
        key = "mark_best" if best is not None and best[1].get("name") == name else "mark_kept"
        marks = [(point, say(key, score=point.y)) for point in curve if best is not None and point.x == best[0]]
        updates = Axis(say("update"), low=0, is_whole=True)
        charts.append(chart(name, [Series(metrics[name], curve)], updates, Axis(metrics[name]), marks))
    return charts


def _metrics(found: Evaluations) -> Html:
    best, last = best_of(found), found[-1]
    assert best is not None
    rows: list[list[object]] = []
    for name, report in {**best[1].get("on", {}), **last[1].get("on", {})}.items():
        for metric in report["metrics"]:
            tag = "b" if metric == report["main"] else "span"
            values = [
                evaluation.get("on", {}).get(name, {}).get("metrics", {}).get(metric, UNKNOWN)
                for _, evaluation in (best, last)
            ]
            rows.append([name, *(element(tag, number(cell)) for cell in (metric, *values))])
    heads = [say("dataset"), say("metric"), say("best_column", step=best[0]), say("last_column", step=last[0])]
    return table(heads, rows)


def _data(data: Mapping[str, Any]) -> Html | None:
    rows = [
        [re.sub(r"^\d+ ", "", name), *(number(facts.get(column, UNKNOWN)) for column in DATA_COLUMNS)]
        for name, facts in data.items()
    ]
    heads = [say("column_name"), say("rows"), *(say(f"column_{column}") for column in DATA_COLUMNS[1:])]
    return section(say("data"), table(heads, rows)) if rows else None


def _config(settings: Mapping[str, Any]) -> Html | None:
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    rows: list[list[object]] = []
    for name, value in settings.get("config", {}).items():
        default = defaults.get(name)
        is_changed = value != (list(default) if isinstance(default, tuple) else default)
        rows.append([name, element("b" if is_changed else "span", plain(value))])
    rows += [[name, plain(settings[name])] for name in RUN_FACTS if name in settings]
    heads = [say("setting"), say("value")]
    return section(say("settings"), table(heads, rows), note=say("settings_note")) if rows else None
