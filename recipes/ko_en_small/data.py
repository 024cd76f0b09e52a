"""Data that ko-en-small learns from and is measured on. Rows that share a sentence with a reported set are dropped."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.tables import read_texts

# Sets on which a score is reported; no training row may share a sentence with them
REPORTED_STS = ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sick-dev", "sts12", "sts13", "sts14")
LANGUAGES = (("ko", "ko"), ("ko", "en"), ("en", "ko"), ("en", "en"), ("ko", "ko"))  # of a query and its passage
# SICK is not for commercial use: it is only measured on
NUM_HELD_OUT = 500
WHOLE = ("bills", "wiki")  # where bills.py and wiki.py were run
MADE = ("asked", "gathered", *WHOLE)  # questions from sentences of their passages
ALONE = ("gathered", *WHOLE)  # a batch of their own in every update
MAX_BIBLE = 8000  # of 31,078 verses: their language is not that of today


@dataclass(frozen=True)
class Sets:
    """Training data by what it teaches."""

    sts: list[Examples]
    triplets: list[Examples]
    translations: list[Examples]
    questions: list[Examples]
    passages: list[Examples]  # sentences and headings with the passage they are from, in both languages
    english: list[Examples]  # texts alone
    korean: list[Examples]

    @property
    def documents(self) -> list[Examples]:
        """Passages of documentation."""
        return [each for each in self.passages if each.name not in ALONE]

    @property
    def alone(self) -> list[Examples]:
        """Other passages."""
        return [each for each in self.passages if each.name in ALONE]

    def __str__(self) -> str:
        return "\n".join(
            f"{kind.name}: {', '.join(f'{each.name} {len(each):,}' for each in getattr(self, kind.name))}"
            for kind in fields(self)
        )


def file(data: Path, name: str) -> Path:
    """A table of the data folder, compressed or not."""
    found = [path for path in (data / f"{name}.tsv", data / f"{name}.tsv.xz") if path.exists()]
    return found[0] if found else data / f"{name}.tsv"


def reported(data: Path) -> list[Examples]:
    """All sentences that must not be trained on."""
    sets = [read_examples(file(data, f"sts/{name}"), texts=("sentence1", "sentence2")) for name in REPORTED_STS]
    crossed = read_examples(
        file(data, "sts/stsb-en-ko-dev"), texts=("sentence1_en", "sentence2_en", "sentence1_ko", "sentence2_ko")
    )
    return [*sets, crossed, read_examples(file(data, "nli/xnli-ko-dev"), texts=("premise", "hypothesis"))]


def read(data: Path, made: Path | None = None, max_docs: int = 240_000, seed: int = 1) -> Sets:
    """All of it, cleaned; `made` is the folder of questions that were made from sentences."""
    avoid = reported(data)

    def clean(examples: Examples) -> Examples:
        return drop_overlap(examples, avoid)

    stsb = [scored(data, "sts/stsb-train", "STSb"), scored(data, "sts/korsts-train", "KorSTS"), crossed(data, "train")]
    sts = [
        joined("STSb in both languages", [clean(each) for each in stsb]),
        clean(scored(data, "sts/klue-sts-train", "KLUE-STS")),
    ]
    english = read_examples(file(data, "triplets/nli-train"), num_texts=(3, 3))
    korean = triplets_of(clean(read_examples(file(data, "nli/klue-nli-train"), target="labels")))
    pairs = [clean(each) for each in translations(data, max_docs, seed)]
    found = [clean(each) for each in questions(data)]
    passages = [clean(each) for each in (passages_of(data, 30_000, seed), headings_of(data, seed))]
    for name in MADE if made is not None else ():
        assert made is not None
        if name in WHOLE and not (made / f"{name}.tsv").exists():
            continue
        pairs_made = read_examples(made / f"{name}.tsv", texts=("query", "passage"))
        passages.append(clean(replace(pairs_made, name=name)))
    found, passages = without_held_out(found), without_held_out(passages)
    alone = [clean(each) for each in (alone_of(data, "en-sentences", 100_000), alone_of(data, "ko-reviews", 30_000))]
    premises = alone_examples("KLUE premises", korean.texts[0])
    return Sets(sts, [clean(english), korean], pairs, found, passages, alone[:1], [alone[1], premises])


def without_held_out(parts: list[Examples]) -> list[Examples]:
    """Leave out about NUM_HELD_OUT rows of each, on which weights of mixes were chosen."""
    rows = [np.arange(len(part)) % max(len(part) // NUM_HELD_OUT, 2) != 0 for part in parts]
    return [part.take(np.flatnonzero(is_left).tolist()) for part, is_left in zip(parts, rows, strict=True)]


def scored(data: Path, name: str, title: str) -> Examples:
    """Pairs with a similarity of 0 to 5."""
    return replace(read_examples(file(data, name), target="scores", score_range=(0, 5)), name=title)


def crossed(data: Path, part: str) -> Examples:
    """An English sentence with a Korean one, both ways round."""
    source = file(data, f"sts/stsb-en-ko-{part}")
    sides = [
        read_examples(source, texts=columns, target="scores", score_range=(0, 5))
        for columns in (("sentence1_en", "sentence2_ko"), ("sentence1_ko", "sentence2_en"))
    ]
    return joined(f"STSb English-Korean {part}", sides)


def joined(name: str, parts: list[Examples]) -> Examples:
    """Rows of several tables as one."""
    texts = tuple([text for part in parts for text in part.texts[column]] for column in range(len(parts[0].texts)))
    scores = None if parts[0].scores is None else np.concatenate([part.scores for part in parts])
    return Examples(name, texts, parts[0].columns, scores=scores)


def everyday(data: Path) -> tuple[list[str], list[str]]:
    """English and Korean of the general rows, without the Bible's."""
    general = _general(data)
    rows = [row for row, source in enumerate(general["source"]) if not source.startswith("bible")]
    return _take(general["en"], rows), _take(general["ko"], rows)


