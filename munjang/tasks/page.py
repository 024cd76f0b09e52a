"""Pages that need nothing else: facts, bars, points and tables, as HTML and SVG. Texts are escaped here.

N points of two coordinates.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from munjang.training.report import STYLE, clean, number
from munjang.types import Floats, Ints

MORE_STYLE = "td:first-child { white-space: nowrap; } circle:hover { stroke: var(--text); } .bar { fill: var(--line); }"
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a80", "#b08900", "#8d6a9f", "#2a9d8f", "#9c3848", "#5c6b73", "#7b8f2a", "#d17a22")
GREY = "#9aa8a4"  # of points that are in no group
WIDTH, HEIGHT = 720, 480
MAX_LETTERS = 300  # of a text in a cell
POLICY = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"


def shown(text: object) -> str:
    """A text as a page may hold it, short enough for a cell."""
    words = clean(text)
    return escape(words if len(words) <= MAX_LETTERS else words[:MAX_LETTERS] + "…")


def page(title: str, facts: Mapping[str, object], sections: Iterable[str]) -> str:
    """A whole page; the sections are HTML already."""
    parts = (f"<div><dt>{shown(name)}</dt><dd>{shown(number(value))}</dd></div>" for name, value in facts.items())
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{POLICY}"
        f"<title>{shown(title)}</title><style>{STYLE}{MORE_STYLE}</style></head>\n<body>\n"
    )
    body = [f"<h1>{shown(title)}</h1>", f'<dl class="facts">{"".join(parts)}</dl>', *sections]
    return head + "\n".join(body) + "\n</body></html>\n"


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """A table of plain values."""
    head = "".join(f'<th scope="col">{shown(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{shown(_plain(cell))}</td>' for cell in row)}</tr>" for row in rows)
    words = f"<p>{shown(note)}</p>" if note else ""
    return (
        f'<h2>{shown(title)}</h2>{words}<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def histogram(title: str, values_N: Floats, num_bars: int = 40) -> str:
    """How often values occur, as bars."""
    if not len(values_N):
        return ""
    low, high = float(values_N.min()), float(values_N.max())
    counts, edges = np.histogram(values_N, num_bars, (low, high) if high > low else (low - 0.5, high + 0.5))
    breadth, tallest = WIDTH / num_bars, max(int(counts.max()), 1)
    bars = []
    for place, count in enumerate(counts.tolist()):
        height = 200 * count / tallest
        words = f"{edges[place]:.3f} to {edges[place + 1]:.3f}: {count:,}"
        bars.append(
            f'<rect class="bar" x="{place * breadth:.1f}" y="{210 - height:.1f}" width="{breadth - 1:.1f}" '
            f'height="{height:.1f}"><title>{words}</title></rect>'
        )
    ends = f'<text x="0" y="228">{low:.3f}</text><text x="{WIDTH}" y="228" text-anchor="end">{high:.3f}</text>'
    picture = f'<svg viewBox="0 0 {WIDTH} 234" role="img" aria-label="{shown(title)}">{"".join(bars)}{ends}</svg>'
    return f"<h2>{shown(title)}</h2><figure>{picture}</figure>"


def points(title: str, places_N2: Floats, groups_N: Ints, texts: Sequence[str], note: str = "") -> str:
    """Points in the colours of their groups, the text under the pointer; -1: in no group."""
    if not len(places_N2):
        return ""
    low, span = places_N2.min(0), np.maximum(np.ptp(places_N2, axis=0), 1e-9)
    at = (places_N2 - low) / span * [WIDTH - 20, HEIGHT - 20] + 10
    dots = []
    for (x, y), group, text in zip(at.tolist(), groups_N.tolist(), texts, strict=True):
        colour = GREY if group < 0 else COLOURS[group % len(COLOURS)]
        name = "no cluster" if group < 0 else f"cluster {group}"
        dots.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 if group < 0 else 4}" fill="{colour}" fill-opacity="0.7">'
            f"<title>{name}: {shown(text)}</title></circle>"
        )
    picture = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{shown(title)}">{"".join(dots)}</svg>'
    return f"<h2>{shown(title)}</h2><figure>{picture}<figcaption>{shown(note)}</figcaption></figure>"


def flat(vectors_ND: Floats) -> Floats:
    """Two coordinates of each vector: along the two directions in which they differ most."""
    middle = vectors_ND - vectors_ND.mean(0)
    if min(middle.shape) < 2:
        return np.zeros((len(middle), 2), np.float32)
    _, _, directions = np.linalg.svd(middle, full_matrices=False)
    found: Floats = middle @ directions[:2].T
    return found


def _plain(cell: object) -> str:
    return f"{cell:.4f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
