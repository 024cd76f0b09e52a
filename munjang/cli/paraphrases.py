"""munjang paraphrases INPUT... -o OUT: find the most similar pairs of texts, within one set or between two.

munjang paraphrases questions.csv -o pairs.csv
munjang paraphrases questions.csv -o pairs.csv --max-pairs 1000 --html pairs.html
munjang paraphrases english.txt --others korean.txt --bitext -o translations.tsv
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli import corpus
from munjang.cli.options import option
from munjang.errors import InputError

if TYPE_CHECKING:
    from munjang.tasks.paraphrases.mining import Pairs

SUMMARY_KO = "가장 비슷한 글의 쌍이나 번역 쌍 찾기"


@dataclass(frozen=True, kw_only=True)
class Options(corpus.CorpusOptions):
    """Options of `munjang paraphrases`."""

    others: tuple[str, ...] = option(
        "files of a second set: find pairs between the two sets (default: within one)", default=()
    )
    other_vectors: str | None = option("vectors of the second set (with --vectors)", default=None)
    bitext: bool = option("find translations between two languages by margin score", default=False)
    max_pairs: int = option("write at most this many pairs, best first", default=100_000)
    min_score: float | None = option("write only pairs with at least this score", default=None)
    max_neighbours: int | None = option(
        "keep a pair only if one text is among this many nearest of the other", default=None
    )
    is_exact: bool | None = option("compare every pair (default: up to several hundred thousand texts)", default=None)


def run(options: Options) -> int:
    """Read the texts, encode them, find the pairs, write them."""
    corpus.check_outputs(options, options.output)
    if options.bitext and not options.others:
        raise InputError("--bitext needs --others, the texts of the other language")
    if options.bitext:
        corpus.check_unused(options, "with --bitext", "max_neighbours", "is_exact")
    if options.max_pairs < 1:
        raise InputError(f"--max-pairs must be at least 1, not {options.max_pairs}")
    if (options.other_vectors is None) != (options.vectors is None or not options.others):
        raise InputError("--vectors and --other-vectors go together: one for the inputs, one for --others")
    texts = corpus.read_corpus(options, options.inputs)
    others = corpus.read_corpus(options, options.others) if options.others else None
    from munjang.data.writing import check_texts, write_table

    second = texts if others is None else others
    check_texts(Path(options.output), [*texts, *(others or ())])
    found = _pairs(options, texts, others)
    table = {
        "score": found.scores_P.tolist(),
        "row_1": found.first_P.tolist(),
        "row_2": found.second_P.tolist(),
        "text_1": [texts[row] for row in found.first_P.tolist()],
        "text_2": [second[row] for row in found.second_P.tolist()],
    }
    write_table(Path(options.output), table)
    if options.html is not None:
        from munjang.tasks.paraphrases.page import pairs_page

        corpus.write_page(options.html, pairs_page(found, texts, second))
    corpus.say(options, f"{len(found):,} pairs in {options.output}")
    return 0


def _pairs(options: Options, texts: list[str], others: list[str] | None) -> "Pairs":
    from munjang.tasks.paraphrases.mining import Pairs, paraphrases
    from munjang.tasks.paraphrases.translations import bitext

    progress = not options.quiet
    model = corpus.load_model(options)
    a = corpus.corpus_vectors(options, texts, options.vectors, model)
    b = None if others is None else corpus.corpus_vectors(options, others, options.other_vectors, model)
    if options.bitext:
        found = bitext(a, b, min_score=options.min_score, device=options.device, progress=progress)
        best = slice(options.max_pairs)
        return Pairs(found.scores_P[best], found.first_P[best], found.second_P[best])
    return paraphrases(
        a,
        b,
        max_pairs=options.max_pairs,
        min_score=options.min_score,
        max_neighbours=options.max_neighbours,
        is_exact=options.is_exact,
        device=options.device,
        progress=progress,
    )
