"""The report of a run: one HTML file that needs nothing else, its charts drawn here as SVG."""

import json
import math
import re
import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from munjang.data.files import replacing
from munjang.training.config import TrainConfig
from munjang.training.run import Run

MAX_POINTS = 600  # of a curve: more than a screen has pixels for
MAX_DOTS = 40  # up to so many points are drawn as dots, more of them only under the pointer
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 238, 56, 24, 34, 38  # so narrow that its letters can be read on a phone
# what neither HTML nor XML may hold, halves of surrogate pairs, and marks that turn the direction of a whole page
UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
FACTS = {
    "model": "fingerprint of the model at the start",
    "num_updates": "updates of the whole run",
    "processes": "processes that train together",
    "version": "version of Munjang",
}
STYLE = """
:root { color-scheme: light dark; --page: #fff; --card: #f6f8f7; --text: #1c2321; --quiet: #5d6966; --grid: #dfe5e3;
  --line: #0b6e4f; --pale: #8fc2b0; --best: #b4480f; }
@media (prefers-color-scheme: dark) { :root { --page: #121715; --card: #1b2220; --text: #e6ecea; --quiet: #9aa8a4;
  --grid: #313b38; --line: #53c79d; --pale: #3d6f5e; --best: #f0945c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, figcaption { color: var(--quiet); margin: .25rem 0; font-size: .875rem; }
.facts, .charts { display: grid; gap: .75rem; margin: 1rem 0 0; }
.facts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 9rem), 1fr)); }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.facts div, figure { background: var(--card); border-radius: .5rem; padding: .75rem; margin: 0; }
dt, th { color: var(--quiet); font-weight: normal; } dd { margin: 0; font-size: 1.2rem; }
h3 { font-size: 1rem; margin: 0; } svg { display: block; width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; min-width: 60%; font-size: .9rem; }
td, th { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
td { font-variant-numeric: tabular-nums; } .changed, .main { font-weight: 600; }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; } .grid { stroke: var(--grid); }
.curve { fill: none; stroke: var(--line); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.raw { stroke: var(--pale); stroke-width: 1; } .dot { fill: var(--line); } .far { opacity: 0; }
.far:hover { opacity: 1; } .best { fill: none; stroke: var(--best); stroke-width: 2; }
svg text.mark { fill: var(--best); font-weight: 600; }
"""


class Point(NamedTuple):
    """A number of the log."""

    step: int
    value: float
    note: str = ""


def write_report(path: Path, run: Run, config: TrainConfig) -> None:
    """Write what is known of a run so far; where that fails there is a warning, as the run is worth more."""
    try:
        with replacing(path) as file:
            file.write(_page(run, config).encode())
    except Exception as error:
        warnings.warn(f"The report {path} can't be written: {error}.", RuntimeWarning, stacklevel=2)


def clean(value: object) -> str:
    """Any text without what breaks a page."""
    return UNSHOWN.sub("\ufffd", str(value))


def number(value: object) -> str:
    """A figure with as many digits as say something.

    >>> number(0.81234567), number(2e-05), number(12345.678), number(12000)
    ('0.8123', '2e-5', '12,345.7', '12,000')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return clean(value)
    size = abs(value)
    if isinstance(value, int) or size == 0:
        return f"{value:,.0f}"
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "∞", "-inf": "-∞"}[str(value)]
    if not 1e-3 <= size < 1e7:
        return _short(value, 3)
    return f"{value:.4f}" if size < 100 else f"{value:,.1f}"


def evaluations(lines: Iterable[Mapping[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Updates and what was found at them, of the lines of a log."""
    return [(line["step"], line["evaluation"]) for line in lines if "evaluation" in line]


def best_of(found: Sequence[tuple[int, dict[str, Any]]]) -> tuple[int, dict[str, Any]] | None:
    """The evaluation whose weights are kept: the first with the highest score."""
    numbers = [each for each in found if _is_drawn(each[1]["main"])]
    return max(numbers or found[:1], key=lambda each: each[1]["main"], default=None)


