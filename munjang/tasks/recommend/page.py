"""Recommendations as a page: the items with their reasons, and a map of the catalogue.    N items, D width."""

from collections.abc import Collection, Mapping, Sequence

from munjang.index import Index
from munjang.pages.blocks import chips
from munjang.pages.chart import NUM_COLOURS, Point, Series, chart
from munjang.pages.document import page
from munjang.pages.html import Html, Phrase, element, say, shorten
from munjang.tasks.page import plane
from munjang.tasks.recommend.catalogue import Items
from munjang.tasks.recommend.ranking import Recommendation

MAX_POINTS = 3000  # drawn; more would only be a cloud
MAX_TITLE = 80  # characters
# kind of item: colour and radius of its dot; later kinds are drawn on top
KINDS = {"other_items": (NUM_COLOURS - 1, 3), "liked": (2, 6), "disliked": (3, 6), "recommended": (0, 6)}


def recommendations_page(
    found: Sequence[Recommendation],
    items: Items | Index,
    likes: Collection[str] = (),
    dislikes: Collection[str] = (),
    need: str | None = None,
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return the page of recommendations for likes and a need; the items of an index are too many for a map.

    Items are called by their `titles`, those of an index by `title` in their metadata, else by how their text begins.
    """
    best = max([item.score for item in found], default=1.0)
    own = _index_titles(items, [*likes, *(item.id for item in found)]) if isinstance(items, Index) else titles or {}
    texts = {item.id: item.text for item in found}
    if isinstance(items, Items):
        texts = dict(zip(items.ids, items.texts, strict=True)) | texts
    names = {id: shorten(own.get(id) or texts.get(id) or id, MAX_TITLE) for id in {*texts, *likes}}
    ranked = element("ol", *(_item(item, best, own, names) for item in found), class_="items")
    sections = [ranked if found else element("p", say("nothing_left"), class_="hint")]
    if isinstance(items, Items) and len(items.ids) > 2:
        kinds = dict.fromkeys(likes, "liked") | dict.fromkeys(dislikes, "disliked")
        sections.append(_map(items, kinds | {item.id: "recommended" for item in found}, names))
    liked = ", ".join(names[id] for id in likes)
    title = say("for_likes", titles=liked) if need is None else say("for_need", need=need)
    return page(title, sections=sections, subtitle=say("for_likes", titles=liked) if need and likes else None)


def _index_titles(index: Index, ids: Sequence[str]) -> dict[str, str]:
    """Return the title of each document, where its metadata has one, else the text of its first passage."""
    passages = index.store.passages(ids)
    rows = index.store.get([passages[id][0] for id in ids if passages.get(id)])
    documents = zip(rows.document_ids, rows.metadata, rows.texts, strict=True)
    return {id: str(metadata.get("title") or text) for id, metadata, text in documents}


def _item(item: Recommendation, best: float, titles: Mapping[str, str], names: Mapping[str, str]) -> Html:
    share = max(item.score, 0) / best if best > 0 else 0
    fill = element("span", class_="fill", style=f"width: {100 * share:.0f}%")
    reason: Phrase = say("fits_need")
    if item.because is not None:
        reason = say("like_item", title=names.get(item.because, item.because))
    about = element(
        "div",
        element("span", fill, class_="track"),
        element("span", f"{item.score:.3f}"),
        reason,
        chips(item.keywords) if item.keywords else None,
        class_="about",
    )
    title, text = titles.get(item.id), shorten(item.text)
    heading = element("h3", shorten(title), dir="auto") if title and shorten(title) != text else None
    return element("li", heading, element("p", text or item.id, dir="auto"), about, class_="item", title=item.id)


def _map(items: Items, kinds: Mapping[str, str], names: Mapping[str, str]) -> Html:
    rows = list(range(len(items.ids)))
    if len(rows) > MAX_POINTS:
        step = len(rows) / MAX_POINTS
        sample = {int(number * step) for number in range(MAX_POINTS)}
        rows = sorted(sample | {row for row in rows if items.ids[row] in kinds})
    points: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    for row, (x, y) in zip(rows, plane(items.vectors_ND[rows]).tolist(), strict=True):
        id, kind = items.ids[row], kinds.get(items.ids[row], "other_items")
        points[kind].append(Point(x, y, names[id], KINDS[kind][1]))
    series = [Series(say(kind), points[kind], colour, "dots") for kind, (colour, _) in KINDS.items() if points[kind]]
    return chart(say("catalogue"), series, note=say("catalogue_note"), shape="map")
