"""A data folder as recipes/models reads it, small and made up: every file, Korean and English sentences that
translate each other, scores by what two sentences have in common."""

import lzma
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

WHO = {"The cat": "고양이가", "A dog": "개가", "The teacher": "선생님이", "My friend": "친구가", "The doctor": "의사가"}
WHAT = {"an apple": "사과를", "the book": "책을", "a picture": "그림을", "the letter": "편지를", "some water": "물을"}
DOES = {"looks at": "본다", "finds": "찾는다", "sells": "판다", "buys": "산다", "hides": "숨긴다"}
WHERE = {"in Seoul": "서울에서", "at school": "학교에서", "near the river": "강가에서", "in the market": "시장에서"}
WHEN = {"today": "오늘", "at night": "밤에", "every morning": "아침마다", "in winter": "겨울에"}
PLACES = (WHO, WHAT, DOES, WHERE, WHEN)
SIZES = [len(each) for each in PLACES]
Row = tuple[int, ...]
SCORED = "sentence1 sentence2 score"
YEARS = (12, 13, 14)
LABELS = ("entailment", "neutral", "contradiction")


class Sentences:
    """Each is met once, so that sets share none."""

    def __init__(self) -> None:
        rows = list(product(*map(range, SIZES)))
        self.rows = iter([rows[place] for place in np.random.default_rng(1).permutation(len(rows))])
        self.random = np.random.default_rng(2)

    def take(self, count: int) -> list[Row]:
        return [next(self.rows) for _ in range(count)]

    def near(self, row: Row) -> Row:
        """Another that differs in some places; it may be met elsewhere too."""
        is_kept = self.random.random(len(row)) < self.random.random()
        drawn = [int(self.random.integers(size)) for size in SIZES]
        return tuple(old if kept else new for old, new, kept in zip(row, drawn, is_kept, strict=True))


def english(row: Row) -> str:
    who, what, does, where, when = (list(each)[at] for each, at in zip(PLACES, row, strict=True))
    return f"{who} {does} {what} {where} {when}."


def korean(row: Row) -> str:
    who, what, does, where, when = (list(each.values())[at] for each, at in zip(PLACES, row, strict=True))
    return f"{when} {who} {where} {what} {does}."


def score(one: Row, other: Row) -> str:
    """From 1 to 5, as all of the sets allow."""
    return f"{max(sum(a == b for a, b in zip(one, other, strict=True)), 1):.1f}"


def write(folder: Path) -> Path:
    """All files of the recipe."""
    made = Sentences()
    _similarity(folder, made)
    _inference(folder, made)
    _translations(folder, made)
    _questions(folder, made)
    _retrieval(folder, made)
    for name, write_one in (("en-sentences", english), ("ko-reviews", korean)):
        _write(folder / f"text/{name}.txt.xz", [write_one(row) for row in made.take(120)])
    return folder


def _similarity(folder: Path, made: Sentences) -> None:
    for part, count in (("train", 60), ("dev", 30), ("test", 30)):
        pairs = [(row, made.near(row)) for row in made.take(count)]
        for name, say in (("stsb", english), ("korsts", korean)):
            _table(folder / f"sts/{name}-{part}.tsv", SCORED, ((say(a), say(b), score(a, b)) for a, b in pairs))
        both = ((english(a), english(b), korean(a), korean(b), score(a, b)) for a, b in pairs)
        columns = "sentence1_en sentence2_en sentence1_ko sentence2_ko score"
        _table(folder / f"sts/stsb-en-ko-{part}.tsv", columns, both)
    for name, say in (
        ("klue-sts-train.tsv.xz", korean),
        ("sick-dev.tsv", english),
        *((f"sts{n}.tsv", english) for n in YEARS),
    ):
        pairs = [(row, made.near(row)) for row in made.take(40)]
        _table(folder / "sts" / name, SCORED, ((say(a), say(b), score(a, b)) for a, b in pairs))


def _inference(folder: Path, made: Sentences) -> None:
    for name, say in (
        ("snli-train", english),
        ("mnli-train", english),
        ("klue-nli-train", korean),
        ("klue-nli-dev", korean),
        ("xnli-ko-dev", korean),
    ):
        rows = [(say(row), say(made.near(row)), label) for row in made.take(20) for label in LABELS]
        _table(folder / f"nli/{name}.tsv.xz", "premise hypothesis label", rows)
    rows = [(english(row), english(made.near(row)), english(made.near(row))) for row in made.take(40)]
    _table(folder / "triplets/nli-train.tsv.xz", "anchor positive negative", rows)


def _translations(folder: Path, made: Sentences) -> None:
    sources = ["bible-bbe", "tatoeba-anki", "park-news-dev"]
    rows = [(english(row), korean(row), sources[place % 3]) for place, row in enumerate(made.take(90))]
    _table(folder / "parallel/en-ko-general.tsv.xz", "en ko source", rows)
    docs = []
    for place, row in enumerate(made.take(320)):
        page = f"page{place // 40}"
        if place % 8 == 0:
            docs.append((f"About things number {place}", f"여러 가지 물건 이야기 {place}", "HT", page))
        docs.append((f"As it says here, {english(row)}", f"이 설명서에 따르면 {korean(row)}", "HT", page))
    _table(folder / "parallel/en-ko-docs.tsv.xz", "en ko kind source", docs)


def _questions(folder: Path, made: Sentences) -> None:
    pairs = "question1 question2 is_duplicate"
    for name, say in (("quora.tsv.xz", english), ("korean-questions.tsv", korean)):
        rows = [(say(row), say(made.near(row)), str(place % 2)) for place, row in enumerate(made.take(60))]
        _table(folder / "paraphrase" / name, pairs, rows)
    rows = [(f"What is it? {english(row)}", f"{english(made.near(row))} {english(row)}", "it") for row in made.take(40)]
    _table(folder / "qa/medquad.tsv.xz", "question answer focus", rows)
    rows = [(english(row), english(made.near(row)), str(place % 2)) for place, row in enumerate(made.take(40))]
    _table(folder / "qa/wikiqa-train.tsv.xz", "question sentence is_answer", rows)


def _retrieval(folder: Path, made: Sentences) -> None:
    for name, say in (("korquad", korean), ("cranfield", english)):
        rows, target = made.take(30), folder / "retrieval" / name
        _table(target / "corpus.tsv.xz", "id text", ((f"d{n}", say(row)) for n, row in enumerate(rows)))
        _table(target / "queries.tsv", "id text", ((f"q{n}", say(made.near(row))) for n, row in enumerate(rows)))
        _table(target / "qrels.tsv", "query_id corpus_id score", ((f"q{n}", f"d{n}", "1") for n in range(len(rows))))
    labelled = ((english(row), str(row[1])) for row in made.take(60))
    _table(folder / "clustering/stackoverflow.tsv.xz", "text label", labelled)


def _table(path: Path, columns: str, rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> None:
    _write(path, ["\t".join(columns.split()), *("\t".join(row) for row in rows)])


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)