def documented(data: Path, count: int, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """English and Korean of the documentation: sentences that people have translated, neither short nor long."""
    docs = read_table(file(data, "parallel/en-ko-docs"), ("en", "ko", "kind"))
    human = [row for row, kind in enumerate(docs["kind"]) if kind == "HT" and 30 < len(docs["en"][row]) < 200]
    rows = random.permutation(human)[:count].tolist()
    return _take(docs["en"], rows), _take(docs["ko"], rows)


def translations(data: Path, max_docs: int, seed: int) -> list[Examples]:
    """English with Korean: everyday text, and a part of the documentation that people have translated."""
    random = np.random.default_rng(seed)
    general = _general(data)
    is_bible = np.array([source.startswith("bible") for source in general["source"]])
    bible = random.permutation(np.flatnonzero(is_bible))[:MAX_BIBLE]
    rows = np.sort(np.concatenate([np.flatnonzero(~is_bible), bible]))
    docs = read_table(file(data, "parallel/en-ko-docs"), ("en", "ko", "kind"))
    human = np.flatnonzero(np.array([kind == "HT" for kind in docs["kind"]]))
    human = np.sort(random.permutation(human)[:max_docs])
    parts = (("translations", general, rows.tolist()), ("documentation", docs, human.tolist()))
    return [
        once(Examples(name, (_take(table["en"], chosen), _take(table["ko"], chosen)), ("en", "ko")))
        for name, table, chosen in parts
    ]


def _general(data: Path) -> dict[str, list[str]]:
    """Sentences that are not technical, with those of more.py where they are."""
    columns = ("en", "ko", "source")
    general, more = read_table(file(data, "parallel/en-ko-general"), columns), file(data, "parallel/en-ko-more")
    if not more.exists():
        return general
    added = read_table(more, columns)
    return {column: [*general[column], *added[column]] for column in columns}


def headlines(data: Path) -> list[str]:
    """Read headlines of Korean news, where more.py has put them."""
    path = file(data, "text/ko-headlines")
    return list(read_examples(path, texts=("text",)).texts[0]) if path.exists() else []


def passages_of(data: Path, count: int, seed: int) -> Examples:
    """A sentence of the documentation with the passage around it, each in either language.

    Half of the passages no longer hold the sentence: to find them takes more than its words.
    """
    random = np.random.default_rng(seed)
    docs = documentation(data)
    is_good = np.array([kind == "HT" for kind in docs["kind"]])
    source = np.array(docs["source"])
    starts = np.arange(0, len(source) - 5, 5)
    whole = is_good[starts] & is_good[starts + 4] & (source[starts] == source[starts + 4])
    starts = np.sort(random.permutation(starts[whole])[:count])
    queries, found = [], []
    for start in starts.tolist():
        rows = range(start, start + 3 + int(random.integers(3)))
        asked = int(random.choice(rows))
        one, other = LANGUAGES[int(random.integers(len(LANGUAGES)))]
        kept = [row for row in rows if row != asked] if random.random() < 0.5 else rows
        queries.append(docs[one][asked])
        found.append(" ".join(docs[other][row] for row in kept))
    return once(Examples("passages", (queries, found), ("query", "passage")))


def headings_of(data: Path, seed: int) -> Examples:
    """Headings of the documentation with the passage under them: what comes nearest to questions in Korean here."""
    random = np.random.default_rng(seed)
    docs = documentation(data)
    queries, found = [], []
    for row in range(len(docs["en"]) - 4):
        if not _is_heading(docs, row):
            continue
        below = [row + 1, row + 2]
        while len(below) < 4 and _is_sentence(docs, row, below[-1] + 1):
            below.append(below[-1] + 1)
        for place in random.permutation(len(LANGUAGES))[:2].tolist():
            one, other = LANGUAGES[place]
            queries.append(docs[one][row])
            found.append(" ".join(docs[other][each] for each in below))
    return once(Examples("headings", (queries, found), ("query", "passage")))


def documentation(data: Path) -> dict[str, list[str]]:
    """Sentences of technical documentation in the order of its pages."""
    return read_table(file(data, "parallel/en-ko-docs"), ("en", "ko", "kind", "source"))


def _is_heading(docs: dict[str, list[str]], row: int) -> bool:
    """Two short lines that don't end as sentences do, with sentences under them."""
    ends = (".", "다", "요", "?", "!", ":")
    is_open = not docs["ko"][row].endswith(ends) and not docs["en"][row].endswith(ends)
    return is_open and 8 < len(docs["ko"][row]) < 50 and all(_is_sentence(docs, row, row + k) for k in (1, 2))


def _is_sentence(docs: dict[str, list[str]], heading: int, row: int) -> bool:
    is_there = row < len(docs["ko"]) and docs["source"][row] == docs["source"][heading]
    return is_there and docs["ko"][row].endswith(".") and len(docs["ko"][row]) > 25


def alone_of(data: Path, name: str, count: int) -> Examples:
    """The first texts of a file."""
    found = [path for path in (data / f"text/{name}.txt", data / f"text/{name}.txt.xz") if path.exists()]
    lines = [line for line, _ in zip(read_texts(found[0]), range(count), strict=False)]
    return alone_examples(name, lines)


def alone_examples(name: str, texts: list[str]) -> Examples:
    """Each text once, and none of a word or two."""
    return Examples(name, ([text for text in dict.fromkeys(texts) if len(text) > 12],), ("text",))


def firsts(texts: list[str]) -> list[int]:
    """Places of texts that did not stand before."""
    first = dict(zip(reversed(texts), reversed(range(len(texts))), strict=True))
    return sorted(first.values())


def once(examples: Examples) -> Examples:
    """Rows of which no text stood in a row before: a frequent one would be alone in many batches without duplicates."""
    seen: set[str] = set()
    rows = []
    for row, texts in enumerate(zip(*examples.texts, strict=True)):
        if seen.isdisjoint(texts):
            rows.append(row)
        seen.update(texts)
    return examples.take(rows)


def read_table(path: Path, columns: tuple[str, ...]) -> dict[str, list[str]]:
    """Columns of a table as they are."""
    found = read_examples(path, texts=columns)
    return dict(zip(columns, found.texts, strict=True))


def questions(data: Path) -> list[Examples]:
    """Questions that ask the same, and questions with their answers."""
    found = []
    for name, title in (("paraphrase/quora", "Quora"), ("paraphrase/korean-questions", "Korean questions")):
        pairs = read_examples(file(data, name), target="labels")
        assert pairs.labels is not None
        same = pairs.take(np.flatnonzero(pairs.labels == 1))
        found.append(Examples(title, same.texts, same.columns))
    medquad = read_examples(file(data, "qa/medquad"), texts=("question", "answer"))
    answers = [text[:600] for text in medquad.texts[1]]
    found.append(Examples("MedQuAD", (medquad.texts[0], answers), ("question", "answer")))
    wiki = read_examples(file(data, "qa/wikiqa-train"), texts=("question", "sentence"), target="labels")
    assert wiki.labels is not None
    good = wiki.take(np.flatnonzero(wiki.labels == 1))
    return [*found, Examples("WikiQA", good.texts, good.columns)]


def _take(column: list[str], rows: Iterable[int]) -> list[str]:
    return [column[row] for row in rows]
