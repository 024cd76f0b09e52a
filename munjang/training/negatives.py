"""Hard negatives: texts of a corpus that are near an anchor and yet not its answer.

N rows of examples, K candidates a row, best first.

>>> from munjang import BiEncoder
>>> questions = ["What is the capital of Korea?", "What is the capital of France?", "How do cats sleep?"]
>>> answers = ["Seoul is the capital of Korea.", "Paris is the capital of France.", "Cats sleep curled up."]
>>> mined = mine_negatives(BiEncoder.load(), Examples("made up", (questions, answers)), num_negatives=1)
>>> mined.examples.texts[2][0]  # near the first question, and not its answer
'Paris is the capital of France.'

`train(model, mined.examples, "in_batch")` learns from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError, unknown
from munjang.types import Bools, Floats, Ints
from munjang.vectors.nearest import nearest
from munjang.vectors.similarity import PAIRWISE

PICKS = ("top", "random")
LAYOUTS = ("triplet", "columns", "labelled")
MAX_PAIRS_AT_ONCE = 65_536  # rows whose vectors are compared in one operation


@dataclass(frozen=True)
class Rules:
    """Rules for the candidates that may be negatives; None: no such rule. Scores are the model's own similarity."""

    num_negatives: int = 3
    rank_from: int = 0  # the nearest ones are left out: they may be answers that nobody marked
    rank_to: int = 100
    margin: float | None = None
    relative_margin: float | None = None
    max_score: float | None = None
    min_score: float | None = None
    scorer_margin: float | None = None
    pick: str = "top"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_negatives < 1:
            raise InputError(f"num_negatives must be at least 1, not {self.num_negatives}.")
        if not 0 <= self.rank_from < self.rank_to:
            raise InputError(f"Ranks go from 0 up: rank_from {self.rank_from} must be below rank_to {self.rank_to}.")
        if self.rank_to - self.rank_from < self.num_negatives:
            width = self.rank_to - self.rank_from
            raise InputError(f"{self.num_negatives} negatives can't come from {width} ranks; raise rank_to.")
        if self.relative_margin is not None and not 0 <= self.relative_margin <= 1:
            raise InputError(
                f"relative_margin is a fraction of the positive's score, 0 to 1, not {self.relative_margin}."
            )
        if self.pick not in PICKS:
            raise unknown("pick", self.pick, PICKS)


@dataclass(frozen=True)
class Statistics:
    """Counts of the result, and of what every rule dropped."""

    num_rows: int  # of the examples
    num_negatives: int  # found in all
    num_full: int  # rows with as many as asked for
    num_none: int  # rows without any
    dropped: dict[str, int] = field(default_factory=dict)  # candidates by the first rule that dropped them
    num_scored: int = 0  # pairs that the cross-encoder read
    positive_mean: float = float("nan")  # similarity
    negative_mean: float = float("nan")

    @property
    def num_short(self) -> int:
        """Count the rows that got fewer than asked for, or none."""
        return self.num_rows - self.num_full

    def __str__(self) -> str:
        taken = ", ".join(f"{rule} {number:,}" for rule, number in self.dropped.items() if number) or "none"
        return (
            f"{self.num_negatives:,} negatives for {self.num_rows:,} rows; {self.num_short:,} rows got fewer than "
            f"asked for, {self.num_none:,} of them none. Mean similarity: positives {self.positive_mean:.4f}, "
            f"negatives {self.negative_mean:.4f}. Candidates dropped by rule: {taken}."
        )


@dataclass(frozen=True)
class Mined:
    """Examples to train on, and how they came about."""

    examples: Examples
    statistics: Statistics


@dataclass
class _Search:
    """Distinct texts, and what was found for every row."""

    anchors: list[str]
    documents: list[str]  # the corpus first, then positives that are not in it
    anchor_of_N: Ints
    positive_of_N: Ints
    positive_N: Floats  # similarity to the anchor
    scores_NK: Floats
    places_NK: Ints
    is_left_NK: Bools


