"""Stage 1: questions with the passages that answer them, from every source, and a part kept back to choose settings on.

WORK/pairs/<source>.tsv has the training rows, WORK/dev/<source>/ a retrieval set of held-out questions among all
passages of their source. Nothing of the sets that figures are reported on is in either.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import TypeAlias

from benchmarks.korean_pages import build
from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.writing import columns_of, write_table
from munjang.text.sentences import split
from recipes.models import across
from recipes.models.asked import asked
from recipes.models.gathered import gathered
from recipes.models.medicine import medicine
from recipes.models.pages import pages
from recipes.models.sources import crossed, everyday, file, questions, read_table, reported
from recipes.models.translated import translate
from recipes.models.wiki import wiki

Pair: TypeAlias = tuple[str, str]
Read: TypeAlias = Callable[[Path], Iterator[Pair]]  # from the data folder
MAX_QUERY, MAX_PASSAGE = 400, 1800  # characters
NUM_DEV = 200  # questions of a source, at most
MAX_DEV_CORPUS = 5000
MAX_DECISIONS, MAX_DECISION = 30_000, 700  # rows, characters
MAX_SENTENCES = 20_000  # pairs of a source
MAX_TYPICAL_SENTENCES, MAX_TYPICAL_OF_A_COLUMN = 12_000, 200
LAST = "sentences.tsv"  # what `collect` writes at its end
SCORED, INFERRED = ("stsb", "korsts", "klue-sts"), ("snli", "mnli", "klue-nli")
SEED = 29


@dataclass(frozen=True)
class Source:
    """Where pairs come from, how many of them train, and whether some are kept back."""

    read: Read
    max_rows: int
    has_dev: bool = False
    trains: bool = True  # False: only a dev set
    held_by: int = 0  # the column that decides what is kept back: 0 the question, 1 the passage, where sources share it


def _columns(name: str, query: str, passage: str) -> Read:
    def read(data: Path) -> Iterator[Pair]:
        table = read_table(file(data, name), (query, passage))
        yield from zip(table[query], table[passage], strict=True)

    return read


def _made(make: Callable[[Path, Path], None]) -> Read:
    """Questions that nobody asked, made from sentences of their passages."""

    def read(data: Path) -> Iterator[Pair]:
        with TemporaryDirectory() as folder:
            make(data, Path(folder) / "made.tsv")
            table = read_table(Path(folder) / "made.tsv", ("query", "passage"))
        yield from zip(table["query"], table["passage"], strict=True)

    return read


def precedents(data: Path) -> Iterator[Pair]:
    """Questions of law with their holdings, but none of the pages that results are reported on."""
    pages = build(data)
    measured = {*pages.corpus.values(), *pages.queries.values()}
    yield from (
        pair for pair in _columns("qa/korean-precedents", "question", "passage")(data) if not measured & {*pair}
    )


def _entailed(name: str) -> Read:
    """Pair a sentence with what follows from it: other words, the same content."""

    def read(data: Path) -> Iterator[Pair]:
        nli = drop_overlap(read_examples(file(data, name), target="labels"), reported(data))
        follows = triplets_of(nli)
        yield from zip(follows.texts[1], follows.texts[0], strict=True)

    return read


def _duplicates(title: str) -> Read:
    def read(data: Path) -> Iterator[Pair]:
        pairs = next(each for each in questions(data) if each.name == title)
        yield from zip(*pairs.texts, strict=True)

    return read


def _answers(data: Path) -> Iterator[Pair]:
    """Sentences that answer a question of WikiQA."""
    pairs = questions(data)[-1]
    yield from zip(*pairs.texts, strict=True)


def _sentences_of_abstracts(data: Path) -> Iterator[Pair]:
    """Sentences of abstracts with the rest of the abstract; none of those whose title is held out."""
    choice = random.Random(SEED)
    for name in ("qa/arxiv", "qa/scitldr"):
        for title, abstract in _columns(name, "query", "passage")(data):
            parts = split(abstract)
            if is_held(title) or len(parts) < 4:
                continue
            for at in choice.sample(range(len(parts)), 2):
                yield parts[at], " ".join(part for place, part in enumerate(parts) if place != at)


SOURCES = {
    "precedents": Source(precedents, 10_000, has_dev=True),
    "boolq": Source(_columns("qa/korean-boolq", "question", "passage"), 4000, has_dev=True),
    "wiki": Source(_made(wiki), 9000, has_dev=True),
    "asked": Source(_made(asked), 8000),
    "gathered": Source(_made(gathered), 8000),
    "pages": Source(_made(pages), 6000, has_dev=True, trains=False),
    "medquad": Source(_columns("qa/medquad", "question", "answer"), 10_000, has_dev=True, held_by=1),
    "medicine": Source(medicine, 8000, has_dev=True, held_by=1),
    "wikiqa": Source(_answers, 2000, has_dev=True),
    "arxiv": Source(_columns("qa/arxiv", "query", "passage"), 3000, has_dev=True),
    "scitldr": Source(_columns("qa/scitldr", "query", "passage"), 2000, has_dev=True),
    "abstracts": Source(_sentences_of_abstracts, 8000),
    "snli": Source(_entailed("nli/snli-train"), 10_000),
    "klue-nli": Source(_entailed("nli/klue-nli-train"), 6000),
    "quora": Source(_duplicates("Quora"), 3000),
    "korean-questions": Source(_duplicates("Korean questions"), 2000),
}


UNITS: dict[str, tuple[Callable[[Path], Iterator[across.Unit]], int]] = {
    "across-documents": (across.documents, 12_000),
    "across-headings": (across.headings, 6000),
    "across-sentences": (across.sentences, 12_000),
    "across-gathered": (across.gathered, 8000),
}
TRANSLATED = ("wikiqa-ko-en", "boolq-en-ko")  # dev sets whose questions are there in the other language


def collect(data: Path, work: Path) -> None:
    """Write the training pairs and the dev set of every source."""
    (work / "pairs").mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        cut = ((_cut(query, MAX_QUERY), _cut(passage, MAX_PASSAGE)) for query, passage in source.read(data))
        pairs = list(dict.fromkeys(pair for pair in cut if all(pair)))
        random.Random(SEED).shuffle(pairs)
        held = [pair for pair in pairs if source.has_dev and is_held(pair[source.held_by])]
        train = [pair for pair in pairs if not (source.has_dev and is_held(pair[source.held_by]))][: source.max_rows]
        if source.trains:
            columns = list(zip(*train, strict=True))
            write_table(work / f"pairs/{name}.tsv", {"query": columns[0], "passage": columns[1]})
        if held:
            _write_dev(work / "dev" / name, held, [passage for _, passage in train])
        print(f"{name}: {len(train):,} pairs, {min(len(held), NUM_DEV):,} held-out questions", flush=True)
    for name, (read, max_rows) in UNITS.items():
        units = across.clean(data, [_cut_unit(unit) for unit in read(data)])
        random.Random(SEED).shuffle(units)
        held_units = [unit for unit in units if is_held(unit[0])]
        kept = [unit for unit in units if not is_held(unit[0])][:max_rows]
        columns = list(zip(*kept, strict=True))
        write_table(work / f"pairs/{name}.tsv", dict(zip(across.COLUMNS, columns, strict=True)))
        others = [unit[2 + at % 2] for at, unit in enumerate(kept)]
        for asked_in, answered_in in (("ko", "en"), ("en", "ko")):
            query, passage = (
                across.COLUMNS.index(f"{kind}_{of}") for kind, of in (("query", asked_in), ("passage", answered_in))
            )
            pairs = [(unit[query], unit[passage]) for unit in held_units]
            if pairs:
                _write_dev(work / "dev" / f"{name}-{asked_in}-{answered_in}", pairs, others)
        print(f"{name}: {len(kept):,} units, {len(held_units):,} held out", flush=True)
    write_table(work / "decisions.tsv", columns_of(decisions(data)))
    if (data / "retrieval/cisi").is_dir():  # queries of a kind that is not trained on
        copytree(data / "retrieval/cisi", work / "dev/cisi", dirs_exist_ok=True)
    for name in TRANSLATED:
        if (source_set := work / "dev" / name.split("-")[0]).is_dir():
            print(f"{name}: {translate(source_set, name, work / 'dev' / name):,} questions", flush=True)
    write_table(work / LAST, columns_of(sentences(data)))


def decisions(data: Path) -> Examples:
    """Return questions of law with their holdings, more than lists are made of, for the encoder."""
    cut = ((_cut(query, MAX_QUERY), _cut(passage, MAX_DECISION)) for query, passage in precedents(data))
    pairs = [pair for pair in dict.fromkeys(cut) if all(pair) and not is_held(pair[0])]
    random.Random(SEED + 1).shuffle(pairs)
    return Examples("decisions", tuple(map(list, zip(*pairs[:MAX_DECISIONS], strict=True))), ("query", "passage"))


def sentences(data: Path) -> Examples:
    """Return pairs of sentences, close ones and others, in both languages and across; none that is measured on."""
    scored_pairs = [read_examples(file(data, f"sts/{name}-train"), texts=("sentence1", "sentence2")) for name in SCORED]
    inferred = [read_examples(file(data, f"nli/{name}-train"), texts=("premise", "hypothesis")) for name in INFERRED]
    translated = Examples("translated", everyday(data), ("en", "ko"))
    asked_twice = read_examples(file(data, "paraphrase/quora"), texts=("question1", "question2"))
    parts = [*scored_pairs, crossed(data, "train"), *inferred, translated, asked_twice]
    measured = reported(data)
    kept = [drop_overlap(Examples(each.name, each.texts, ("first", "second")), measured) for each in parts]
    pairs = [pair for each in kept for pair in list(zip(*each.texts, strict=True))[:MAX_SENTENCES] if all(pair)]
    random.Random(SEED).shuffle(pairs)
    return Examples("sentences", tuple(map(list, zip(*pairs, strict=True))), ("first", "second"))


def typical(work: Path) -> list[str]:
    """Return texts of all tables, sentences for the most part, as the shipped encoder's rounding and ranges need."""
    random_ = random.Random(SEED)
    texts = _some(read_table(work / LAST, ("first",))["first"], MAX_TYPICAL_SENTENCES, random_)
    for path in sorted((work / "pairs").glob("*.tsv*")):
        columns = across.COLUMNS if across.is_across(path) else ("query", "passage")
        for column in read_table(path, columns).values():
            texts += [text[:MAX_DECISION] for text in _some(column, MAX_TYPICAL_OF_A_COLUMN, random_)]
    random_.shuffle(texts)
    return texts


