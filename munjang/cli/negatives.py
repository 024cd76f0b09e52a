"""munjang negatives PAIRS... -o OUT: mine hard negatives for training: texts close to an anchor but not its answer.

munjang negatives pairs.tsv -o triplets.jsonl
munjang negatives pairs.tsv -o triplets.jsonl --model path/to/model --corpus passages.txt --relative-margin 0.05
"""

import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from munjang.cli.options import option
from munjang.data.tables import read_texts
from munjang.errors import InputError

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.data.examples import Examples


SUMMARY_KO = "가깝지만 답이 아닌 글 찾기, 학습용"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang negatives`."""

    inputs: tuple[str, ...] = option(
        "files of pairs, anchor and positive: .csv .tsv .jsonl .parquet, also with .gz .xz .bz2",
        is_positional=True,
        metavar="PAIRS",
    )
    output: str = option("output file: .tsv, .csv, .jsonl or .parquet", short="-o")
    model: str | None = option(
        "folder or Hub name of the bi-encoder to search with (default: the bundled one)", default=None, short="-m"
    )
    columns: tuple[str, str] | None = option("anchor and positive columns (default: recognized by name)", default=None)
    corpus: tuple[str, ...] = option("files of candidate texts (default: all positives)", default=())
    corpus_column: str | None = option("text column of the corpus (default: recognized by name)", default=None)
    num_negatives: int = option("negatives per pair", default=3)
    rank_from: int = option("skip this many nearest texts, which may be unmarked answers", default=0)
    rank_to: int = option("consider this many nearest texts", default=100)
    margin: float | None = option("require score <= positive's score - MARGIN", default=None)
    relative_margin: float | None = option("require score <= positive's score reduced by this fraction", default=None)
    max_score: float | None = option("require score <= MAX_SCORE", default=None)
    min_score: float | None = option("require score >= MIN_SCORE", default=None)
    scorer: str | None = option("cross-encoder that may reject candidates: folder or Hub name", default=None)
    scorer_margin: float | None = option(
        "reject what the scorer rates above the positive minus this (default: 0)", default=None
    )
    pick: Literal["top", "random"] = option("pick the nearest of the remaining candidates, or any", default="top")
    seed: int = option("random seed of --pick random", default=0)
    layout: Literal["triplet", "columns", "labelled"] = option(
        "one row per negative; one row per pair with all its negatives; or pairs labelled 1 and 0", default="triplet"
    )
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    dry_run: bool = option("read everything, print what would be done, and stop", default=False)
    replace: bool = option("replace an existing output", default=False)
    quiet: bool = option("print errors only", default=False)


def run(options: Options) -> int:
    """Check the options, read the pairs, mine negatives, write them."""
    from munjang.data.writing import check_suffix, check_texts, columns_of, write_table

    output = Path(options.output)
    check_suffix(output)
    if output.exists() and not options.replace:
        raise InputError(f"{output} is already there; choose another name, or replace it with --replace")
    from munjang.training.negatives import Rules, mine_negatives

    names = ("num_negatives", "rank_from", "rank_to", "margin", "relative_margin", "max_score", "min_score")
    rules = {name: getattr(options, name) for name in (*names, "scorer_margin", "pick", "seed")}
    Rules(**rules)  # reject a wrong number before anything is read
    if options.scorer_margin is not None and options.scorer is None:
        raise InputError("--scorer-margin needs --scorer, a cross-encoder")
    examples, corpus = _read(options)
    check_texts(output, chain(*examples.texts, corpus or ()))
    if options.dry_run:
        _say_plan(options, examples, corpus)
        return 0
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder

    place = {"device": options.device, "dtype": options.dtype, "threads": options.threads}
    model = BiEncoder.load(options.model, **place)  # type: ignore[arg-type]  # three options by their names
    scorer = None if options.scorer is None else CrossEncoder.load(options.scorer, **place)  # type: ignore[arg-type]
    progress = False if options.quiet else None
    mined = mine_negatives(model, examples, corpus, scorer=scorer, layout=options.layout, progress=progress, **rules)
    if not mined.statistics.num_negatives:
        raise InputError(
            f"No negative was found, so nothing was written. {mined.statistics} Give more texts to choose from "
            "(--corpus), or rules that leave some."
        )
    write_table(output, columns_of(mined.examples))
    if not options.quiet:
        print(f"munjang: {mined.statistics}\nmunjang: {len(mined.examples):,} rows in {output}", file=sys.stderr)
    return 0


def _read(options: Options) -> "tuple[Examples, list[str] | None]":
    from munjang.data.reading import read_examples

    examples = read_examples(list(options.inputs), texts=options.columns, num_texts=(2, 2))
    if not options.corpus:
        return examples, None
    return examples, [text for path in options.corpus for text in read_texts(path, options.corpus_column)]


def _say_plan(options: Options, examples: "Examples", corpus: list[str] | None) -> None:
    from munjang import checkpoint

    for name, wanted in ((options.model, "bi"), (options.scorer, "cross")):
        if name is not None and checkpoint.kind(name) != wanted:
            raise InputError(f"{name} is not a {wanted}-encoder")
    anchors, positives = map(set, examples.texts)
    candidates = positives if corpus is None else set(corpus)
    most = len(examples) * options.num_negatives
    rows = {"triplet": most, "columns": len(examples), "labelled": len(examples) + most}[options.layout]
    columns = ", ".join(repr(name) for name in examples.columns)
    print(f"pairs: {len(examples):,} of {examples.name}, columns {columns}; {len(anchors):,} distinct anchors")
    source = "all positives" if corpus is None else ", ".join(options.corpus)
    print(f"candidates: {len(candidates):,} distinct texts of {source}")
    num_texts = len(anchors) + len(candidates | positives)
    name = options.model or checkpoint.default("bi")
    print(f"to encode: {num_texts:,} texts with {name}; scores: {len(anchors) * len(candidates):,}")
    if options.scorer is not None:
        scored = len(examples) * (1 + min(options.rank_to - options.rank_from, len(candidates)))
        print(f"to read with {options.scorer}: {len(examples) + most:,} pairs if it drops none, {scored:,} at most")
    print(f"to write: at most {rows:,} rows ({options.layout}) to {options.output}")
    for note in examples.notes:
        print(f"note: {note}")
