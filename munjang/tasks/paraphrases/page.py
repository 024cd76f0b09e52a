"""Similar pairs as a page: their scores and the best of them."""

from collections.abc import Sequence
from itertools import islice

from munjang.pages.bars import histogram
from munjang.pages.blocks import first_of, section, table
from munjang.pages.document import page
from munjang.pages.html import say
from munjang.tasks.paraphrases.mining import Pairs

MAX_PAIRS = 300  # shown


def pairs_page(pairs: Pairs, texts: Sequence[str], others: Sequence[str]) -> str:
    """Return the page of pairs between `texts` and `others`, which are one list where pairs are of one set."""
    rows = [(pair.score, texts[pair.first], others[pair.second]) for pair in islice(pairs, MAX_PAIRS)]
    figures = {say("texts"): len(texts), say("pairs"): len(pairs)}
    if texts is not others:
        figures[say("other_texts")] = len(others)
    heads = [say("score"), say("text"), say("other_text")]
    sections = [
        histogram(say("scores"), pairs.scores_P),
        section(say("pairs"), table(heads, rows), note=first_of(len(rows), len(pairs))),
    ]
    return page(say("paraphrases"), figures, sections)
