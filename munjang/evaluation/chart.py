"""Reports as one page that needs nothing else: a chart, the table, every metric."""

from collections.abc import Sequence
from html import escape

from munjang.evaluation.report import Report, cells, shown

WIDTH, LABEL, BAR, GAP = 860, 240, 16, 14  # pixels: of the picture, for names, a bar's height, between groups
COLOURS = ("#0b6e4f", "#3d5a80", "#c8553d", "#8d6a9f", "#b08900", "#5c6b73")  # one a model, then again
STYLE = (
    "body{font-family:sans-serif;max-width:900px;margin:2em auto;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}.note{color:#666}"
)


def svg(reports: Sequence[Report]) -> str:
    """Horizontal bars of the main metric, a group for each dataset, a colour for each model.

    The axis goes from 0 to 100; a negative correlation is drawn as nothing, with its number.
    """
    colours = {
        model: COLOURS[place % len(COLOURS)] for place, model in enumerate(dict.fromkeys(r.model for r in reports))
    }
    parts: list[str] = []
    y = 10
    for dataset, kind in dict.fromkeys((report.dataset, report.kind) for report in reports):
        here = [report for report in reports if (report.dataset, report.kind) == (dataset, kind)]
        parts.append(_text(10, y + 12, f"{dataset}: {here[0].main}", "bold"))
        y += 22
        for report in here:
            value = min(max(report.score, 0.0), 1.0) if report.score == report.score else 0.0
            length = (WIDTH - LABEL - 70) * value
            parts.append(_text(LABEL - 8, y + 12, report.model, anchor="end"))
            parts.append(
                f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colours[report.model]}"/>'
            )
            parts.append(_text(LABEL + length + 6, y + 12, shown(report.main, report.score)))
            y += BAR + 4
        y += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    ground = f'<rect width="{WIDTH}" height="{y}" fill="white"/>'  # a dark page would swallow the text
    return "\n".join([head + ' font-family="sans-serif" font-size="12">', ground, *parts, "</svg>\n"])


def page(reports: Sequence[Report]) -> str:
    """An HTML page: chart, table, and all metrics of each dataset with the models side by side."""
    body = ["<h1>Evaluation</h1>", svg(reports), _table(cells(reports))]
    for dataset, kind in dict.fromkeys((report.dataset, report.kind) for report in reports):
        here = [report for report in reports if (report.dataset, report.kind) == (dataset, kind)]
        names = list(dict.fromkeys(name for report in here for name in report.metrics))
        rows = [["metric", "", *(report.model for report in here)]]
        rows += [[name, "", *(shown(name, report.metrics.get(name)) for report in here)] for name in names]
        body += [f"<h2>{escape(dataset)} ({escape(kind)})</h2>", _table(rows)]
        body += [f'<p class="note">{escape(_circumstances(report))}</p>' for report in here]
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Evaluation</title><style>{STYLE}</style>'
    return "\n".join([head + "</head><body>", *body, "</body></html>\n"])


def _circumstances(report: Report) -> str:
    notes = " ".join(f"{note[:1].upper()}{note[1:].removesuffix('.')}." for note in report.notes)
    return f"{report.model}: {report.seconds:.1f} s, {report.machine}, {report.date}. {notes}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    lines = ["<table><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rest]
    return "\n".join([*lines, "</table>"])


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
