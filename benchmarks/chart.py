"""A bar chart as SVG, written by hand: a handful of rectangles is no reason for a plotting library."""

from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, GAP = 860, 250, 15, 26  # pixels: of the picture, for names, a bar's height, between groups
OURS, THEIRS = "#0b6e4f", "#9aa5b1"


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
    y += 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"'
    style = ' font-family="sans-serif" font-size="12">'
    ground = f'<rect width="{WIDTH}" height="{y}" fill="white"/>'  # a dark page would swallow the text
    return "\n".join([head + style, ground, *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
