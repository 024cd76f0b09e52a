"""Dropped texts as a page: how similar they were, and to what."""

from collections.abc import Sequence

import numpy as np

from munjang.pages.bars import histogram
from munjang.pages.blocks import first_of, section, table
from munjang.pages.document import page
from munjang.pages.html import say
from munjang.tasks.dedupe.deduplication import Deduplicated

MAX_ROWS = 300  # shown
HEADS = ("score", "text", "kept_text", "reason", "kept_in", "row", "kept_row")


def duplicates_page(result: Deduplicated, texts: Sequence[str], reference: Sequence[str]) -> str:
    """Return the page of what was dropped from `texts`, some of it because of `reference`."""
    similar = np.array([text.score for text in result.dropped if text.reason == "similar"], np.float32)
    rows = [
        (
            dropped.score,
            texts[dropped.index],
            (reference if dropped.is_reference else texts)[dropped.kept],
            say(f"reason_{dropped.reason}"),
            say("in_reference" if dropped.is_reference else "in_input"),
            dropped.index,
            dropped.kept,
        )
        for dropped in result.dropped[:MAX_ROWS]
    ]
    figures = {
        say("texts"): len(texts),
        say("kept"): len(result.kept),
        say("equal"): len(result.dropped) - len(similar),
        say("similar"): len(similar),
    }
    note = first_of(len(rows), len(result.dropped))
    sections = [
        histogram(say("scores_similar"), similar),
        section(say("dropped"), table([say(head) for head in HEADS], rows), note=note),
    ]
    return page(say("duplicates"), figures, sections)
