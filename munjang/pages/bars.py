"""Bars: named values below each other, and histograms.    N values."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from munjang.pages.chart import Words, figure, picture
from munjang.pages.html import Html, element, say, shorten
from munjang.types import Floats

MAX_NAME = 60  # characters of a bar's name
ROW_HEIGHT, GROUP_HEIGHT, BAR_HEIGHT = 40, 34, 14  # pixels
MAX_LENGTH = 84  # percent: the value stands to the right of the longest bar


class Bar(NamedTuple):
    """A named value: how long its bar is as a share of the longest possible, and how the value is written."""

    name: str
    share: float
    value: str
    colour: int = 0


def bars(title: Words, groups: Sequence[tuple[Words | None, Sequence[Bar]]], note: Words | None = None) -> Html:
    """Draw horizontal bars in groups; each name stands above its bar, so that long ones fit on a phone."""
    parts, y = [], 0
    for name, rows in groups:
        if name is not None:
            parts.append(element("text", name, class_="heading", x=0, y=y + 20))
            y += GROUP_HEIGHT
        for bar in rows:
            length = f"{MAX_LENGTH * min(max(bar.share, 0.0), 1.0):.2f}%"
            top = y + 18
            parts += [
                element("text", shorten(bar.name, MAX_NAME), class_="name", x=0, y=y + 12),
                element(
                    "rect", class_=f"length colour-{bar.colour}", x=0, y=top, rx=3, width=length, height=BAR_HEIGHT
                ),
                element("text", bar.value, class_="value", x=length, dx=7, y=top + 12),
            ]
            y += ROW_HEIGHT
    listed = [bar for _, rows in groups for bar in rows]
    if not listed:
        return figure(title, element("p", say("chart_empty"), class_="hint"))
    largest = max(listed, key=lambda bar: bar.share)
    description = say("chart_bars", count=len(listed), name=largest.name, value=largest.value)
    return figure(title, picture(title, description, parts, "bars", y), notes=[note])


def histogram(title: Words, values_N: Floats, num_bars: int = 40) -> Html:
    """Draw how often values occur; nothing where there are none."""
    if not len(values_N):
        return Html()
    low, high = float(values_N.min()), float(values_N.max())
    counts, edges = np.histogram(values_N, num_bars, (low, high) if high > low else (low - 0.5, high + 0.5))
    breadth, tallest = 100 / num_bars, max(int(counts.max()), 1)
    parts = []
    for place, count in enumerate(counts.tolist()):
        tip = say("histogram_bar", low=f"{edges[place]:.3f}", high=f"{edges[place + 1]:.3f}", count=count)
        height = 100 * count / tallest
        parts.append(
            element(
                "rect",
                element("title", tip),
                class_="length colour-0",
                x=f"{place * breadth:.2f}%",
                y=f"{100 - height:.2f}%",
                width=f"{0.85 * breadth:.2f}%",
                height=f"{height:.2f}%",
            )
        )
    parts += [
        element("line", class_="grid", x1=0, x2="100%", y1="100%", y2="100%"),
        element("text", f"{edges[0]:.3f}", x=0, y="100%", dy=18),
        element("text", f"{edges[-1]:.3f}", class_="end", x="100%", y="100%", dy=18),
    ]
    description = say("histogram", count=len(values_N), low=f"{low:.3f}", high=f"{high:.3f}")
    return figure(title, picture(title, description, parts, "plot histogram"), notes=[description])