class Frame(NamedTuple):
    """Where values and updates lie in a picture."""

    low: float
    high: float
    right: int

    def x(self, step: float) -> float:
        """Pixels from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.right

    def y(self, value: float) -> float:
        """Pixels from above."""
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)


@dataclass(frozen=True)
class Chart:
    """A curve over the updates of a run."""

    title: str
    unit: str  # what the values are
    points: Sequence[Point]
    smooth: Sequence[Point] = ()
    marked: Sequence[Point] = ()
    mark: str = "best"
    from_zero: bool = False
    caption: str = ""

    def draw(self) -> str:
        """As a figure of HTML."""
        points, title = thin(self.points), f"<h3>{_html(self.title)}</h3>"
        drawn = [point for point in points if _is_drawn(point.value)]
        if not drawn:
            return f"<figure>{title}<p>Nothing to draw yet.</p></figure>"
        missing = sum(not _is_drawn(point.value) for point in self.points)
        notes = [self.caption, f"{missing:,} values that are no numbers (NaN, ∞) are left out." if missing else ""]
        frame = Frame(*_span([point.value for point in drawn], self.from_zero), max(drawn[-1].step, 1))
        head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_html(self._words(drawn))}">'
        svg = "".join([head, *self._axes(frame), *self._curves(points, frame), *self._marks(frame), "</svg>"])
        caption = "".join(f"<figcaption>{_html(note)}</figcaption>" for note in notes if note)
        return f"<figure>{title}{svg}{caption}</figure>"

    def _words(self, drawn: Sequence[Point]) -> str:
        values = [point.value for point in drawn]
        first, last = drawn[0], drawn[-1]
        return (
            f"{self.title}: {self.unit} {number(first.value)} at update {first.step:,}, {number(last.value)} at "
            f"update {last.step:,}, between {number(min(values))} and {number(max(values))}"
        )

    def _axes(self, frame: Frame) -> Iterator[str]:
        yield _text(4, 14, self.unit)
        for value, label in ticks(frame.low, frame.high):
            y = frame.y(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield _text(LEFT - 6, y + 4, label, "end")
        for value, label in ticks(0, frame.right, 5, is_whole=True):
            yield _text(frame.x(value), HEIGHT - BOTTOM + 16, label, "middle")
        yield _text(WIDTH - RIGHT, HEIGHT - 6, "update", "end")

    def _curves(self, points: Sequence[Point], frame: Frame) -> Iterator[str]:
        yield f'<path class="curve{" raw" if self.smooth else ""}" d="{_path(points, frame)}"/>'
        if self.smooth:
            yield f'<path class="curve" d="{_path(thin(self.smooth), frame)}"/>'
        kind = "dot far" if len(points) > MAX_DOTS else "dot"
        yield from (self._dot(point, kind, 3, frame) for point in points if _is_drawn(point.value))

    def _marks(self, frame: Frame) -> Iterator[str]:
        for point in self.marked:
            if _is_drawn(point.value):
                yield self._dot(point, "best", 6, frame)
                x, y = frame.x(point.step), frame.y(point.value)
                place, anchor = (x + 4, "start") if x < WIDTH / 2 else (x - 4, "end")
                words = f"{self.mark} {number(point.value)}"
                yield _text(place, y - 10, words, anchor, "mark")

    def _dot(self, point: Point, kind: str, radius: int, frame: Frame) -> str:
        where = f'cx="{frame.x(point.step):.1f}" cy="{frame.y(point.value):.1f}" r="{radius}"'
        words = ", ".join(filter(None, [f"update {point.step:,}", point.note, f"{self.unit} {number(point.value)}"]))
        return f'<circle class="{kind}" {where}><title>{_html(words)}</title></circle>'


def thin(points: Sequence[Point], most: int = MAX_POINTS) -> list[Point]:
    """About `most` of the points: the lowest and the highest of each stretch, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    size, kept = math.ceil(2 * len(points) / most), []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        drawn = [point for point in stretch if _is_drawn(point.value)] or stretch[:1]
        ends = {min(drawn, key=lambda point: point.value), max(drawn, key=lambda point: point.value)}
        ends |= set(drawn[:1] if start == 0 else drawn[-1:] if start + size >= len(points) else ())
        kept += sorted(ends, key=lambda point: point.step)
    return kept