def mine_negatives(
    model: BiEncoder,
    examples: Examples,
    corpus: list[str] | None = None,
    *,
    num_negatives: int = 3,
    rank_from: int = 0,
    rank_to: int = 100,
    margin: float | None = None,
    relative_margin: float | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    scorer: CrossEncoder | None = None,
    scorer_margin: float | None = None,
    pick: str = "top",
    seed: int = 0,
    layout: str = "triplet",
    progress: bool | None = None,
) -> Mined:
    """Mine negatives for rows of anchor and positive, from a corpus or, without one, from all positives.

    A text that equals the anchor or any positive of the same anchor is never a negative. Ranks are counted without
    those, from 0. margin: a negative scores at most the positive's score minus this; relative_margin: minus this
    fraction of it. scorer: a cross-encoder drops what it scores higher than the positive minus scorer_margin (0 if not
    given). layout: "triplet" is a row for each negative; "columns" anchor, positive, negative_1 ... and only rows that
    have all; "labelled" pairs with 1 and 0.
    """
    rules = Rules(
        num_negatives, rank_from, rank_to, margin, relative_margin, max_score, min_score, scorer_margin, pick, seed
    )
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    _check(examples, scorer, scorer_margin)
    search = _search(model, examples, corpus, rules, progress)
    dropped = _apply(rules, search)
    order = _order(rules, search)
    num_scored = 0
    if scorer is not None:
        num_scored, dropped["scorer"] = _veto(scorer, rules, search, order, progress)
    chosen = _choose(order, search.is_left_NK, rules.num_negatives)
    rows = _lay_out(layout, examples, search, chosen, num_negatives)
    statistics = replace(_statistics(search, chosen, num_negatives), dropped=dropped, num_scored=num_scored)
    return Mined(rows, statistics)


def _check(examples: Examples, scorer: CrossEncoder | None, scorer_margin: float | None) -> None:
    if len(examples.texts) != 2:
        raise InputError(f"{examples.name} has {len(examples.texts)} texts a row; give anchor and positive only.")
    if examples.labels is not None or examples.scores is not None:
        raise InputError(f"{examples.name} has labels or scores; keep the rows that are positive, without them.")
    if not len(examples):
        raise InputError(f"{examples.name} has no rows.")
    if scorer_margin is not None and scorer is None:
        raise InputError("scorer_margin needs a scorer, a cross-encoder; give one or leave the margin out.")
    if scorer is not None and scorer.num_labels != 1:
        raise InputError(f"The veto needs one score a pair; this cross-encoder has {scorer.num_labels} labels.")


def _search(
    model: BiEncoder, examples: Examples, corpus: list[str] | None, rules: Rules, progress: bool | None
) -> _Search:
    """Encode every distinct text once, and find the candidates of every distinct anchor."""
    queries, answers = examples.texts
    num_candidates = len(dict.fromkeys(answers if corpus is None else corpus))
    if not num_candidates:
        raise InputError("The corpus is empty; give texts to choose negatives from, or leave it out.")
    anchors = {text: place for place, text in enumerate(dict.fromkeys(queries))}
    documents = {text: place for place, text in enumerate(dict.fromkeys([*(corpus or ()), *answers]))}
    anchor_of_N = np.array([anchors[text] for text in queries], np.int64)
    positive_of_N = np.array([documents[text] for text in answers], np.int64)
    same = [(place, documents[text]) for text, place in anchors.items() if text in documents]
    excluded = np.array([*zip(anchor_of_N.tolist(), positive_of_N.tolist(), strict=True), *same], np.int64)
    excluded = np.unique(excluded[excluded[:, 1] < num_candidates], axis=0)  # sorted by anchor
    queries_QD = model.encode_query(list(anchors), progress=progress)
    documents_CD = model.encode_document(list(documents), progress=progress)
    name = model.similarity_name
    pairs = (excluded[:, 0], excluded[:, 1])
    scores_QK, places_QK = nearest(
        queries_QD, documents_CD[:num_candidates], rules.rank_to, name, pairs, model.device, progress
    )
    parts = np.split(np.arange(len(examples)), range(MAX_PAIRS_AT_ONCE, len(examples), MAX_PAIRS_AT_ONCE))
    near = [PAIRWISE[name](queries_QD[anchor_of_N[at]], documents_CD[positive_of_N[at]]) for at in parts]
    scores_NK = scores_QK[anchor_of_N]
    positive_N = np.concatenate(near).astype(np.float32)
    is_left_NK = np.isfinite(scores_NK)
    places_NK = places_QK[anchor_of_N]
    return _Search(
        list(anchors), list(documents), anchor_of_N, positive_of_N, positive_N, scores_NK, places_NK, is_left_NK
    )


def _apply(rules: Rules, search: _Search) -> dict[str, int]:
    """Drop what a rule forbids; return how many each rule dropped."""
    scores_NK, positive_N1 = search.scores_NK, search.positive_N[:, None]
    wrong: dict[str, Bools] = {}
    if rules.rank_from:
        wrong["rank_from"] = np.broadcast_to(np.arange(scores_NK.shape[1]) < rules.rank_from, scores_NK.shape)
    if rules.max_score is not None:
        wrong["max_score"] = scores_NK > rules.max_score
    if rules.min_score is not None:
        wrong["min_score"] = scores_NK < rules.min_score
    if rules.margin is not None:
        wrong["margin"] = scores_NK > positive_N1 - rules.margin
    if rules.relative_margin is not None:  # of the size: distances are negative scores
        wrong["relative_margin"] = scores_NK > positive_N1 - rules.relative_margin * np.abs(positive_N1)
    dropped = {}
    for rule, is_wrong_NK in wrong.items():
        dropped[rule] = int((search.is_left_NK & is_wrong_NK).sum())
        search.is_left_NK &= ~is_wrong_NK
    return dropped


