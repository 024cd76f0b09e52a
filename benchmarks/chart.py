"""Bars and lines as SVG, written by hand: a handful of rectangles is no reason for a plotting library."""

import math
from typing import TypeAlias
from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, GAP = 860, 250, 15, 26  # pixels: of the picture, for names, a bar's height, between groups
OURS, THEIRS = "#0b6e4f", "#9aa5b1"
HEIGHT, EDGE = 240, 60  # pixels: of a picture of lines, around it
Line: TypeAlias = list[tuple[float, float]]


def bars(title: str, groups: dict[str, dict[str, float]]) -> str:
    """Horizontal bars, longest first in every group; ours stand out.

    >>> bars("Times as fast", {"short": {"ours": 2.0, "theirs": 1.0}})[:4]
    '<svg'
    """
    largest = max((value for rows in groups.values() for value in rows.values()), default=1.0)
    parts, y = [_text(10, 24, title, "bold")], 44
    for name, rows in groups.items():
        y += GAP // 2
        parts.append(_text(10, y + 12, name, "bold"))
        y += GAP - 6
        for encoder, value in sorted(rows.items(), key=lambda row: -row[1]):
            length = max((WIDTH - LABEL - 60) * value / largest, 1)
            colour = OURS if encoder.startswith("munjang") else THEIRS
            parts.append(_text(LABEL - 8, y + 12, encoder, "normal", "end"))
            parts.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(_text(LABEL + length + 6, y + 12, f"{value:.2f}"))
            y += BAR + 4
    return _picture(parts, y + 10)


def lines(title: str, panels: dict[str, dict[str, Line]]) -> str:
    """Lines over a common x in each panel, one panel below the other, y from zero; ours stand out.

    >>> lines("Loss", {"by update": {"ours": [(0, 2.0), (1, 1.0)]}})[:4]
    '<svg'
    """
    parts, top = [_text(10, 24, title, "bold")], 44
    for name, rows in panels.items():
        points = [point for line in rows.values() for point in line]
        right, high = max(x for x, _ in points), max(y for _, y in points)
        parts.append(_text(10, top + 12, name, "bold"))
        floor = top + 24 + HEIGHT
        for share in (0, 0.5, 1):
            y = floor - share * HEIGHT
            parts.append(f'<path d="M{EDGE} {y:.0f}H{WIDTH - LABEL}" stroke="#ddd"/>')
            parts.append(_text(EDGE - 8, y + 4, f"{share * high:.3g}", anchor="end"))
            parts.append(
                _text(EDGE + share * (WIDTH - LABEL - EDGE), floor + 16, f"{share * right:,.0f}", anchor="middle")
            )
        for place, (label, line) in enumerate(rows.items()):
            path = " ".join(
                f"{EDGE + x / right * (WIDTH - LABEL - EDGE):.1f},{floor - y / high * HEIGHT:.1f}" for x, y in line
            )
            colour, dash = (
                (OURS, "") if label.startswith("munjang") else (THEIRS, f' stroke-dasharray="{3 + 3 * place}"')
            )
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
            at = top + 40 + 18 * place
            parts.append(f'<path d="M{WIDTH - LABEL + 16} {at - 4}h24" stroke="{colour}" stroke-width="2"{dash}/>')
            parts.append(_text(WIDTH - LABEL + 46, at, label))
        top = floor + 40
    return _picture(parts, top)


def frontier(title: str, panels: dict[str, list[tuple[str, float, float, float]]]) -> str:
    """Points of (name, milliseconds, quality, bytes) over a logarithm of time, in each panel; larger ones take more.

    >>> frontier("Search", {"set": [("words", 1.0, 90.0, 500.0), ("vectors", 20.0, 95.0, 2000.0)]})[:4]
    '<svg'
    """
    parts, top = [_text(10, 24, title, "bold")], 44
    for name, points in panels.items():
        times, qualities = [math.log10(ms) for _, ms, _, _ in points], [quality for _, _, quality, _ in points]
        left, low = min(times), min(qualities)
        across, high = max(max(times) - left, 1e-9), max(max(qualities) - low, 1e-9)
        best = max(size for *_, size in points)
        parts.append(_text(10, top + 12, name, "bold"))
        floor = top + 34 + HEIGHT
        for label, ms, quality, size in sorted(points, key=lambda point: point[1]):
            x = EDGE + (math.log10(ms) - left) / across * (WIDTH - LABEL - EDGE)
            y, is_best = floor - (quality - low) / high * HEIGHT, all(quality >= q for _, m, q, _ in points if m <= ms)
            colour, radius = OURS if is_best else THEIRS, 3 + 9 * math.sqrt(size / best)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.7"/>')
            said = f"{label}: {quality:.1f}, {ms:.0f} ms, {size / 1000:.1f} kB"
            parts.append(_text(x + radius + 4, y + 4, said))
        top = floor + 30
    return _picture(parts, top)


def _picture(parts: list[str], height: float) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    ground = f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>'  # a dark page would swallow the text
    return "\n".join([head, ground, *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
