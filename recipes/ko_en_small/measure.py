"""What ko-en-small is measured on, and by what the share of the trained weights is chosen."""

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from munjang import BiEncoder, evaluate
from munjang.data.examples import Examples
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.correlation import spearman
from munjang.vectors.similarity import PAIRWISE
from recipes.ko_en_small.both import Both
from recipes.ko_en_small.data import crossed, file, read, read_table, scored
from recipes.weights import blend

DIMENSIONS = (384, 256, 128, 64)
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)  # of the trained weights


def chosen(start: Path, *paths: Path, device: str | None) -> None:
    """What shares of the trained weights give, on what is not reported: to choose the share of `blend` by.

    STS dev sets, and the mean reciprocal rank of a passage among all those that were kept back.
    """
    *trained, silver, data = paths
    held = read(data, silver).held
    for share in SHARES:
        with TemporaryDirectory() as folder:
            blend(start, *trained, Path(folder), share=share)
            encoder = BiEncoder.load(folder, device)
        scores = {each.name: _rank(encoder, each) for each in held}
        for name in ("stsb-dev", "korsts-dev"):
            scores[name] = evaluate(encoder, file(data, f"sts/{name}"), kind="sts").score
        scores["crossed"] = evaluate(encoder, crossed(data, "dev"), kind="sts").score
        print(share, {name: round(100 * score, 2) for name, score in scores.items()}, flush=True)


def _rank(encoder: BiEncoder, pairs: Examples) -> float:
    queries, passages = (encoder.encode(list(column), normalize=True) for column in pairs.texts)
    own = np.einsum("nd,nd->n", queries, passages)
    starts = range(0, len(queries), 1024)
    ranks = [(queries[at : at + 1024] @ passages.T >= own[at : at + 1024, None] - 1e-6).sum(1) for at in starts]
    return float((1 / np.maximum(np.concatenate(ranks), 1)).mean())  # rounding must not leave a text without a place


def measure(model: Path, data: Path, out: Path, device: str | None, dtype: str | None = None) -> None:
    """Every reported set, as `munjang evaluate` measures it."""
    encoder = BiEncoder.load(model, device, dtype)
    found: dict[str, Any] = {}
    for name in ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sts12", "sts13", "sts14", "sick-dev"):
        ranges = {"score_range": (1.0, 5.0)} if name.startswith("sick") else {}
        texts = {"texts": ("sentence1", "sentence2")}
        found[name] = evaluate(encoder, file(data, f"sts/{name}"), kind="sts", **ranges, **texts)
    found["crossed-dev"] = evaluate(encoder, crossed(data, "dev"), kind="sts")
    for name in ("korquad", "cranfield"):
        found[name] = evaluate(encoder, data / "retrieval" / name, kind="retrieval")
    found["mixed-dev"] = evaluate(encoder, mixed(data), kind="retrieval")
    found["stackoverflow"] = evaluate(encoder, file(data, "clustering/stackoverflow"), kind="clustering", max_rows=5000)
    record = {name: {**asdict(report), "score": report.score} for name, report in found.items()}
    out.write_text(
        json.dumps({"model": model.name, "dtype": dtype or "as loaded", "reports": record}, indent=1, default=str)
    )
    for name, report in found.items():
        print(f"{name:14} {report.main} {100 * report.score:.2f}", flush=True)


def smaller(model: Path, data: Path, device: str | None, dtype: str | None) -> None:
    """What fewer components, and components in fewer bits, leave of the test scores."""
    encoder = BiEncoder.load(model, device, dtype)
    for name in ("stsb-test", "korsts-test"):
        pairs = scored(data, f"sts/{name}", name)
        assert pairs.scores is not None
        floats, codes = (
            [encoder.encode(list(column), precision=precision) for column in pairs.texts]
            for precision in ("float32", "int8")
        )
        sides: dict[str, list[Any]] = {str(size): [each[:, :size] for each in floats] for size in DIMENSIONS}
        sides["int8"] = [each.astype(np.float32) for each in codes]
        sides["one bit"] = [np.where(each > 0, 1.0, -1.0) for each in floats]
        found = {kind: spearman(PAIRWISE["cosine"](*each), pairs.scores) for kind, each in sides.items()}
        print(name, {kind: round(100 * score, 2) for kind, score in found.items()}, flush=True)


