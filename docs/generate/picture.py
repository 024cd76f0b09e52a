"""The folders as a picture: a row for each layer of the imports, which all point down."""

from html import escape
from pathlib import Path

from docs.generate.folders import purpose, unit_of
from tests.test_architecture import ORDER

WIDTH, ROW, BOX, GAP = 760, 46, 32, 10  # pixels; the size of the file is docs/images/folders.svg's own
LEFT = 40  # room for the arrow


def layers(root: Path, document: str) -> str:
    """Return the boxes of all layers as SVG, top to bottom; a box says what it is for when pointed at."""
    lines = []
    for row, layer in enumerate(ORDER.split(" > ")):
        units = layer.split(", ")
        width = (WIDTH - LEFT - GAP * (len(units) - 1)) / len(units)
        for column, unit in enumerate(units):
            x, y = LEFT + column * (width + GAP), 8 + row * ROW
            label, source = unit_of(root, unit)
            box = f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="6"/>'
            text = f'<text x="{x + width / 2:.0f}" y="{y + 21}">{label}</text>'
            lines.append(f"<g><title>{escape(purpose(source))}</title>{box}{text}</g>")
    return "\n".join(lines)
