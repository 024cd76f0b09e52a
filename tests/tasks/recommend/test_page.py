"""The page of recommendations: items by their titles, a map of the catalogue, a sample of large ones."""

import re
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.index import Index
from munjang.tasks.recommend.catalogue import Items
from munjang.tasks.recommend.page import MAX_POINTS, recommendations_page
from munjang.tasks.recommend.ranking import Recommendation, recommend
from tests.pages.reading import Page
from tests.tasks.recommend.test_ranking import ITEMS

HOSTILE = "<i>green\ud800\u202e\x00"  # half of a surrogate pair, text turned round, a zero
TITLES = {"a": "The <first>", "b": "The second", "c": "The third", "d": "The fourth", "e": "The fifth", "f": "Last"}


def titles_on(shown: str, colour: int) -> list[str]:
    return re.findall(rf'<circle class="dot colour-{colour}"[^>]*><title>(.*?)</title>', shown)


def test_items_are_called_by_their_titles() -> None:
    found = recommend(ITEMS, ["a"], ["f"])
    shown = recommendations_page(found, ITEMS, ["a"], ["f"], titles=TITLES)
    page = Page(shown)
    assert "<title " in shown
    assert "If you like The <first>" in page.words
    assert re.findall(r"<h3[^>]*>(.*?)</h3>", shown)[: len(found)] == [TITLES[item.id] for item in found]
    assert page.words.count("like The <first>") == 2 + len(found) == 2 + 4  # twice as the title
    assert titles_on(shown, 2) == ["The &lt;first&gt;"]  # liked
    assert titles_on(shown, 3) == ["Last"]
    assert sorted(titles_on(shown, 0)) == sorted(TITLES[item.id] for item in found)
    assert page.fetched == ["a #main"]


def test_without_titles_by_how_their_texts_begin() -> None:
    texts = ["A detective hunts a killer in Seoul. " * 4, "An inspector solves a murder.", "Recipes for bread."]
    items = Items.of_vectors(np.eye(3, dtype=np.float32), texts=texts)
    words = Page(recommendations_page(recommend(items, ["0"]), items, ["0"])).words
    assert "If you like A detective hunts a killer in Seoul. A detective hunts a killer in Seoul. A det…" in words
    assert "like A detective hunts a killer" in words
    assert "like 0" not in words


def test_documents_of_an_index_are_called_by_their_metadata(tiny_bert: Path) -> None:
    index = Index.open("memory:", BiEncoder.load(tiny_bert, device="cpu"))
    metadata = [{"title": f"Book {number}"} for number in "123"]
    index.add(["a quick fox", "a slow fox jumps", "the radio"], ["x", "y", "z"], metadata)
    shown = recommendations_page(recommend(index, ["x"]), index, ["x"])
    assert "If you like Book 1" in Page(shown).words
    assert sorted(re.findall(r"<h3[^>]*>(.*?)</h3>", shown)) == ["Book 2", "Book 3"]


def test_a_need_is_the_title_and_nothing_may_be_left() -> None:
    words = Page(recommendations_page([], ITEMS, ["a"], need="<bread>", titles=TITLES)).words
    assert "For “<bread>”" in words
    assert "If you like The <first>" in words
    assert "Nothing is left to recommend." in words


def test_equal_items_lie_in_one_place() -> None:
    items = Items.of_vectors(np.ones((3, 4), np.float32))
    assert len(set(re.findall('cx="(.*?)" cy="(.*?)"', recommendations_page([], items)))) == 1


def test_a_map_of_many_items() -> None:
    """A sample is drawn, with all that is liked in it; the two ends of a line are at the map's two sides."""
    number = 2 * MAX_POINTS
    angles = np.linspace(0, np.pi / 2, number)
    items = Items.of_vectors(np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32))
    shown = recommendations_page([], items, [str(number - 1)])
    assert shown.count("<circle") == MAX_POINTS + 1
    ends = [float(re.search(rf'cx="([0-9.]+)%"[^>]*><title>{end}<', shown)[1]) for end in (0, number - 1)]
    assert sorted(ends) == pytest.approx([4.55, 95.45], abs=0.01)  # a margin of 5 % of the range


def test_odd_letters_are_replaced() -> None:
    items = Items.of_vectors(np.eye(3, dtype=np.float32), [HOSTILE, "b", "c"], [HOSTILE * 2, "b", "c"])
    shown = recommendations_page([Recommendation(HOSTILE, HOSTILE * 2, 0.5, "b", (HOSTILE,))], items, ["b"])
    assert shown.encode().count("&lt;i&gt;green\ufffd\ufffd\ufffd".encode()) == 1 + 2 + 1 + 2  # id, text, keyword, map
    assert "\u202e" not in shown
    assert "<i>" not in shown