def smoothed(points: Sequence[Point], window: float) -> list[Point]:
    """A moving average that looks back over about `window` points and begins with the first one."""
    keep, total, weight, found = 1 - 1 / window, 0.0, 0.0, []
    for point in points:
        if _is_drawn(point.value):
            total, weight = keep * total + (1 - keep) * point.value, keep * weight + (1 - keep)
        found.append(point._replace(value=total / weight if _is_drawn(point.value) else math.nan))
    return found


def ticks(low: float, high: float, most: int = 6, is_whole: bool = False) -> list[tuple[float, str]]:
    """Round values of an axis and how they are written.

    >>> ticks(0.13, 0.52)
    [(0.2, '0.2'), (0.30000000000000004, '0.3'), (0.4, '0.4'), (0.5, '0.5')]
    """
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= 0.999 * rough)
    step = max(step, 1.0) if is_whole else step
    values = [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    size, digits = max(abs(low), abs(high)), max(0, -math.floor(math.log10(step) + 1e-9))
    if not is_whole and not 1e-3 <= size < 1e6:
        return [(value, _short(value, 6)) for value in values]
    return [(value, f"{value:,.{digits}f}") for value in values]


def _span(values: Sequence[float], from_zero: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if from_zero:
        low = min(low, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # all the same: a line in the middle
        room = 0.1 * abs(high) or 1.0
        return low - room, high + room
    room = 0.05 * (high - low)
    return (low if from_zero and low == 0 else low - room), high + room


def _path(points: Sequence[Point], frame: Frame) -> str:
    """Lines through the points, with gaps where there is no number."""
    parts = []
    for is_drawn, some in groupby(points, lambda point: _is_drawn(point.value)):
        if is_drawn:
            places = [f"{frame.x(point.step):.1f} {frame.y(point.value):.1f}" for point in some]
            parts.append(f"M{' L'.join(places)}{'' if len(places) > 1 else ' h0'}")
    return " ".join(parts)


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_html(words)}</text>'


def _is_drawn(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) < 1e300  # of two such numbers the difference is one too


def _short(value: float, digits: int) -> str:
    return re.sub(r"e([+-])0*", lambda match: "e" + match[1].strip("+"), f"{value:.{digits}g}")


def _html(words: object) -> str:
    return escape(clean(words))


def _page(run: Run, config: TrainConfig) -> str:
    settings = _settings(run)
    lines = [line for line in run.read_log() if isinstance(line, dict) and isinstance(line.get("step"), int)]
    losses = [line for line in lines if "loss" in line]
    found = evaluations(lines)
    name = _html(run.output.name)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    none = "No evaluation yet." if config.evaluate else "No evaluation was asked for (evaluate)."
    sections = [
        f"<h1>Training of {name}</h1><p>Written by Munjang {_html(settings.get('version', ''))}, {now}</p>",
        _facts(lines, found, settings),
        f'<h2>Training</h2><div class="charts">{"".join(chart.draw() for chart in _training(losses))}</div>',
        f'<h2>Evaluation</h2><div class="charts">{"".join(chart.draw() for chart in _scores(found))}</div>',
        _metrics(found) if found else f"<p>{none}</p>",
        _data(settings.get("data", {})),
        _config(settings),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Training of {name}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )


def _settings(run: Run) -> dict[str, Any]:
    try:
        return dict(json.loads((run.folder / "run.json").read_bytes()))
    except (OSError, ValueError):  # nothing was begun
        return {}


def _facts(lines: Sequence[dict[str, Any]], found: Sequence[tuple[int, Any]], settings: dict[str, Any]) -> str:
    total, best = settings.get("num_updates"), best_of(found)
    losses = [line["loss"] for line in lines if "loss" in line]
    rates = [line["examples_per_s"] for line in lines if _is_drawn(line.get("examples_per_s"))]
    shown = {
        "Updates": (number(lines[-1]["step"]) if lines else "0") + (f" of {number(total)}" if total else ""),
        "Last loss": number(losses[-1]) if losses else "–",
        "Examples/s (median)": number(statistics.median(rates)) if rates else "–",
    }
    if best is not None:
        name = best[1].get("name", "")
        shown["Best evaluation"] = f"{number(best[1]['main'])} at update {best[0]:,}" + (f", {name}" if name else "")
    parts = (f"<div><dt>{_html(name)}</dt><dd>{_html(value)}</dd></div>" for name, value in shown.items())
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _training(lines: Sequence[dict[str, Any]]) -> list[Chart]:
    def points(name: str) -> list[Point]:
        return [Point(line["step"], line[name], f"epoch {line.get('epoch')}") for line in lines if name in line]

    loss, window = points("loss"), max(len(lines) / 30, 3)
    smooth = smoothed(loss, window) if len(loss) > 2 else []
    caption = f"Thick: moving average over about {window:.0f} lines of the log." if smooth else ""
    return [
        Chart("Loss", "loss", loss, smooth, caption=caption),
        Chart("Learning rate", "learning rate", points("learning_rate"), from_zero=True),
        Chart("Speed", "examples/s", points("examples_per_s"), from_zero=True),
    ]


def _scores(found: Sequence[tuple[int, dict[str, Any]]]) -> list[Chart]:
    """For each dataset the curve of its main metric; the weights that are kept are marked in all of them."""
    best, curves, units = best_of(found), dict[str, list[Point]](), dict[str, str]()
    for step, evaluation in found:
        for name, report in evaluation.get("on", {}).items():
            units[name] = report["main"]
            curves.setdefault(name, []).append(Point(step, report["metrics"].get(report["main"], math.nan)))
    charts = []
    for name, curve in curves.items():
        marked = [point for point in curve if best is not None and point.step == best[0]]
        decides = best is not None and best[1].get("name") == name
        charts.append(Chart(name, units[name], curve, marked=marked, mark="best" if decides else "kept"))
    return charts


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{_html(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _metrics(found: Sequence[tuple[int, dict[str, Any]]]) -> str:
    best, last = best_of(found), found[-1]
    assert best is not None
    rows = []
    for name, report in {**best[1].get("on", {}), **last[1].get("on", {})}.items():
        for metric in report["metrics"]:
            kind = "main" if metric == report["main"] else "other"
            values = [each[1].get("on", {}).get(name, {}).get("metrics", {}).get(metric, "–") for each in (best, last)]
            cells = (metric, *map(number, values))
            rows.append([_html(name), *(f'<span class="{kind}">{_html(cell)}</span>' for cell in cells)])
    return _table(["dataset", "metric", f"best (update {best[0]:,})", f"last (update {last[0]:,})"], rows)


def _data(data: Mapping[str, Any]) -> str:
    heads = ["rows", "objective", "batch_size", "sampler", "hash"]
    rows = [
        [_html(re.sub(r"^\d+ ", "", name)), *(_html(number(facts.get(head, "–"))) for head in heads)]
        for name, facts in data.items()
    ]
    return f"<h2>Data</h2>{_table(['name', *(head.replace('_', ' ') for head in heads)], rows)}" if rows else ""


def _config(settings: Mapping[str, Any]) -> str:
    given = settings.get("config", {})
    known = {each.name: each for each in fields(TrainConfig)}
    rows = []
    for name, value in given.items():
        default = known[name].default if name in known else None
        is_changed = value != (list(default) if isinstance(default, tuple) else default)
        words = f'<span class="{"changed" if is_changed else "default"}">{_html(plain(value))}</span>'
        rows.append([_html(name), words, _html(known[name].metadata["help"] if name in known else "")])
    rows += [[_html(name), _html(plain(settings[name])), words] for name, words in FACTS.items() if name in settings]
    note = "<p>Bold: not the default.</p>"
    return f"<h2>Settings</h2>{note}{_table(['setting', 'value', 'meaning'], rows)}" if rows else ""


def plain(value: object) -> str:
    """A setting as people write it."""
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "–"
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value)
