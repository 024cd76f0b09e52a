"""Objectives of sentence vectors, example by example and straight from their formulas."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tests.objectives.naive_parts import Naive, Options, margins, mean, negative_log_share


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return (u @ v) / (u.norm() * v.norm())


def distance(options: Options, default: str, u: Tensor, v: Tensor) -> Tensor:
    kind = options.get("distance", default)
    if kind == "cosine":
        return 1 - cosine(u, v)
    return (u - v).norm() if kind == "euclidean" else (u - v).abs().sum()


def classification(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for u, v, label in zip(*outputs, extras["labels"], strict=True):
        parts = {"u": u, "v": v, "|u-v|": (u - v).abs(), "u*v": u * v}
        names = options.get("concatenation", "u,v,|u-v|").replace(" ", "").split(",")
        logits = parameters["head.weight"] @ torch.cat([parts[name] for name in names]) + parameters["head.bias"]
        costs.append(negative_log_share(list(logits), int(label)))
    return mean(costs, outputs[0])


def regression(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    return mean([(cosine(u, v) - s) ** 2 for u, v, s in zip(*outputs, extras["scores"], strict=True)], outputs[0])


def triplet(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for a, p, n in zip(*outputs, strict=True):
        further = distance(options, "euclidean", a, p) - distance(options, "euclidean", a, n)
        costs.append((further + options.get("margin", 1.0)).clamp(min=0))
    return mean(costs, outputs[0])


def _triplets(options: Options, vectors: Tensor, labels: list[int], a: int) -> tuple[list[Tensor], list[Tensor]]:
    away = [distance(options, "euclidean", vectors[a], each) if i != a else None for i, each in enumerate(vectors)]
    positives = [d for i, d in enumerate(away) if d is not None and labels[i] == labels[a]]
    return positives, [d for i, d in enumerate(away) if d is not None and labels[i] != labels[a]]


def batch_triplets(which: str) -> Naive:
    def loss(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        labels, margin, costs = extras["labels"].tolist(), options.get("margin", 5.0), []
        for a in range(len(labels)):
            positives, negatives = _triplets(options, outputs[0], labels, a)
            if not positives or not negatives:
                continue
            if which == "all":
                costs += [p - n + margin for p in positives for n in negatives if p - n + margin > 0]
            elif which == "hard":
                costs.append((max(positives) - min(negatives) + margin).clamp(min=0))
            else:
                for p in positives:
                    outside = [n for n in negatives if n > p]
                    costs.append((p - (min(outside) if outside else max(negatives)) + margin).clamp(min=0))
        return mean(costs, outputs[0])

    return loss


batch_all_triplet = batch_triplets("all")
batch_hard_triplet = batch_triplets("hard")
batch_semi_hard_triplet = batch_triplets("semi-hard")


def _find(options: Options, rows: Tensor, row_texts: Tensor, candidates: Any, guides: Any, more: Any = ()) -> Tensor:
    """`candidates`: (vector, text, row) each; the one with the row's own number is wanted.

    `more`: for each further pool who searches, the pool, the guide of both, and whether a row's own ones stay.
    """
    costs, temperature = [], options.get("temperature", 0.05)

    def is_false(i: int, text: Tensor, searching: Any, searched: Any) -> bool:
        if not options.get("keeps_duplicates") and text in (row_texts[i], candidates[i][1]):
            return True
        if guides is None:
            return False
        own = cosine(guides[0][i], guides[1][i])
        margin = options["guide_margin"] * (own.abs() if options.get("is_margin_relative") else 1)
        return bool(cosine(searching, searched) > own - margin)

    for i, row in enumerate(rows):
        values, right = [], -1
        for j, (vector, text, of_row) in enumerate(candidates):
            if j == i:
                right = len(values)
            elif is_false(i, text, *((None, None) if guides is None else (guides[0][i], guides[1][j]))):
                continue
            value = _compared(options, row, vector)
            which = options.get("hardness_of", "others") if j != i else ""
            is_hard = which == "all" or (which == "others" and of_row != i) or (which == "own" and of_row == i)
            values.append(value / temperature + is_hard * options.get("hardness", 0.0) * value.detach())
        for searching, pool, (guide, guide_of_pool), keeps_own in more:
            for j, (vector, text, of_row) in enumerate(pool):
                pair = (None, None) if guide is None else (guide[i], guide_of_pool[j])
                if keeps_own if of_row == i else not is_false(i, text, *pair):
                    values.append(_compared(options, searching[i], vector) / temperature)
        costs.append(negative_log_share(values, right))
    return mean(costs, rows)


def _compared(options: Options, u: Tensor, v: Tensor) -> Tensor:
    return u @ v if options.get("similarity") == "dot" else cosine(u, v)


def in_batch(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    texts = extras["texts"]

    def pool(columns: Sequence[int]) -> Any:
        return [(vector, texts[i, column], i) for column in columns for i, vector in enumerate(outputs[column])]

    def guide(columns: Sequence[int]) -> Any:
        if options.get("guide_margin") is None:
            return None
        return [vector for column in columns for vector in extras["guide"][:, column]]

    every = range(1, len(outputs))
    guides = None if guide([0]) is None else (guide([0]), guide(every))
    columns_of = {"anchors": (0, [0]), "reverse": (1, [0]), "positives": (1, [1]), "candidates": (1, every)}
    names = [name for name in options.get("contrasts", "").split(",") if name]
    more = [
        (outputs[who], pool(whom), (guide([who]), guide(whom)), name == "reverse")
        for name, (who, whom) in ((name, columns_of[name]) for name in names)
    ]
    loss = _find(options, outputs[0], texts[:, 0], pool(every), guides, more)
    if not options.get("is_symmetric"):
        return loss
    guides = None if guides is None else (guide([1]), guide([0]))
    return (loss + _find({**options, "hardness": 0.0}, outputs[1], texts[:, 1], pool([0]), guides)) / 2


def simcse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    return in_batch(options, outputs, {"texts": extras["texts"].repeat(1, 2)}, parameters)


def contrastive(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for u, v, label in zip(*outputs, extras["labels"], strict=True):
        d = distance(options, "cosine", u, v)
        costs.append(0.5 * (d if label else (options.get("margin", 0.5) - d).clamp(min=0)) ** 2)
    return mean(costs, outputs[0])


def online_contrastive(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    away = [distance(options, "cosine", u, v) for u, v in zip(*outputs, strict=True)]
    similar = [d for d, label in zip(away, extras["labels"], strict=True) if label == 1]
    others = [d for d, label in zip(away, extras["labels"], strict=True) if label == 0]
    limit = min(others) if others else mean(similar, outputs[0])
    total = outputs[0].sum() * 0 + sum(d**2 for d in similar if d > limit)
    limit = max(similar) if similar else mean(others, outputs[0])
    return total + sum((options.get("margin", 0.5) - d).clamp(min=0) ** 2 for d in others if d < limit)


def angle_of(u: Tensor, v: Tensor) -> Tensor:
    u, v = u / u.norm(), v / v.norm()
    half = (len(u) + 1) // 2
    zero = u.new_zeros(2 * half - len(u))
    u, v = torch.cat([u, zero]), torch.cat([v, zero])
    product = torch.complex(u[:half], u[half:]) * torch.complex(v[:half], v[half:]).conj()
    return (product.real.sum() + product.imag.sum()).abs()


def ranked(similarity: Callable[[Tensor, Tensor], Tensor]) -> Naive:
    def loss(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        values = [similarity(u, v) * options.get("scale", 20.0) for u, v in zip(*outputs, strict=True)]
        scores, total = extras["scores"], 1 + outputs[0].sum() * 0
        for i, high in enumerate(values):
            for j, low in enumerate(values):
                if scores[i] > scores[j]:
                    total = total + (low - high).exp()
        return total.log()

    return loss


cosent = ranked(cosine)
angle = ranked(angle_of)


def taught(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> list[tuple[Tensor, Tensor]]:
    """Each vector of the student, through the map if there is one, and the teacher's that it has to meet."""
    pairs = []
    for column, vectors in enumerate(outputs):
        for i, vector in enumerate(vectors):
            target = extras["teacher"][i, column if options.get("target") == "own" else 0]
            if "projection.weight" in parameters:
                vector = parameters["projection.weight"] @ vector + parameters["projection.bias"]
            pairs.append((vector, target))
    return pairs


