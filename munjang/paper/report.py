"""The outcome beside the paper's figures: as JSON, as Markdown and as a page."""

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from munjang.data.files import replacing
from munjang.evaluation.catalogue import SETS
from munjang.pages.bars import Bar, bars
from munjang.pages.blocks import section, table
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, element, say
from munjang.pages.words import WORDS
from munjang.paper.config import PaperConfig
from munjang.paper.experiments import CONCATENATIONS, Line, Table
from munjang.paper.published import PAIR_SECONDS, SENTENCES_PER_S, figure

UNKNOWN = "–"
PAPER_COLOUR = 7
ENGLISH = 0  # of a pair of WORDS


@dataclass(frozen=True)
class Score:
    """The mean over seeds; folds and held-out topics are averaged before."""

    seeds: tuple[float, ...]
    paper: float | None = None

    @property
    def mean(self) -> float | None:
        """The mean; None where nothing is measured."""
        return statistics.mean(self.seeds) if self.seeds else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds, of two or more."""
        return statistics.stdev(self.seeds) if len(self.seeds) > 1 else None

    def __str__(self) -> str:
        if self.mean is None:
            return UNKNOWN
        return f"{self.mean:.2f}" + ("" if self.deviation is None else f" ± {self.deviation:.2f}")


@dataclass(frozen=True)
class Row:
    """A line of a table with a score for each set."""

    line: Line
    scores: dict[str, Score]

    def average(self, sets: Sequence[str]) -> Score:
        """Return the mean over the sets, seed by seed, where all are measured; and the paper's."""
        scores = [self.scores[key] for key in sets]
        figures = [score.paper for score in scores if score.paper is not None]
        paper = statistics.mean(figures) if len(figures) == len(scores) else None
        seeds = zip(*(score.seeds for score in scores), strict=False)
        return Score(tuple(statistics.mean(values) for values in seeds), paper)


@dataclass(frozen=True)
class Shown:
    """A table with what is measured."""

    table: Table
    sets: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def columns(self) -> list[tuple[str, list[Score]]]:
        """Return the scores of all rows on each set, and their average, by title."""
        columns = [(_set_title(key), [row.scores[key] for row in self.rows]) for key in self.sets]
        if self.table.has_average and len(self.sets) > 1:
            columns.append(("average", [row.average(self.sets) for row in self.rows]))
        return columns


@dataclass(frozen=True)
class Result:
    """All tables, and how they came about."""

    model: str
    config: PaperConfig
    tables: tuple[Shown, ...]
    speed: dict[str, Any] | None
    missing: tuple[str, ...]
    machines: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    train_rows: dict[str, int] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()  # those with a record

    @classmethod
    def of(
        cls,
        model: str,
        config: PaperConfig,
        tables: Sequence[Table],
        records: Sequence[dict[str, Any]],
        speed: dict[str, Any] | None,
        missing: Sequence[str],
    ) -> "Result":
        """Gather records of seeds and parts into tables."""
        shown = tuple(each for each in (_shown(table, records) for table in tables) if each.rows and each.sets)
        machines = dict.fromkeys(record["machine"] for record in records)
        dates = tuple(sorted(record["date"][:10] for record in records))
        rows = {name: count for record in records for name, count in record["train_rows"].items() if not record["part"]}
        seeds = tuple(sorted({record["seed"] for record in records}))
        return cls(model, config, shown, speed, tuple(missing), tuple(machines), dates[:1] + dates[-1:], rows, seeds)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "model": self.model,
            "settings": {"seeds": list(self.config.seeds), **self.config.deciding()},
            "machines": list(self.machines),
            "dates": list(dict.fromkeys(self.dates)),
            "train_rows": self.train_rows,
            "tables": [
                {
                    "name": each.table.name,
                    "paper_table": each.table.number,
                    "lines": {
                        row.line.name: {
                            key: {"mean": _rounded(score.mean), "deviation": _rounded(score.deviation)}
                            | {"seeds": list(score.seeds), "paper": score.paper}
                            for key, score in row.scores.items()
                        }
                        for row in each.rows
                    },
                }
                for each in self.tables
            ],
            "speed": self.speed,
            "missing": list(self.missing),
        }


def write(out: Path, result: Result) -> None:
    """Write paper.json, paper.md and paper.html."""
    contents = {
        "paper.json": json.dumps(result.to_json(), indent=1, ensure_ascii=False),
        "paper.md": markdown(result),
        "paper.html": html(result),
    }
    for name, content in contents.items():
        with replacing(out / name) as file:
            file.write(content.encode("utf-8"))


def markdown(result: Result) -> str:
    """Return all tables for a document; the paper's figures are in brackets."""
    lines = [f"# {_english('paper_title')}: {result.model}", "", *_circumstances(result), ""]
    for each in result.tables:
        heads = ["", *(title for title, _ in each.columns)]
        lines += [f"## {_english(f'paper_{each.table.name}')}", "", _joined(heads), "|" + "---|" * len(heads)]
        for place, row in enumerate(each.rows):
            scores = [column[place] for _, column in each.columns]
            cells = [f"{score}" + ("" if score.paper is None else f" ({score.paper:.2f})") for score in scores]
            lines.append(_joined([_line_title(row.line), *cells]))
        lines.append("")
    if result.speed is not None:
        lines += [f"## {_english('paper_speed')}", "", *_speed_lines(result.speed), ""]
    lines += (
        ["## Sets that were not there", "", *(f"- {line}" for line in result.missing), ""] if result.missing else []
    )
    return "\n".join(lines)


