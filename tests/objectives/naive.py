"""Every objective once more, example by example and straight from its formula.

A function takes the options, the network's outputs, the extras and the objective's parameters by name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from munjang.objectives.base import IGNORED

Options = Mapping[str, Any]
Naive = Callable[[Options, Sequence[Tensor], Mapping[str, Tensor], Mapping[str, Tensor]], Tensor]


def mean(values: Sequence[Tensor], none: Tensor) -> Tensor:
    return sum(values[1:], values[0]) / len(values) if values else none.sum() * 0


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return (u @ v) / (u.norm() * v.norm())


def distance(options: Options, default: str, u: Tensor, v: Tensor) -> Tensor:
    kind = options.get("distance", default)
    if kind == "cosine":
        return 1 - cosine(u, v)
    return (u - v).norm() if kind == "euclidean" else (u - v).abs().sum()


def negative_log_share(values: Sequence[Tensor], right: int) -> Tensor:
    return -(values[right].exp() / sum(value.exp() for value in values)).log()


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


def _find(options: Options, rows: Tensor, row_texts: Tensor, candidates: Any, guides: Any) -> Tensor:
    """`candidates`: (vector, text) each; the one with the row's own number is wanted."""
    costs = []
    for i, row in enumerate(rows):
        values, right = [], -1
        for j, (vector, text) in enumerate(candidates):
            if j == i:
                right = len(values)
            elif text in (row_texts[i], candidates[i][1]):
                continue
            elif guides is not None:
                limit = cosine(guides[0][i], guides[1][i]) - options["guide_margin"]
                if cosine(guides[0][i], guides[1][j]) > limit:
                    continue
            values.append(cosine(row, vector) / options.get("temperature", 0.05))
        costs.append(negative_log_share(values, right))
    return mean(costs, rows)


