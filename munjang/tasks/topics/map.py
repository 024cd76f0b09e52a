"""The map of topics as one HTML file that needs nothing else: points to hover, a search box, a legend to click.

The page itself is map.html beside this file; texts travel as JSON and are only ever shown as text.
"""

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from munjang.data.files import replacing
from munjang.errors import InputError
from munjang.tasks.topics.model import TopicModel
from munjang.tasks.topics.places import place_texts, place_topics
from munjang.tasks.topics.times import TopicAtTime
from munjang.training.report import clean
from munjang.vectors.similarity import check_vectors

DATA = "__DATA__"  # where the page expects it
MOST_POINTS = 30_000  # that a page draws; more are sampled, and it says so
LONGEST_TEXT = 400  # characters that are shown of a text


def write_map(
    path: str | os.PathLike[str],
    found: TopicModel,
    vectors: Any = None,
    title: str = "Munjang",
    times: list[TopicAtTime] | None = None,
) -> None:
    """Write the page whole or not at all. `vectors` of all texts place them better; `times` adds a chart of periods."""
    page = files("munjang.tasks.topics").joinpath("map.html").read_text("utf-8")
    # ASCII and no "<": nothing in a text can end the script that holds it
    data = json.dumps(map_data(found, vectors, title, times)).replace("<", "\\u003c")
    with replacing(Path(path)) as file:
        file.write(page.replace(DATA, data).encode())


def map_data(
    found: TopicModel, vectors: Any = None, title: str = "Munjang", times: list[TopicAtTime] | None = None
) -> dict[str, Any]:
    """What the page draws."""
    units = None if vectors is None else check_vectors(vectors, "vectors of the texts")
    if units is not None and len(units) != len(found.texts):
        raise InputError(f"There are {len(units)} vectors for {len(found.texts)} texts.")
    sizes = np.array([topic.size for topic in found.topics], np.int64)
    middles, radii = place_topics(found.centres, sizes)
    places = place_texts(found, middles, radii, units)
    rows = np.arange(len(found.texts))
    if len(rows) > MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), MOST_POINTS, replace=False))
    topics = [
        {
            "label": clean(topic.label),
            "size": topic.size,
            "terms": [clean(term) for term, _ in topic.terms],
            "place": _rounded(middle),
            "radius": round(float(radius), 4),
        }
        for topic, middle, radius in zip(found.topics, middles, radii, strict=True)
    ]
    return {
        "title": clean(title),
        "num_texts": len(found.texts),
        "num_outliers": found.num_outliers,
        "topics": topics,
        "points": [[*_rounded(places[row]), int(found.topic_of_N[row])] for row in rows],
        "texts": [_short(found.texts[row]) for row in rows],
        "times": [
            [each.topic, str(each.start), each.size, [clean(term) for term, _ in each.terms]] for each in times or ()
        ],
    }


def _rounded(place: Any) -> list[float]:
    return [round(float(number), 4) for number in place]


def _short(text: str) -> str:
    text = clean(" ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
