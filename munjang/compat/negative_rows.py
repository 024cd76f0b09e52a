"""Rows that mine_hard_negatives returns, in four layouts, and what it prints about them."""

from typing import Any

import torch
from torch import Tensor

OUT = -float("inf")  # the score of what is no candidate


class Pairs:
    """Different queries and texts, and the places of each query's positives among the texts."""

    def __init__(self, anchors: list[str], positives: list[str], corpus: list[str] | None) -> None:
        self.corpus = list(dict.fromkeys([*(positives if corpus is None else corpus), *positives]))
        self.queries = list(dict.fromkeys(anchors))
        place_of = {text: place for place, text in enumerate(self.corpus)}
        of_query: dict[str, dict[int, None]] = {query: {} for query in self.queries}
        counts = dict.fromkeys(self.queries, 0)
        for anchor, positive in zip(anchors, positives, strict=True):
            of_query[anchor][place_of[positive]] = None
            counts[anchor] += 1
        self.positives = [list(of_query[query]) for query in self.queries]
        self.most = max(counts.values())


Columns = dict[Any, list[Any]]  # 0: anchors, 1: positives; the others by name


def _found(scores: list[float], places: list[int]) -> list[tuple[float, int]]:
    return [(score, place) for score, place in zip(scores, places, strict=True) if score != OUT]


def _rows(pairs: Pairs, positive: list[float], scores: Any, places: Any) -> Any:
    """Yield, for every query and each of its positives, both texts, the positive's score and the negatives."""
    next_score = iter(positive)
    for query, text in enumerate(pairs.queries):
        for answer in pairs.positives[query]:
            yield text, pairs.corpus[answer], next(next_score), _found(scores[query], places[query])


def _triplets(pairs: Pairs, positive: list[float], scores: Any, places: Any, with_scores: bool) -> Columns:
    columns: Columns = {0: [], 1: [], "negative": []} | ({"scores": []} if with_scores else {})
    for anchor, answer, own, negatives in _rows(pairs, positive, scores, places):
        for score, place in negatives:
            values = (anchor, answer, pairs.corpus[place], [own, score])
            for column, value in zip(columns.values(), values, strict=False):
                column.append(value)
    return columns


def _tuples(pairs: Pairs, positive: list[float], scores: Any, places: Any, with_scores: bool) -> Columns:
    num = len(scores[0])
    columns: Columns = {0: [], 1: []} | {f"negative_{n + 1}": [] for n in range(num)}
    columns |= {"scores": []} if with_scores else {}
    for anchor, answer, own, negatives in _rows(pairs, positive, scores, places):
        if len(negatives) == num:
            texts = [pairs.corpus[place] for _, place in negatives]
            values = (anchor, answer, *texts, [own, *(score for score, _ in negatives)])
            for column, value in zip(columns.values(), values, strict=False):
                column.append(value)
    return columns


def _labelled(pairs: Pairs, positive: list[float], scores: Any, places: Any, with_scores: bool) -> Columns:
    name = "score" if with_scores else "label"
    columns: Columns = {0: [], 1: [], name: []}
    next_score = iter(positive)
    for query, text in enumerate(pairs.queries):
        answers = [(next(next_score), place) for place in pairs.positives[query]]
        negatives = _found(scores[query], places[query])
        for label, listed in ((1, answers), (0, negatives)):
            for score, place in listed:
                columns[0].append(text)
                columns[1].append(pairs.corpus[place])
                columns[name].append(score if with_scores else label)
    return columns


def _lists(pairs: Pairs, positive: list[float], scores: Any, places: Any, with_scores: bool) -> Columns:
    name = "scores" if with_scores else "labels"
    columns: Columns = {0: [], 1: [], name: []}
    for anchor, answer, own, negatives in _rows(pairs, positive, scores, places):
        if negatives:
            columns[0].append(anchor)
            columns[1].append([answer, *(pairs.corpus[place] for _, place in negatives)])
            values = [own, *(score for score, _ in negatives)] if with_scores else [1] + [0] * len(negatives)
            columns[name].append(values)
    return columns


# What output_format may be
LAYOUTS = {"triplet": _triplets, "n-tuple": _tuples, "labeled-pair": _labelled, "labeled-list": _lists}


def report(positive_P: Tensor, negative: Any, per_query: Any, skipped: Any, given: dict[str, float]) -> None:
    """Print how scores are distributed, and what each rule left out."""
    rows = [(own, [s for s in row if s != OUT]) for owns, row in zip(per_query, negative, strict=True) for own in owns]
    negatives = torch.tensor([score for _, row in rows for score in row])
    gaps = torch.tensor([float(own) - score for own, row in rows for score in row])
    line = "{:<6} {:>14} {:>14} {:>14}"
    print(line.format("Metric", "Positive", "Negative", "Difference"))
    print(line.format("Count", f"{len(positive_P):,}", f"{len(negatives):,}", ""))
    for name in ("mean", "median", "std", "min", "25%", "50%", "75%", "max"):
        values = [_statistic(scores.float().cpu(), name) for scores in (positive_P, negatives, gaps)]
        print(line.format(name.capitalize(), *(f"{value:.4f}" for value in values)))
    for name, (number, total) in skipped.items():
        if number:
            print(f"Skipped {number:,} potential negatives ({number / total:.2%}) due to the {name} of {given[name]}.")


def _statistic(scores: Tensor, name: str) -> float:
    if not len(scores):
        return float("nan")
    return float(scores.quantile(float(name[:-1]) / 100) if name.endswith("%") else getattr(torch, name)(scores))


def report_missing(
    layout: str, pairs: Pairs, num: int, found: int, rows: int, first: int, given: dict[str, float]
) -> None:
    """Print how many rows the dataset lacks, and which arguments would give more."""
    num_pairs = sum(map(len, pairs.positives))
    wanted = {"triplet": num_pairs * num, "n-tuple": num_pairs, "labeled-list": num_pairs * num}
    most = wanted.get(layout, len(pairs.queries) * num + rows)
    if found < (most if layout != "labeled-list" else num_pairs):
        names = ["range_max", *(["range_min"] if first else []), *(name for name in given if name != "min_score")]
        listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
        print(
            f"Could not find enough negatives for {most - found} samples ({(most - found) / most:.2%}). Consider "
            f"adjusting the {listed} parameter{'s' if len(names) > 1 else ''} if you'd like to find more."
        )