def _order(rules: Rules, search: _Search) -> Ints:
    """Return the candidates of each row in the order in which they are taken: [N, K]."""
    num_rows, num_candidates = search.scores_NK.shape
    if rules.pick == "top":
        return np.broadcast_to(np.arange(num_candidates), (num_rows, num_candidates))
    keys_NK = np.random.default_rng(rules.seed).random(search.scores_NK.shape, np.float32)
    order_NK: Ints = np.argsort(keys_NK, axis=1)
    return order_NK


def _choose(order_NK: Ints, is_left_NK: Bools, num_negatives: int) -> Bools:
    """Mark the first `num_negatives` that are left in each row: [N, K]."""
    is_left = np.take_along_axis(is_left_NK, order_NK, 1)
    is_first = is_left & (np.cumsum(is_left, axis=1) <= num_negatives)
    chosen_NK = np.zeros_like(is_left_NK)
    np.put_along_axis(chosen_NK, order_NK, is_first, 1)
    return chosen_NK


def _veto(
    scorer: CrossEncoder, rules: Rules, search: _Search, order_NK: Ints, progress: bool | None
) -> tuple[int, int]:
    """Let the cross-encoder read what would be chosen, until everything chosen has passed; pairs read, and dropped.

    Only those: of a hundred candidates a row, three or four are ever needed.
    """
    limits_N = _predict(scorer, search, np.arange(len(search.anchor_of_N)), search.positive_of_N, progress)
    limits_N = limits_N - (rules.scorer_margin or 0.0)
    seen_NK = np.zeros_like(search.is_left_NK)
    num_scored, num_dropped = len(limits_N), 0
    while True:
        chosen_NK = _choose(order_NK, search.is_left_NK, rules.num_negatives)
        rows, columns = np.nonzero(chosen_NK & ~seen_NK)
        if not len(rows):
            return num_scored, num_dropped
        seen_NK[rows, columns] = True
        is_bad = _predict(scorer, search, rows, search.places_NK[rows, columns], progress) > limits_N[rows]
        search.is_left_NK[rows[is_bad], columns[is_bad]] = False
        num_scored, num_dropped = num_scored + len(rows), num_dropped + int(is_bad.sum())


def _predict(scorer: CrossEncoder, search: _Search, rows: Ints, places: Ints, progress: bool | None) -> Floats:
    anchors = search.anchor_of_N[rows].tolist()
    pairs = [(search.anchors[a], search.documents[b]) for a, b in zip(anchors, places.tolist(), strict=True)]
    scores: Floats = scorer.predict(pairs, progress=progress)
    return scores


def _rows(search: _Search, chosen_NK: Bools) -> Iterator[list[str]]:
    """Yield the negatives of each row, best first."""
    for row, is_chosen in enumerate(chosen_NK):
        yield [search.documents[place] for place in search.places_NK[row, is_chosen].tolist()]


def _lay_out(layout: str, examples: Examples, search: _Search, chosen_NK: Bools, num_negatives: int) -> Examples:
    table = list(zip(*examples.texts, _rows(search, chosen_NK), strict=True))
    name = f"{examples.name} with mined negatives"
    if layout == "labelled":
        pairs = {(anchor, positive): 1 for anchor, positive, _ in table}
        for anchor, _, negatives in table:  # an anchor with two positives has each negative once
            pairs |= {(anchor, negative): 0 for negative in negatives}
        columns = ([first for first, _ in pairs], [second for _, second in pairs])
        return Examples(name, columns, ("sentence1", "sentence2"), np.array(list(pairs.values()), np.int64))
    if layout == "triplet":
        rows = [(anchor, positive, negative) for anchor, positive, negatives in table for negative in negatives]
        names: tuple[str, ...] = ("anchor", "positive", "negative")
    else:
        rows = [(a, b, *negatives) for a, b, negatives in table if len(negatives) == num_negatives]
        names = ("anchor", "positive", *(f"negative_{place}" for place in range(1, num_negatives + 1)))
    columns_of = tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in names)
    return Examples(name, columns_of, names)


def _statistics(search: _Search, chosen_NK: Bools, num_negatives: int) -> Statistics:
    found_N = chosen_NK.sum(1)
    scores = search.scores_NK[chosen_NK]
    return Statistics(
        num_rows=len(found_N),
        num_negatives=int(found_N.sum()),
        num_full=int((found_N == num_negatives).sum()),
        num_none=int((found_N == 0).sum()),
        positive_mean=float(search.positive_N.mean(dtype=np.float64)),
        negative_mean=float(scores.mean(dtype=np.float64)) if len(scores) else float("nan"),
    )