def embedding_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = taught(options, outputs, extras, parameters)
    return mean([cost for vector, target in pairs for cost in (vector - target) ** 2], outputs[0])


def embedding_cosine(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = taught(options, outputs, extras, parameters)
    scale = options.get("scale", 20.0)
    return mean([scale * (1 - cosine(vector, target)) for vector, target in pairs], outputs[0])


def in_batch_kl(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    temperature, is_own = options.get("temperature", 0.05), options.get("target") == "own"
    texts = [(column, i) for column in range(len(outputs)) for i in range(len(outputs[0]))]
    teacher = {text: extras["teacher"][text[1], text[0] if is_own else 0] for text in texts}
    costs = []
    for one in texts:
        others = [text for text in texts if text != one]
        if others:
            student = torch.stack([cosine(outputs[one[0]][one[1]], outputs[c][i]) for c, i in others])
            wanted = torch.stack([cosine(teacher[one], teacher[text]) for text in others])
            wanted = (wanted / options.get("teacher_temperature", temperature)).softmax(0)
            costs.append((wanted * (wanted.log() - (student / temperature).softmax(0).log())).sum())
        else:
            costs.append(0 * outputs[0].sum())
    return mean(costs, outputs[0])


def _similarity(options: Options, u: Tensor, v: Tensor) -> Tensor:
    return cosine(u, v) if options.get("similarity") == "cosine" else u @ v


def margin_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    values = [[_similarity(options, query, each) for each in rest] for query, *rest in zip(*outputs, strict=True)]
    return margins(values, extras["scores"], outputs[0])


def kl(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, temperature = [], options.get("temperature", 1.0)
    for (query, *rest), scores in zip(zip(*outputs, strict=True), extras["scores"], strict=True):
        there = [k for k in range(len(rest)) if not scores[k].isnan()]
        if there:
            student = torch.stack([_similarity(options, query, rest[k]) for k in there]) / temperature
            teacher = (scores[there] / options.get("teacher_temperature", temperature)).softmax(0)
            divergence = (teacher * (teacher.log() - student.softmax(0).log())).sum()
            costs.append(divergence * options.get("scale", temperature**2))
    return mean(costs, outputs[0])
