"""A classifier as one page that needs nothing else: what is taken for what, and whether confidence is accuracy.

C classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from munjang.tasks.page import POLICY, shown

CELL, MOST, NAME = 26, 40, 18  # pixels of a cell, labels that are drawn, characters of a name
SIZE, GAP = 320, 40  # pixels of the diagram, and around it
STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}"
    "body{color:#1c2321;background:#fff}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}"
    "td+td{text-align:right}figure{margin:1.5em 0;overflow-x:auto}figcaption,.note{color:#5d6966;font-size:.9em}"
)
FACTS = {
    "rows": "examples",
    "held_out": "held out in turn",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "calibration_error_before": "calibration error before",
    "calibration_error": "calibration error",
    "temperature": "temperature",
    "threshold": "threshold",
    "answered": "share answered",
    "answered_accuracy": "accuracy of answers",
    "cost": "cost",
}


def page(title: str, labels: Sequence[Any], report: Mapping[str, Any]) -> str:
    """An HTML page of what a report of held-out (or other labelled) rows holds."""
    names = [str(label) for label in labels]
    rows = [(words, report[name]) for name, words in FACTS.items() if report.get(name) is not None]
    body = [f"<h1>{shown(title)}</h1>", "<table>"]
    body += [f"<tr><td>{shown(words)}</td><td>{_number(value)}</td></tr>" for words, value in rows]
    body.append("</table>")
    body += [f'<p class="note">{shown(note)}.</p>' for note in report.get("notes", ())]
    if report.get("counts"):
        body.append(_counts(report["counts"]))
    if report.get("confusion"):
        body.append(_confusion(names, report["confusion"]))
    if report.get("reliability"):
        body.append(_reliability(report.get("reliability_before"), report["reliability"]))
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{POLICY}<title>{shown(title)}</title>'
    return "\n".join([f"{head}<style>{STYLE}</style></head><body>", *body, "</body></html>\n"])


def _confusion(names: Sequence[str], table_CC: Sequence[Sequence[int]]) -> str:
    """Rows are what texts are, columns what they were taken for; darker is more of the row."""
    drawn = list(range(len(names)))
    if len(drawn) > MOST:  # those with most mistakes, in their order
        wrong = [sum(row) - row[at] for at, row in enumerate(table_CC)]
        drawn = sorted(sorted(drawn, key=lambda at: -wrong[at])[:MOST])
    left, top = 170, 130
    width, height = left + CELL * len(drawn) + 60, top + CELL * len(drawn) + 10
    parts = []
    for place, at in enumerate(drawn):
        name, along = shown(_short(names[at])), CELL * place + CELL / 2
        parts.append(f'<text x="{left - 6}" y="{top + along + 4:.0f}" text-anchor="end">{name}</text>')
        where = f"{left + along + 4:.0f} {top - 6}"
        parts.append(f'<text transform="translate({where}) rotate(-60)">{name}</text>')
        total = max(sum(table_CC[at]), 1)
        for column, other in enumerate(drawn):
            count = table_CC[at][other]
            parts.append(_cell(left + CELL * column, top + CELL * place, count, count / total, at == other))
            if count:
                parts[-1] = parts[-1].replace("/>", f"><title>{name} → {shown(names[other])}: {count}</title></rect>")
    more = f" The {MOST} of {len(names)} labels with most mistakes." if len(names) > MOST else ""
    caption = f"Rows: the label; columns: what was answered.{more}"
    return _figure(width, height, parts, caption)


def _cell(x: int, y: int, count: int, share: float, is_right: bool) -> str:
    colour = "#0b6e4f" if is_right else "#c8553d"
    faint = f' fill="{colour}" fill-opacity="{share:.3f}"' if count else ' fill="none"'
    return f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" stroke="#eee"{faint}/>'


def _reliability(before: Sequence[Sequence[float]] | None, after: Sequence[Sequence[float]]) -> str:
    """Confidence to the right, accuracy upwards; on the diagonal both are the same."""

    def at(confidence: float, accuracy: float) -> str:
        return f"{GAP + SIZE * confidence:.1f},{GAP + SIZE * (1 - accuracy):.1f}"

    parts = [f'<rect x="{GAP}" y="{GAP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#999"/>']
    parts.append(f'<polyline points="{at(0, 0)} {at(1, 1)}" stroke="#999" stroke-dasharray="4" fill="none"/>')
    for name, bins, colour in (("before", before, "#c8553d"), ("calibrated", after, "#0b6e4f")):
        if not bins:
            continue
        points = " ".join(at(confidence, accuracy) for _, confidence, accuracy in bins)
        parts.append(f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>')
        total = sum(count for count, _, _ in bins)
        for count, confidence, accuracy in bins:
            x, y = at(confidence, accuracy).split(",")
            told = f"{name}: {count:.0f} rows, confidence {confidence:.3f}, accuracy {accuracy:.3f}"
            size = 3 + 6 * (count / total) ** 0.5
            circle = f'<circle cx="{x}" cy="{y}" r="{size:.1f}" fill="{colour}">'
            parts.append(f"{circle}<title>{told}</title></circle>")
    parts.append(f'<text x="{GAP + SIZE / 2}" y="{GAP + SIZE + 26}" text-anchor="middle">confidence</text>')
    parts.append(f'<text transform="translate(24 {GAP + SIZE / 2}) rotate(-90)" text-anchor="middle">accuracy</text>')
    caption = "Green: calibrated; red: before; a larger point is more rows. On the dashed line confidence is accuracy."
    return _figure(SIZE + 2 * GAP, SIZE + 2 * GAP, parts, caption)


def _counts(counts: Mapping[str, int]) -> str:
    most, parts = max(counts.values()), []
    for place, (name, count) in enumerate(counts.items()):
        y, width = 24 * place, 400 * count / most
        parts.append(f'<text x="164" y="{y + 16}" text-anchor="end">{shown(_short(name))}</text>')
        parts.append(f'<rect x="170" y="{y + 3}" width="{width:.1f}" height="17" fill="#3d5a80"/>')
        parts.append(f'<text x="{176 + width:.1f}" y="{y + 16}">{count:,}</text>')
    return _figure(660, 24 * len(counts) + 4, parts, "Texts by the label that they got.")


def _figure(width: float, height: float, parts: Sequence[str], caption: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui,sans-serif" font-size="12">'
    return "\n".join(["<figure>", drawing, *parts, f"</svg><figcaption>{shown(caption)}</figcaption></figure>"])


def _short(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 1] + "…"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
