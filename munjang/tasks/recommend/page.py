"""Recommendations as one page that needs nothing else: the items with their reasons, and a map of the catalogue.

N items, D width.
"""

from collections.abc import Collection, Sequence

import numpy as np

from munjang.tasks.page import POLICY, flat, shown
from munjang.tasks.recommend.ranking import Recommendation
from munjang.types import Floats

SIZE, MARGIN = 560, 16  # pixels of the map, and around its points
MAX_POINTS = 3000  # that are drawn; more would only be a cloud
COLOURS = {"other": "#c5cdca", "liked": "#0b6e4f", "disliked": "#c8553d", "recommended": "#3d5a80"}
STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}"
    "body{color:#1c2321;background:#fff}"
    "ol{padding-left:1.4em}li{margin:.8em 0}.bar{height:6px;background:#3d5a80;border-radius:3px}"
    ".key{display:inline-block;background:#eef2f1;border-radius:4px;padding:0 .5em;margin-right:.4em;font-size:.85em}"
    ".why,figcaption{color:#5d6966;font-size:.9em}figure{margin:1.5em 0}"
)


def page(
    title: str,
    found: Sequence[Recommendation],
    ids: Sequence[str] = (),
    vectors_ND: Floats | None = None,
    likes: Collection[str] = (),
    dislikes: Collection[str] = (),
) -> str:
    """An HTML page; with the ids and vectors of the catalogue, a map of it too."""
    best = max([each.score for each in found], default=1.0)
    body = [f"<h1>{shown(title)}</h1>", "<ol>", *(_item(each, best) for each in found), "</ol>"]
    if not found:
        body.append("<p>Nothing is left to recommend.</p>")
    if vectors_ND is not None and len(vectors_ND) > 2:
        kinds = dict.fromkeys(likes, "liked") | dict.fromkeys(dislikes, "disliked")
        kinds |= {each.id: "recommended" for each in found}
        body.append(_map(ids, vectors_ND, kinds))
    head = f'<!doctype html><html><head><meta charset="utf-8">{POLICY}<title>{shown(title)}</title>'
    return "\n".join([f"{head}<style>{STYLE}</style></head><body>", *body, "</body></html>\n"])


def _item(each: Recommendation, best: float) -> str:
    share = max(each.score, 0) / best if best > 0 else 0
    keys = "".join(f'<span class="key">{shown(word)}</span>' for word in each.keywords)
    why = f"like {shown(each.because)}" if each.because is not None else "fits the need"
    return (
        f"<li><b>{shown(each.id)}</b> {shown(each.text)}"
        f'<div class="bar" style="width:{100 * share:.0f}%"></div>'
        f'<div class="why">{each.score:.3f}, {why} {keys}</div></li>'
    )


def _map(ids: Sequence[str], vectors_ND: Floats, kinds: dict[str, str]) -> str:
    rows = list(range(len(ids)))
    if len(rows) > MAX_POINTS:
        step = len(rows) / MAX_POINTS
        rows = sorted({int(place * step) for place in range(MAX_POINTS)} | {r for r in rows if ids[r] in kinds})
    rows.sort(key=lambda row: ids[row] in kinds)  # what matters is drawn last, on top
    plane_N2 = flat(vectors_ND[rows])
    low, span = plane_N2.min(0), np.maximum(np.ptp(plane_N2, axis=0), 1e-6)
    places_N2 = MARGIN + (SIZE - 2 * MARGIN) * (plane_N2 - low) / span
    parts = []
    for row, (x, y) in zip(rows, places_N2.tolist(), strict=True):
        kind = kinds.get(ids[row], "other")
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3 if kind == "other" else 6}" fill="{COLOURS[kind]}">'
        parts.append(f"{circle}<title>{shown(ids[row])} ({kind})</title></circle>")
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}">'
    caption = "The catalogue from above: green is liked, red disliked, blue recommended; near items are alike."
    return "\n".join(["<figure>", drawing, *parts, f"</svg><figcaption>{caption}</figcaption></figure>"])
