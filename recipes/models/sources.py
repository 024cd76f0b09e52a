"""Tables of the data folder, and the sentences of reported sets, which no training row may share."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.data.tables import read_texts

# Sets on which a score is reported; no training row may share a sentence with them
REPORTED_STS = ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sick-dev", "sts12", "sts13", "sts14")


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


def _general(data: Path) -> dict[str, list[str]]:
    """Sentences that are not technical, with those of gather.py where they are."""
    columns = ("en", "ko", "source")
    general, more = read_table(file(data, "parallel/en-ko-general"), columns), file(data, "parallel/en-ko-more")
    if not more.exists():
        return general
    added = read_table(more, columns)
    return {column: [*general[column], *added[column]] for column in columns}


def documentation(data: Path) -> dict[str, list[str]]:
    """Sentences of technical documentation in the order of its pages."""
    return read_table(file(data, "parallel/en-ko-docs"), ("en", "ko", "kind", "source"))


def is_heading(docs: dict[str, list[str]], row: int) -> bool:
    """Two short lines that don't end as sentences do, with sentences under them."""
    ends = (".", "다", "요", "?", "!", ":")
    is_open = not docs["ko"][row].endswith(ends) and not docs["en"][row].endswith(ends)
    return is_open and 8 < len(docs["ko"][row]) < 50 and all(is_sentence(docs, row, row + k) for k in (1, 2))


def is_sentence(docs: dict[str, list[str]], heading: int, row: int) -> bool:
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


def is_korean(text: str) -> bool:
    """Tell whether most letters are Hangul."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum("가" <= letter <= "힣" for letter in letters) > len(letters)


def _take(column: list[str], rows: Iterable[int]) -> list[str]:
    return [column[row] for row in rows]