def in_batch(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    texts = extras["texts"]
    columns = range(1, len(outputs))
    candidates = [(vector, texts[i, column]) for column in columns for i, vector in enumerate(outputs[column])]
    guides = None
    if options.get("guide_margin") is not None:
        guide = extras["guide"]
        guides = (guide[:, 0], [vector for column in columns for vector in guide[:, column]])
    loss = _find(options, outputs[0], texts[:, 0], candidates, guides)
    if not options.get("is_symmetric"):
        return loss
    back = list(zip(outputs[0], texts[:, 0], strict=True))
    guides = None if guides is None else (extras["guide"][:, 1], extras["guide"][:, 0])
    return (loss + _find(options, outputs[1], texts[:, 1], back, guides)) / 2


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


def embedding_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for column, vectors in enumerate(outputs):
        for i, vector in enumerate(vectors):
            target = extras["teacher"][i, column if options.get("target") == "own" else 0]
            if "projection.weight" in parameters:
                vector = parameters["projection.weight"] @ vector + parameters["projection.bias"]
            costs += list((vector - target) ** 2)
    return mean(costs, outputs[0])


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


def _margins(values: Sequence[Sequence[Tensor]], scores: Tensor, none: Tensor) -> Tensor:
    costs = []
    for row, wanted in zip(values, scores, strict=True):
        for k, value in enumerate(row[1:]):
            margin = wanted if wanted.ndim == 0 else wanted[0] - wanted[k + 1]
            if not margin.isnan():
                costs.append((row[0] - value - margin) ** 2)
    return mean(costs, none)


def margin_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    values = [[_similarity(options, query, each) for each in rest] for query, *rest in zip(*outputs, strict=True)]
    return _margins(values, extras["scores"], outputs[0])


def kl(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, temperature = [], options.get("temperature", 1.0)
    for (query, *rest), scores in zip(zip(*outputs, strict=True), extras["scores"], strict=True):
        there = [k for k in range(len(rest)) if not scores[k].isnan()]
        if there:
            student = torch.stack([_similarity(options, query, rest[k]) for k in there]) / temperature
            teacher = (scores[there] / options.get("teacher_temperature", temperature)).softmax(0)
            costs.append((teacher * (teacher.log() - student.softmax(0).log())).sum() * temperature**2)
    return mean(costs, outputs[0])


def masked(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for state, target in zip(outputs[0], extras["targets"], strict=True):
        if target != IGNORED:
            hidden = parameters["transform.0.weight"] @ state + parameters["transform.0.bias"]
            hidden = layer_norm(torch.nn.functional.gelu(hidden), parameters, "transform.2")
            logits = extras["words"] @ hidden + parameters["bias"]
            costs.append(negative_log_share(list(logits), int(target)))
    return mean(costs, outputs[0])


def layer_norm(state: Tensor, parameters: Mapping[str, Tensor], name: str) -> Tensor:
    state = (state - state.mean()) / (state.var(unbiased=False) + 1e-5).sqrt()
    return state * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def linear(state: Tensor, parameters: Mapping[str, Tensor], name: str) -> Tensor:
    return parameters[f"{name}.weight"] @ state + parameters[f"{name}.bias"]


def _decode(vector: Tensor, tokens: Sequence[int], words: Tensor, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    """States after each token of one text; cross-attention is written out as attention to one key. One head."""
    width, states = words.shape[1], []
    for place, token in enumerate(tokens):
        angles = [place * 10_000 ** (-2 * i / width) for i in range((width + 1) // 2)]
        wave = [*(math.sin(angle) for angle in angles), *(math.cos(angle) for angle in angles)][:width]
        wave_of_place = torch.tensor(wave, dtype=words.dtype)
        states.append(layer_norm(words[token], parameters, "decoder.start") + wave_of_place)
    for layer in sorted({name.rsplit(".", 2)[0] for name in parameters if ".layers." in name}):
        qkv = [
            linear(layer_norm(each, parameters, f"{layer}.norm_before"), parameters, f"{layer}.qkv") for each in states
        ]
        after = []
        for i, state in enumerate(states):
            query = qkv[i][:width]
            shares = torch.stack([query @ qkv[j][width : 2 * width] for j in range(i + 1)]) / width**0.5
            seen = sum(share * qkv[j][2 * width :] for j, share in enumerate(shares.softmax(0)))
            state = state + linear(seen, parameters, f"{layer}.out")
            only_share = torch.stack([state @ state]).softmax(0)[0]  # whatever the query: 1
            state = state + only_share * linear(vector, parameters, f"{layer}.sentence")
            hidden = linear(layer_norm(state, parameters, f"{layer}.norm_between"), parameters, f"{layer}.up")
            after.append(state + linear(torch.nn.functional.gelu(hidden), parameters, f"{layer}.down"))
        states = after
    return [layer_norm(state, parameters, "decoder.norm") for state in states]


def denoising(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, start, words = [], 0, extras["words"]
    for vector, length in zip(outputs[0], extras["lengths"].tolist(), strict=True):
        tokens = extras["targets"][start : start + length].tolist()
        start += length
        for state, wanted in zip(_decode(vector, tokens[:-1], words, parameters), tokens[1:], strict=True):
            costs.append(negative_log_share(list(words @ state + parameters["bias"]), wanted))
    return mean(costs, outputs[0])


def _activated(options: Options, logit: Tensor, default: str = "identity") -> Tensor:
    return logit.sigmoid() if options.get("activation", default) == "sigmoid" else logit


def cross_bce(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, weight = [], options.get("positive_weight", 1.0)
    for logit, y in zip(outputs[0][:, 0], extras[options.get("target", "scores")], strict=True):
        costs.append(-(weight * y * logit.sigmoid().log() + (1 - y) * (1 - logit.sigmoid()).log()))
    return mean(costs, outputs[0])


def cross_entropy(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = zip(outputs[0], extras["labels"], strict=True)
    return mean([negative_log_share(list(logits), int(label)) for logits, label in pairs], outputs[0])


def cross_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    pairs = zip(outputs[0][:, 0], extras["scores"], strict=True)
    return mean([(_activated(options, logit) - score) ** 2 for logit, score in pairs], outputs[0])


def cross_margin_mse(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    values = [[_activated(options, logit[0]) for logit in row] for row in zip(*outputs, strict=True)]
    return _margins(values, extras["scores"], outputs[0])


def cross_in_batch(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, scale = [], options.get("scale", 10.0)
    for row in zip(*outputs, strict=True):
        costs.append(negative_log_share([_activated(options, logit[0], "sigmoid") * scale for logit in row], 0))
    return mean(costs, outputs[0])


def listnet(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs = []
    for row, scores in zip(zip(*outputs, strict=True), extras["scores"], strict=True):
        there = [k for k in range(len(row)) if not scores[k].isnan()]
        if there:
            shares = torch.stack([row[k][0] for k in there]).softmax(0)
            costs.append(-(scores[there].softmax(0) * shares.log()).sum())
    return mean(costs, outputs[0])


def _pair_weight(kind: str, gains: list[float], i: int, j: int) -> float:
    def discount(place: int) -> float:
        return math.log2(2 + place)

    apart, gain = abs(i - j), abs(gains[i] - gains[j])
    step = 1 / discount(apart - 1) - 1 / discount(apart) if apart else 0.0
    swap = abs(1 / discount(i) - 1 / discount(j))
    weights = {"none": 1.0, "ndcg1": gains[i] / discount(i), "ndcg2": step * gain, "lambda_rank": swap * gain}
    return 10 * step * gain + swap * gain if kind == "ndcg2++" else weights[kind]


def lambda_loss(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    costs, kind, top = [], options.get("weighting", "ndcg2++"), options.get("k") or len(outputs)
    for row, all_scores in zip(zip(*outputs, strict=True), extras["scores"].tolist(), strict=True):
        there = [(logit[0], score) for logit, score in zip(row, all_scores, strict=True) if not math.isnan(score)]
        there.sort(key=lambda pair: -pair[0].item())
        raw = [2 ** max(score, 0) - 1 for _, score in there]
        ideal = sum(gain / math.log2(2 + place) for place, gain in enumerate(sorted(raw, reverse=True)[:top]))
        gains = [gain / max(ideal, 1e-10) for gain in raw]
        for i, (high, better) in enumerate(there):
            for j, (low, worse) in enumerate(there):
                if (better > worse or kind == "ndcg1") and min(i, j) < top:
                    ahead = (options.get("sigma", 1.0) * (high - low)).sigmoid().log() / math.log(2)
                    costs.append(-_pair_weight(kind, gains, i, j) * ahead)
    return mean(costs, outputs[0])


def ranknet(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
    return lambda_loss({**options, "weighting": "none"}, outputs, extras, parameters)


NAIVE: dict[str, Naive] = {
    "classification": classification,
    "regression": regression,
    "triplet": triplet,
    "batch_all_triplet": batch_triplets("all"),
    "batch_hard_triplet": batch_triplets("hard"),
    "batch_semi_hard_triplet": batch_triplets("semi-hard"),
    "in_batch": in_batch,
    "contrastive": contrastive,
    "online_contrastive": online_contrastive,
    "cosent": ranked(cosine),
    "angle": ranked(angle_of),
    "embedding_mse": embedding_mse,
    "in_batch_kl": in_batch_kl,
    "margin_mse": margin_mse,
    "kl": kl,
    "simcse": simcse,
    "denoising": denoising,
    "masked": masked,
    "cross_bce": cross_bce,
    "cross_entropy": cross_entropy,
    "cross_mse": cross_mse,
    "cross_margin_mse": cross_margin_mse,
    "cross_in_batch": cross_in_batch,
    "listnet": listnet,
    "lambda_loss": lambda_loss,
    "ranknet": ranknet,
}


def wrapped(wrapper: str, given: Options, inner: Naive) -> Naive:
    """The same of a wrapper around an objective; parameters are named as inside it."""

    def matryoshka(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        total, dims = 0, given["dims"]
        for dim, weight in zip(dims, given.get("weights", [1.0] * len(dims)), strict=True):
            cut = []
            for vectors in outputs:
                kept = torch.stack(
                    [row[:dim] / (row[:dim].norm() if given.get("is_normalized", True) else 1) for row in vectors]
                )
                rest = kept.new_zeros(len(kept), vectors.shape[1] - dim)
                cut.append(torch.cat([kept, rest], dim=1) if parameters else kept)
            teacher = {
                key: extras[key][:, :, :dim]
                for key in extras
                if key == "teacher" and inner is embedding_mse and not parameters
            }
            total = total + weight * inner(options, cut, {**extras, **teacher}, parameters)
        return total

    def adaptive_layers(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        losses = [
            inner(options, [column[:, layer] for column in outputs], extras, parameters)
            for layer in range(outputs[0].shape[1])
        ]
        divergences = []
        for column in outputs:
            for *earlier, last in column:
                wanted = (last.detach() / 0.3).softmax(0)
                divergences += [(wanted * (wanted.log() - (each / 0.3).softmax(0).log())).sum() for each in earlier]
        far = given.get("divergence_weight", 1.0) * 0.3 * mean(divergences, outputs[0])
        return losses[-1] + given.get("earlier_weight", 1.0) * mean(losses[:-1], outputs[0]) + far

    return {"matryoshka": matryoshka, "adaptive_layers": adaptive_layers}[wrapper]
