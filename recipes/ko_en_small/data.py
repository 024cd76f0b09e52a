"""What ko-en-small learns from and is measured on. Rows that share a sentence with a reported set are dropped."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.data.reading import drop_overlap, read_examples

# Sets on which a score is reported; no training row may share a sentence with them
REPORTED_STS = ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sick-dev", "sts12", "sts13", "sts14")
MAX_BIBLE = 4000  # of 31,078 verses: their language is not that of today


@dataclass(frozen=True)
class Sets:
    """Training data by what it teaches."""

    sts: list[Examples]
    triplets: list[Examples]
    translations: list[Examples]
    questions: list[Examples]

    def __str__(self) -> str:
        kinds = ("sts", "triplets", "translations", "questions")
        return "\n".join(
            f"{kind}: {', '.join(f'{each.name} {len(each):,}' for each in getattr(self, kind))}" for kind in kinds
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


def read(data: Path, max_docs: int = 200_000, seed: int = 1) -> Sets:
    """All of it, cleaned."""
    avoid = reported(data)

    def clean(examples: Examples) -> Examples:
        return drop_overlap(examples, avoid)

    sts = [
        clean(scored(data, "sts/stsb-train", "STSb")),
        clean(scored(data, "sts/korsts-train", "KorSTS")),
        clean(scored(data, "sts/klue-sts-train", "KLUE-STS")),
        clean(replace(read_examples(file(data, "sts/sick-train"), target="scores", score_range=(1, 5)), name="SICK")),
        clean(crossed(data, "train")),
    ]
    english = read_examples(file(data, "triplets/nli-train"), num_texts=(3, 3))
    korean = triplets_of(clean(read_examples(file(data, "nli/klue-nli-train"), target="labels")))
    pairs = [clean(each) for each in translations(data, max_docs, seed)]
    return Sets(sts, [clean(english), korean], pairs, [clean(each) for each in questions(data)])


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
    scores = None if parts[0].scores is None else np.concatenate([part.scores for part in parts])  # type: ignore[misc]
    return Examples(name, texts, parts[0].columns, scores=scores)


def translations(data: Path, max_docs: int, seed: int) -> list[Examples]:
    """English with Korean: everyday text, and a part of the documentation that people have translated."""
    random = np.random.default_rng(seed)
    general = read_table(file(data, "parallel/en-ko-general"), ("en", "ko", "source"))
    is_bible = np.array([source.startswith("bible") for source in general["source"]])
    bible = random.permutation(np.flatnonzero(is_bible))[:MAX_BIBLE]
    rows = np.sort(np.concatenate([np.flatnonzero(~is_bible), bible]))
    docs = read_table(file(data, "parallel/en-ko-docs"), ("en", "ko", "kind"))
    human = np.flatnonzero(np.array([kind == "HT" for kind in docs["kind"]]))
    human = np.sort(random.permutation(human)[:max_docs])
    return [
        once(Examples("translations", (_take(general["en"], rows), _take(general["ko"], rows)), ("en", "ko"))),
        once(Examples("documentation", (_take(docs["en"], human), _take(docs["ko"], human)), ("en", "ko"))),
    ]


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


def _take(column: list[str], rows: np.ndarray) -> list[str]:
    return [column[row] for row in rows.tolist()]