def html(result: Result) -> str:
    """Return the page: for each table bars beside the paper's, and all figures."""
    sections = [part for each in result.tables for part in _table_parts(each)]
    if result.speed is not None:
        rows = [line.strip("|").split("|") for line in _speed_lines(result.speed) if line.startswith("| ")]
        heads, *body = [[cell.strip() for cell in row] for row in rows]
        sections.append(section(say("paper_speed"), table(heads, body), note=result.speed["note"]))
    if result.missing:
        sections.append(section(say("paper_missing"), *(element("p", line, class_="hint") for line in result.missing)))
    return page(say("paper_title"), None, sections, f"{result.model}: {' '.join(_circumstances(result))}")


def _table_parts(each: Shown) -> list[Html]:
    groups = []
    for name, scores in each.columns:
        bars_of = []
        for row, score in zip(each.rows, scores, strict=True):
            if score.mean is not None:
                bars_of.append(Bar(_line_title(row.line), score.mean / 100, str(score)))
            if score.paper is not None:
                label = f"{_line_title(row.line)} (paper)"
                bars_of.append(Bar(label, score.paper / 100, f"{score.paper:.2f}", PAPER_COLOUR))
        if any(score.mean is not None for score in scores):
            groups.append((name, bars_of))
    heads: list[object] = [say("paper_line")]
    for name, _ in each.columns:
        heads += [name, say("paper_figure")]
    body = [
        [_phrase(row.line), *(cell for _, scores in each.columns for cell in _both(scores[place]))]
        for place, row in enumerate(each.rows)
    ]
    title = say(f"paper_{each.table.name}")
    return [section(title, table(heads, body), bars(title, groups), note=say("paper_note"))]


def _both(score: Score) -> tuple[str, str]:
    return str(score), UNKNOWN if score.paper is None else f"{score.paper:.2f}"


def _shown(table: Table, records: Sequence[dict[str, Any]]) -> Shown:
    rows, measured = [], {key for record in records for key in record["scores"]}
    sets = tuple(key for key in table.sets if key in measured)
    for line in table.lines:
        own = [record for record in records if record["line"] == line.name]
        if own:
            rows.append(Row(line, {key: _score(table, line, key, own) for key in sets}))
    return Shown(table, sets, tuple(rows))


def _score(table: Table, line: Line, key: str, records: Sequence[dict[str, Any]]) -> Score:
    """Average the parts of each seed; a seed whose parts are not all done is left out."""
    by_seed: dict[int, dict[str, float]] = defaultdict(dict)
    for record in records:
        metrics = record["scores"].get(key, {})
        value = next((metrics[name] for name in table.metrics if name in metrics), None)
        if value is not None:
            by_seed[record["seed"]][record["part"]] = value
    whole = [statistics.mean(parts.values()) for parts in by_seed.values() if set(parts) == set(line.parts)]
    return Score(tuple(round(value, 2) for value in whole), figure(table.name, line.name, key))


def _circumstances(result: Result) -> list[str]:
    config = result.config
    rows = ", ".join(f"{name} {count:,}" for name, count in result.train_rows.items())
    seeds = ", ".join(map(str, result.seeds)) or "none"
    if missing := set(config.seeds) - set(result.seeds):
        seeds += f" (not yet {', '.join(map(str, sorted(missing)))})"
    dates = " to ".join(dict.fromkeys(result.dates))
    return [
        f"Language {config.language}, seeds {seeds}, batch {config.batch_size}, {config.nli_epochs} and "
        f"{config.sts_epochs} epochs (NLI, similarity by {config.sts_objective}), rates {config.learning_rate:g} and "
        f"{config.sts_learning_rate:g}, softmax layer {config.head_rate:g}.",
        f"Rows to train on: {rows or 'none'}. {', '.join(result.machines)}, {dates}. Scores times 100; ± is the "
        "standard deviation over the seeds; in brackets the paper's, in English with BERT-base.",
    ]


def _speed_lines(speed: dict[str, Any]) -> list[str]:
    paper = {name: f"{cpu:,.0f} / {gpu:,.0f}" for name, (cpu, gpu) in SENTENCES_PER_S.items()}
    names = {"plain": "padded, as texts come", "smart": "padded, smart batching", "packed": "packed (ours)"}
    lines = [_joined(["sentences a second", speed["machine"], "paper: CPU / V100"]), "|---|---|---|"]
    lines += [
        _joined([names[name], f"{rate:,.0f}", paper.get(name, UNKNOWN)])
        for name, rate in speed["sentences_per_s"].items()
    ]
    for kind, title in (("bi", "bi-encoder"), ("cross", "cross-encoder")):
        seconds = f"{speed['most_similar_of_10000_s'][kind]:,.1f} s"
        lines.append(_joined([f"most similar pair of 10,000, {title}", seconds, f"{PAIR_SECONDS[kind]:,.0f} s (V100)"]))
    facts = f"{speed['texts']:,} sentences of {speed['tokens_per_text']} tokens, {speed['dtype']}; {speed['note']}."
    return [*lines, "", facts]


def _phrase(line: Line) -> Phrase | str:
    return _line_title(line) if line.name.startswith("concat_") else say(f"paper_{line.name}")


def _line_title(line: Line) -> str:
    if line.name.startswith("concat_"):
        return f"NLI ({CONCATENATIONS[int(line.name.removeprefix('concat_'))]})"
    return _english(f"paper_{line.name}")


def _set_title(key: str) -> str:
    return SETS[key].title if key in SETS else "AFS"


def _english(key: str) -> str:
    return WORDS[key][ENGLISH]


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
