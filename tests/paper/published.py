"""A folder of tiny files in the shapes and under the names of the paper's sets; their sentences are ours."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.texts import ENGLISH, KOREAN

LABELS = ("entailment", "neutral", "contradiction")


def put_korean(folder: Path) -> Path:
    """Write KorSTS, KLUE-NLI as a table, and NSMC."""
    texts = varied(KOREAN)
    for split, start in (("train", 0), ("dev", 40), ("test", 60)):
        head = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2"
        rows = [f"g\tf\t2012test\t{n}\t{score:.2f}\t{a}\t{b}" for n, (a, b, score) in enumerate(scored(texts, start))]
        write(folder / "KorSTS" / f"sts-{split}.tsv", head, *rows)
    _nli(folder / "KorNLI" / "snli_1.0_train.ko.tsv", texts)
    for split in ("train", "test"):
        rows = [f"{n}\t{text}\t{n % 2}" for n, text in enumerate(texts[:24])]
        write(folder / "nsmc" / f"ratings_{split}.txt", "id\tdocument\tlabel", *rows)
    return folder


def put_english(folder: Path) -> Path:
    """Write STSb, one year of SemEval, SNLI, AFS, Wikipedia sections, MR and TREC."""
    texts = varied(ENGLISH)
    for split, start in (("train", 0), ("dev", 40), ("test", 60)):
        rows = [f"g\tf\t2012test\t{n}\t{score:.2f}\t{a}\t{b}" for n, (a, b, score) in enumerate(scored(texts, start))]
        write(folder / "stsbenchmark" / f"sts-{split}.csv", *rows)
    pairs = scored(texts, 60)
    write(folder / "STS14-en-test" / "STS.input.news.txt", *(f"{a}\t{b}" for a, b, _ in pairs))
    write(folder / "STS14-en-test" / "STS.gs.news.txt", *(f"{score:.2f}" for _, _, score in pairs))
    _nli(folder / "snli-train.tsv", texts)
    for topic in ("GM", "GC", "DP"):
        rows = [f"{score:.1f},{a},{b}" for a, b, score in scored(texts, 0)]
        write(folder / "afs" / f"ArgPairs_{topic}.csv", "regular_label,sentence_1,sentence_2", *rows)
    for split in ("train", "test"):
        rows = [f"{a},{b},{c}" for (a, b), c in zip(pairwise(texts[:12]), texts[20:], strict=False)]
        write(folder / "wikipedia-sections" / f"{split}.csv", "Sentence1,Sentence2,Sentence3", *rows)
    write(folder / "MR" / "rt-polarity.pos", *texts[:12])
    write(folder / "MR" / "rt-polarity.neg", *texts[12:24])
    for name, few in (("train_5500", texts[:24]), ("TREC_10", texts[24:36])):
        write(folder / "TREC" / f"{name}.label", *(f"{('NUM', 'LOC')[n % 2]}:x {text} ?" for n, text in enumerate(few)))
    return folder


def varied(texts: list[str]) -> list[str]:
    """Return a hundred sentences without commas, tabs and repetitions."""
    words = " ".join(texts).replace(",", "").replace('"', "").replace("\t", " ").split()
    random = np.random.default_rng(0)
    return [" ".join(random.choice(words, 5)) + f" {n}" for n in range(100)]


def scored(texts: list[str], start: int) -> list[tuple[str, str, float]]:
    """Return pairs; the more words they share, the higher the score."""
    rows = []
    for n, text in enumerate(texts[start : start + 16]):
        words, kept = text.split(), n % 6
        other = " ".join([*words[:kept], *texts[start + 16 - n].split()[kept:]])
        rows.append((text, f"{other} {n}", float(kept)))
    return rows


def write(path: Path, *lines: str) -> None:
    """Write lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _nli(path: Path, texts: list[str]) -> None:
    rows = [f"{texts[n // 3]}\t{texts[n + 40 if n < 39 else n]}\t{LABELS[n % 3]}" for n in range(39)]
    write(path, "sentence1\tsentence2\tgold_label", *rows)