def _some(texts: list[str], count: int, random_: random.Random) -> list[str]:
    distinct = list(dict.fromkeys(texts))
    return random_.sample(distinct, min(count, len(distinct)))


def is_held(query: str) -> bool:
    """Tell whether a question belongs to the dev sets; the same in every run."""
    return hashlib.blake2b(query.encode(), digest_size=1).digest()[0] < 12  # of 256


def _write_dev(folder: Path, held: list[Pair], others: list[str]) -> None:
    """Write questions among all passages that answer one, and others."""
    folder.mkdir(parents=True, exist_ok=True)
    queries = list(dict.fromkeys(query for query, _ in held))[:NUM_DEV]
    judged = [pair for pair in held if pair[0] in set(queries)]
    passages = list(dict.fromkeys([*(passage for _, passage in judged), *others]))[:MAX_DEV_CORPUS]
    number_of = {text: str(at) for at, text in enumerate(passages)}
    write_table(folder / "corpus.tsv", {"id": list(number_of.values()), "text": passages})
    write_table(folder / "queries.tsv", {"id": [f"q{at}" for at in range(len(queries))], "text": queries})
    ids = [(f"q{queries.index(query)}", number_of[passage]) for query, passage in judged]
    columns = {"query-id": [query for query, _ in ids], "corpus-id": [number for _, number in ids]}
    write_table(folder / "qrels.tsv", {**columns, "score": [1] * len(ids)})


def _cut(text: str, limit: int) -> str:
    return " ".join(text[:limit].split())


def _cut_unit(unit: across.Unit) -> across.Unit:
    return (
        _cut(unit[0], MAX_QUERY),
        _cut(unit[1], MAX_QUERY),
        _cut(unit[2], MAX_PASSAGE),
        _cut(unit[3], MAX_PASSAGE),
    )
