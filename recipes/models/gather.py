"""Tables made of files of public repositories, put beside the data folder.

    python -m recipes.models.gather REPOSITORIES DATA

REPOSITORIES is a folder with checkouts (or only the files that are read here); what is not there is left out, with a
word. DATA gets parallel/en-ko-more.tsv (32,000 translated sentences), text/ko-wiki.tsv, and what english.py writes.

| repository | files | licence |
|---|---|---|
| naver-ai/korean-safety-benchmarks | SQuARe, KoSBi (translated by machine) | MIT |
| jungyeul/korean-parallel-corpora | news (test), textbooks (eval) | CC BY-SA 3.0 |
| UniversalDependencies/UD_Korean-PUD | news, encyclopaedia | CC BY-SA 3.0 |
| matbahasa/TALPCo | textbooks | CC BY 4.0 |
| 97danielj/WordEmbedding | Korean Wikipedia of January 2023 by WikiExtractor | CC BY-SA 3.0 |
| tiagoft/NLP, gechhai/Topic_Discovery | titles and abstracts of arXiv | metadata are CC0 |
| allenai/scitldr | one-sentence summaries of abstracts | Apache 2.0 |
| pubmedqa/pubmedqa | questions that abstracts answer, for evaluation | MIT |
| kavinsan/Information-Retrieval-Project, Shakiba-Alipour/Information-Retrieval-on-CISI | CACM, CISI, for evaluation | |
"""

import argparse
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from munjang.data.writing import write_table
from munjang.errors import InputError
from recipes.models import english
from recipes.models.wiki import encyclopaedia

Pairs: TypeAlias = Iterator[tuple[str, str]]  # English, Korean

SAFETY = "korean-safety-benchmarks"
SQUARE = [f"{SAFETY}/data/SQuARe/question_{part}.json" for part in ("valid", "test", "test_ood")]
KOSBI = [f"{SAFETY}/data/KoSBi/kosbi_{part}.json" for part in ("valid", "test")]
PARALLEL = "korean-parallel-corpora"
WIKI = "WordEmbedding/text"


def gather(repositories: Path, data: Path) -> None:
    """Write the files."""
    found: dict[tuple[str, str], str] = {}
    for name, (paths, pairs) in SOURCES.items():
        missing = [path for path in paths if not (repositories / path).exists()]
        if missing:
            print(f"{name}: left out, {', '.join(missing)} is not there", flush=True)
            continue
        before = len(found)
        for in_english, korean in pairs([repositories / path for path in paths]):
            if in_english and korean:
                found.setdefault((_line(in_english), _line(korean)), name)
        print(f"{name}: {len(found) - before:,} pairs", flush=True)
    if not found:
        raise InputError(f"{repositories} holds none of the files; see python -m recipes.models.gather --help.")
    columns = list(zip(*found, strict=True))
    write_table(
        data / "parallel/en-ko-more.tsv",
        {"en": list(columns[0]), "ko": list(columns[1]), "source": list(found.values())},
    )
    if (repositories / WIKI).exists():
        encyclopaedia(repositories / WIKI, data)
    if (repositories / english.SCITLDR).exists():
        english.gather(repositories, data)


def _asked(paths: list[Path]) -> Pairs:
    for path in paths:
        for row in _json(path):
            yield row["question_en"], row["question"]


def _said(paths: list[Path]) -> Pairs:
    for path in paths:
        for row in _json(path):
            for column in ("context", "sentence"):
                yield row[f"{column}_en"], row[column]


def _archived(paths: list[Path]) -> Pairs:
    with tarfile.open(paths[0]) as archive:
        members = {Path(member.name).suffix: archive.extractfile(member) for member in archive if member.isfile()}
        english, korean = (
            file.read().decode().splitlines() for file in (members[".en"], members[".ko"]) if file is not None
        )
    yield from zip(english, korean, strict=True)


def _beside(paths: list[Path]) -> Pairs:
    yield from zip(*(path.read_text("utf-8").splitlines() for path in paths), strict=True)


def _numbered(paths: list[Path]) -> Pairs:
    english, korean = (
        dict(line.split("\t", 1) for line in path.read_text("utf-8").splitlines() if "\t" in line) for path in paths
    )
    yield from ((english[number], korean[number]) for number in english if number in korean)


def _treebank(paths: list[Path]) -> Pairs:
    korean = ""
    for line in paths[0].read_text("utf-8").splitlines():
        name, _, text = line.partition(" = ")
        if name == "# text":
            korean = text
        elif name == "# text_en":
            yield text, korean


def _json(path: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(path.read_text("utf-8"))
    return rows


def _line(text: str) -> str:
    return " ".join(text.split())


SOURCES: dict[str, tuple[list[str], Callable[[list[Path]], Pairs]]] = {
    "square": (SQUARE, _asked),
    "kosbi": (KOSBI, _said),
    "park-news-test": ([f"{PARALLEL}/korean-english-news-v1/korean-english-park.test.tar.gz"], _archived),
    "jhe-eval": ([f"{PARALLEL}/korean-english-jhe/jhe-koen-eval.{language}" for language in ("en", "ko")], _beside),
    "pud": (["UD_Korean-PUD/ko_pud-ud-test.conllu"], _treebank),
    "talpco": ([f"TALPCo/{language}/data_{language}.txt" for language in ("eng", "kor")], _numbered),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    gather(options.repositories, options.data)


if __name__ == "__main__":
    main()
