"""Questions about Korean Wikipedia: passages with names, dates and numbers, several of them about the same thing.

REPOSITORIES/WordEmbedding/text is what WikiExtractor made of it (CC BY-SA 3.0; in 97danielj/WordEmbedding, of January
2023). KorQuAD asks about Wikipedia too, so every article that it has the title or half a sentence of is left out. Needs
kiwipiepy.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from munjang.data.writing import write_table
from munjang.errors import InputError
from recipes.models.asked import ASKED_ABOUT, SENTENCE, Asked, analysed, korean_query, write_asked
from recipes.models.sources import file, read_table

ARTICLE = re.compile(r'<doc id="\d+" url="[^"]*" title="(.*)">')
NOTHING = re.compile(r"\(\s*[,;]?\s*\)|(?<=\()\s*[,;]\s*")  # what was left of words in other scripts
BRACKETS = re.compile(r"\s*\([^()]*\)$")  # what tells two articles of one name apart
OTHERS = re.compile(r"[^0-9A-Za-z가-힣]+")
COUNT = 60_000
LENGTHS = range(340, 950)  # characters
PER_ARTICLE = range(3, 6)  # passages of one article: to be told apart
SHARED = 25  # letters in a row that two articles don't share by chance
NAMED = 0.5  # of the questions that don't name what the article is about


def encyclopaedia(folder: Path, data: Path) -> None:
    """Write DATA/text/ko-wiki.tsv: passages with the titles of their articles."""
    titles, known = _measured_on(data)
    random, found, dropped = np.random.default_rng(11), [], 0
    files = sorted(folder.glob("*/wiki_*"))
    for place in random.permutation(len(files)).tolist():
        for title, paragraphs in articles(files[place]):
            passages = passages_of(paragraphs)
            if len(passages) < PER_ARTICLE.start:
                continue
            if _bare(title) in titles or any(not known.isdisjoint(_runs(text)) for text in paragraphs):
                dropped += 1
                continue
            some = np.sort(random.permutation(len(passages))[: PER_ARTICLE.stop - 1]).tolist()
            found += [(title, passages[each]) for each in some]
        if len(found) >= COUNT:
            break
    if not found:
        raise InputError(f"{folder} holds no AA/wiki_00 and the like with articles, as WikiExtractor writes them.")
    columns = list(zip(*found, strict=True))
    write_table(data / "text/ko-wiki.tsv", {"title": list(columns[0]), "text": list(columns[1])})
    print(f"{len(found):,} passages of {len(set(columns[0])):,} articles, {dropped:,} left out", flush=True)


def articles(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Titles with the paragraphs under them."""
    title = ""
    lines: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        begins = ARTICLE.fullmatch(line)
        if begins:
            title, lines = html.unescape(begins[1]), []
        elif line == "</doc>":
            yield title, [line for line in lines[1:] if line.endswith(".") and "다." in line]  # the first is the title
        elif line.strip():
            lines.append(" ".join(NOTHING.sub("", html.unescape(line)).split()))


def passages_of(paragraphs: list[str]) -> list[str]:
    """Paragraphs, short ones together with those that follow."""
    found, open_ = [], ""
    for text in paragraphs:
        open_ = f"{open_} {text}".strip()
        if len(open_) >= LENGTHS.start:
            if len(open_) < LENGTHS.stop:
                found.append(open_)
            open_ = ""
    return found


def wiki(data: Path, out: Path) -> None:
    """Questions with the passages they were made from, as a table."""
    random = np.random.default_rng(12)
    table = read_table(file(data, "text/ko-wiki"), ("title", "text"))
    chosen = []
    for title, passage in zip(table["title"], table["text"], strict=True):
        good = [each.strip() for each in SENTENCE.findall(passage) if len(each.strip()) in ASKED_ABOUT]
        if good:
            chosen.append((BRACKETS.sub("", title), passage, good[int(random.integers(len(good)))]))
    morphemes = analysed([sentence for *_, sentence in chosen])

    def pairs() -> Iterator[Asked]:
        for (title, passage, _), tokens in zip(chosen, morphemes, strict=True):
            query = korean_query(tokens, random)
            if query and title not in query and random.random() < NAMED:
                query = f"{title}{_topic(title) if query.endswith('?') else ''} {query}"
            yield query, passage

    print(f"{write_asked('wiki', pairs(), out):,} of {len(chosen):,} passages have a question", flush=True)


def _topic(word: str) -> str:
    """The particle that says what it is about: 은 behind a syllable that ends with a consonant."""
    last = word[-1:]
    return "은" if "가" <= last <= "힣" and (ord(last) - ord("가")) % 28 else "는"


def _measured_on(data: Path) -> tuple[set[str], set[str]]:
    """Titles of KorQuAD's passages and what stands in them, letters alone."""
    table = read_table(file(data, "retrieval/korquad/corpus"), ("title", "text"))
    return set(map(_bare, table["title"])), {each for text in table["text"] for each in _runs(text)}


def _runs(text: str) -> Iterator[str]:
    """Every so many letters in a row."""
    bare = _bare(text)
    return (bare[start : start + SHARED] for start in range(len(bare) - SHARED + 1))


def _bare(text: str) -> str:
    return OTHERS.sub("", text.replace("_", " "))
