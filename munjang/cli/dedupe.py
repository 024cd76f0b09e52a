"""munjang dedupe INPUT... -o OUT: drop texts that repeat others; --report lists what was dropped and why.

munjang dedupe reviews.txt -o distinct.csv
munjang dedupe reviews.txt -o distinct.csv --report dropped.csv --threshold 0.9 --keep longest
munjang dedupe test.csv --reference train.csv -o clean-test.csv --report leaks.csv
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from munjang.cli import corpus
from munjang.cli.options import option
from munjang.errors import InputError

if TYPE_CHECKING:
    from munjang.tasks.dedupe.deduplication import Deduplicated

SUMMARY_KO = "같은 말을 하는 글을 빼고 이유 남기기"


@dataclass(frozen=True, kw_only=True)
class Options(corpus.CorpusOptions):
    """Options of `munjang dedupe`."""

    reference: tuple[str, ...] = option("also drop texts found in these files, such as a training set", default=())
    reference_vectors: str | None = option("vectors of the reference (with --vectors)", default=None)
    threshold: float = option("smallest cosine at which two texts are duplicates", default=0.95)
    equal_only: bool = option(
        "drop only texts that are equal except for case and white space; needs no model", default=False
    )
    keep: Literal["first", "longest", "central"] = option(
        "which text of a group of duplicates to keep", default="first"
    )
    report: str | None = option("write what was dropped and why: .csv, .tsv, .jsonl or .parquet", default=None)
    is_exact: bool | None = option("compare every pair (default: up to several hundred thousand texts)", default=None)


def run(options: Options) -> int:
    """Read, encode, drop, write."""
    corpus.check_outputs(options, options.output, options.report)
    if options.equal_only:
        unused = ("threshold", "vectors", "reference_vectors", "is_exact", "model", "device", "dtype", "threads")
        corpus.check_unused(options, "with --equal-only", *unused)
    if (options.reference_vectors is None) != (options.vectors is None or not options.reference):
        raise InputError("--vectors and --reference-vectors go together: one for the inputs, one for --reference")
    texts = corpus.read_corpus(options, options.inputs)
    known = corpus.read_corpus(options, options.reference) if options.reference else []
    from munjang.data.writing import check_texts, write_table

    check_texts(Path(options.output), texts)
    if options.report is not None:
        check_texts(Path(options.report), [*texts, *known])
    found = _dedupe(options, texts, known)
    write_table(Path(options.output), {"row": found.kept, "text": [texts[row] for row in found.kept]})
    if options.report is not None:
        write_table(Path(options.report), _report(found, texts, known))
    if options.html is not None:
        from munjang.tasks.dedupe.page import duplicates_page

        corpus.write_page(options.html, duplicates_page(found, texts, known))
    num_equal = sum(each.reason == "equal" for each in found.dropped)
    num_known = sum(each.is_reference for each in found.dropped)
    corpus.say(
        options,
        f"{len(found.kept):,} of {len(texts):,} texts stay; dropped: {num_equal:,} equal, "
        f"{len(found.dropped) - num_equal:,} similar" + (f"; {num_known:,} of them to the reference" if known else ""),
    )
    return 0


def _dedupe(options: Options, texts: list[str], known: list[str]) -> "Deduplicated":
    from munjang.tasks.dedupe.deduplication import dedupe

    if options.equal_only:
        return dedupe(texts, known or None, threshold=None, keep=options.keep)
    model = corpus.load_model(options)
    ready = None if options.vectors is None else corpus.corpus_vectors(options, texts, options.vectors, model)
    known_ready = None
    if options.reference_vectors is not None:
        known_ready = corpus.corpus_vectors(options, known, options.reference_vectors, model)
    return dedupe(
        texts,
        known or None,
        model,
        options.threshold,
        options.keep,
        ready,
        known_ready,
        options.is_exact,
        options.device,
        not options.quiet,
    )


def _report(found: "Deduplicated", texts: list[str], known: list[str]) -> dict[str, Sequence[object]]:
    return {
        "row": [each.index for each in found.dropped],
        "reason": [each.reason for each in found.dropped],
        "score": [each.score for each in found.dropped],
        "kept_in": ["reference" if each.is_reference else "input" for each in found.dropped],
        "kept_row": [each.kept for each in found.dropped],
        "text": [texts[each.index] for each in found.dropped],
        "kept_text": [(known if each.is_reference else texts)[each.kept] for each in found.dropped],
    }
