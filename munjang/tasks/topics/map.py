"""The map of topics as a page: points to hover, a search box, a legend to click. map.js beside this file draws it."""

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from munjang.data.files import replacing
from munjang.errors import InputError
from munjang.pages.blocks import chips, section, table
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, clean, element, say, shorten
from munjang.tasks.topics.model import TopicModel
from munjang.tasks.topics.places import place_texts, place_topics
from munjang.tasks.topics.times import TopicAtTime
from munjang.vectors.similarity import check_vectors

MAX_POINTS = 30_000  # drawn; of more texts a sample, and the page says so
MAX_CHARACTERS = 400  # shown of a text


def write_map(
    path: str | os.PathLike[str],
    model: TopicModel,
    vectors: Any = None,
    title: str | Phrase = "Munjang",
    times: Sequence[TopicAtTime] | None = None,
) -> None:
    """Write the page whole or not at all. `vectors` of all texts place them better; `times` adds a table of periods.

    Raises InputError where there are not as many vectors as texts.

    >>> from munjang import BiEncoder
    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> write_map("map.html", find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2)))
    >>> Path("map.html").read_text("utf-8")[:15]
    '<!doctype html>'
    """
    sections = [_controls(), _map(), _periods(model, times) if times else None]
    script = files("munjang.tasks.topics").joinpath("map.js").read_text("utf-8")
    with replacing(Path(path)) as file:
        file.write(page(title, sections=sections, script=script, data=map_data(model, vectors)).encode())


def map_data(model: TopicModel, vectors: Any = None) -> dict[str, Any]:
    """Return what map.js draws."""
    units = None if vectors is None else check_vectors(vectors, "vectors of the texts")
    if units is not None and len(units) != len(model.texts):
        raise InputError(f"There are {len(units)} vectors for {len(model.texts)} texts.")
    sizes = np.array([topic.size for topic in model.topics], np.int64)
    middles, radii = place_topics(model.centres, sizes)
    places = place_texts(model, middles, radii, units)
    rows = np.arange(len(model.texts))
    if len(rows) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(len(rows), MAX_POINTS, replace=False))
    topics = [
        {
            "label": clean(topic.label),
            "size": topic.size,
            "terms": [clean(term) for term, _ in topic.terms],
            "place": _rounded(middle),
            "radius": round(float(radius), 4),
        }
        for topic, middle, radius in zip(model.topics, middles, radii, strict=True)
    ]
    return {
        "num_texts": len(model.texts),
        "num_outliers": model.num_outliers,
        "topics": topics,
        "points": [[*_rounded(places[row]), int(model.topic_of_N[row])] for row in rows],
        "texts": [shorten(model.texts[row], MAX_CHARACTERS) for row in rows],
    }


def _controls() -> Html:
    label = say("search_texts")
    return element(
        "div",
        element("p", id="facts", role="status"),
        element("input", id="search", type="search", placeholder=label, aria_label=label),
        element("button", say("show_all"), id="all", type="button", class_="soft"),
        class_="map-head",
    )


def _map() -> Html:
    topic, text = element("small", id="tip-topic", dir="auto"), element("span", id="tip-text", dir="auto")
    tip = element("div", topic, text, id="tip", hidden=True)
    canvas = element("canvas", id="map", role="img", aria_label=say("topics_map"))
    legend = element("aside", element("ul", id="legend", role="list"), class_="legend")
    return element("div", element("div", canvas, tip, class_="canvas"), legend, class_="map-body")


def _periods(model: TopicModel, times: Sequence[TopicAtTime]) -> Html:
    heads = [say("period"), say("topic"), say("num_texts"), say("keywords_column")]
    rows = [
        (
            str(period.start),
            element(
                "span",
                element("span", class_="spot", data_topic=period.topic),
                " ",
                shorten(model.topics[period.topic].label, 60),
            ),
            period.size,
            chips(term for term, _ in period.terms),
        )
        for period in times
    ]
    return section(say("over_time"), table(heads, rows))


def _rounded(place: Any) -> list[float]:
    return [round(float(number), 4) for number in place]
