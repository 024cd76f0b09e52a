"""Clusters as a page: their texts as points in a plane, their keywords and most typical texts.    N texts, D width."""

from collections.abc import Sequence

import numpy as np

from munjang.pages.blocks import chips, first_of, section, table
from munjang.pages.chart import NUM_COLOURS, Point, Series, chart
from munjang.pages.document import page
from munjang.pages.html import element, say, shorten
from munjang.tasks.cluster.clustering import Clustering
from munjang.tasks.cluster.groups import Group
from munjang.tasks.page import plane
from munjang.types import Floats

MAX_POINTS = 3000  # drawn; more would only be a cloud
MAX_CLUSTERS = 500  # listed
GREY = NUM_COLOURS - 1  # texts of no cluster
HEADS = ("cluster", "num_texts", "keywords_column", "most_typical")


def clusters_page(clustering: Clustering, groups: Sequence[Group], vectors_ND: Floats, texts: Sequence[str]) -> str:
    """Return the page of a clustering of `texts`; only texts of clusters are drawn, where there are any."""
    labels_N = clustering.labels_N
    inside = np.flatnonzero(labels_N >= 0)
    rows = np.random.default_rng(0).permutation(inside if len(inside) else len(texts))[:MAX_POINTS]
    points: dict[int, list[Point]] = {}
    for row, (x, y) in zip(rows.tolist(), plane(vectors_ND[rows]).tolist(), strict=True):
        label = int(labels_N[row])
        tip = f"{'–' if label < 0 else label}: {shorten(texts[row])}"
        points.setdefault(label, []).append(Point(x, y, tip, radius=4))
    series = [
        Series(say("cluster"), points[label], GREY if label < 0 else label % GREY, shape="dots")
        for label in sorted(points)
    ]
    figures = {
        say("texts"): len(texts),
        say("clusters"): clustering.num_clusters,
        say("in_none"): int((labels_N < 0).sum()),
    }
    listed = [_row(group, texts) for group in groups[:MAX_CLUSTERS]]
    sections = [
        chart(say("map"), series, note=say("plane_note"), shape="map", has_legend=False),
        section(
            say("clusters"),
            table([say(head) for head in HEADS], listed),
            note=first_of(len(listed), len(groups)),
        ),
    ]
    return page(say("clusters_by", method=clustering.method), figures, sections)


def _row(group: Group, texts: Sequence[str]) -> tuple[object, ...]:
    spot = element("span", class_=f"spot colour-{group.label % GREY}")
    typical = element("ul", *(element("li", shorten(texts[row]), dir="auto") for row in group.representatives))
    return element("span", spot, " ", group.label), group.size, chips(group.keywords), typical