def covered(full: Path, model: Path, data: Path) -> None:
    """What the pruned vocabulary makes of text that its pieces were not counted on, beside the whole one."""
    whole, own = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in (full, model))
    pieces, left = whole.get_vocab(), own.get_vocab()
    kept = {place for piece, place in pieces.items() if piece in left}
    for name, texts in _unseen(data).items():
        before, after = (
            [piece for each in one.encode_batch_fast(texts, add_special_tokens=False) for piece in each.ids]
            for one in (whole, own)
        )
        share = np.mean([place in kept for place in before])
        unknown = [ids.count(names["<unk>"]) / len(ids) for names, ids in ((pieces, before), (left, after))]
        print(
            f"{name}: {len(texts):,} texts, {len(before):,} pieces, {share:.2%} kept; "
            f"{len(after) / len(before) - 1:+.2%} pieces, {unknown[1]:.3%} unknown ({unknown[0]:.3%} before)",
            flush=True,
        )


def _unseen(data: Path) -> dict[str, list[str]]:
    def columns(name: str, *wanted: str) -> list[str]:
        return [text for column in read_table(file(data, name), wanted).values() for text in column]

    pair = ("sentence1", "sentence2")
    found = {name: read_retrieval(data / "retrieval" / name) for name in ("korquad", "cranfield")}
    return {
        **{name: [*each.corpus.values(), *each.queries.values()] for name, each in found.items()},
        "KorSTS dev and test": [text for part in ("dev", "test") for text in columns(f"sts/korsts-{part}", *pair)],
        "STS12 to STS14": [text for year in (12, 13, 14) for text in columns(f"sts/sts{year}", *pair)],
        "StackOverflow titles": columns("clustering/stackoverflow", "text"),
        "titles of Korean books": columns("books/korean-books", "title"),
    }


def teachers(english: Path, own: Path, data: Path, device: str | None) -> None:
    """STSb dev by the cosines of two teachers, and of both, as `both.py` adds them."""
    pairs = scored(data, "sts/stsb-dev", "STSb dev")
    assert pairs.scores is not None
    one, other = BiEncoder.load(english, device), BiEncoder.load(own, device)
    for name, teacher in ((english.name, one), (own.name, other), ("both", Both(one, other))):
        sides = [teacher.encode(list(column), normalize=True) for column in pairs.texts]
        print(f"{name}: {100 * spearman(PAIRWISE['cosine'](*sides), pairs.scores):.2f}", flush=True)


def mixed(data: Path, count: int = 500) -> Retrieval:
    """Korean sentences look for their English translations among Korean distractors, three for each of them.

    A model that first of all asks for the language finds Korean sentences about something else.
    """
    table = read_table(file(data, "sts/stsb-en-ko-dev"), ("sentence1_en", "sentence1_ko", "sentence2_ko"))
    english = dict(zip(table["sentence1_ko"], table["sentence1_en"], strict=True))
    asked = [text for text in english if text not in table["sentence2_ko"]][:count]
    distractors = [text for text in dict.fromkeys([*english, *table["sentence2_ko"]]) if text not in set(asked)]
    corpus = {f"en{place}": english[text] for place, text in enumerate(asked)}
    corpus |= {f"ko{place}": text for place, text in enumerate(distractors[: 3 * count])}
    queries = {str(place): text for place, text in enumerate(asked)}
    right = {place: {f"en{place}": 1.0} for place in queries}
    return Retrieval("Korean questions, English answers, Korean distractors", corpus, queries, right)
