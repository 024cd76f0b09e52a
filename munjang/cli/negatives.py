"""munjang negatives PAIRS... -o OUT: texts of a corpus that are near an anchor and yet not its answer, to train on.

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
    """Of `munjang negatives`."""

    inputs: tuple[str, ...] = option(
        "files of pairs, anchor and positive: .csv .tsv .jsonl .parquet, also with .gz .xz .bz2",
        is_positional=True,
        metavar="PAIRS",
    )
    output: str = option("where to write: .tsv, .csv, .jsonl or .parquet", short="-o")
    model: str | None = option(
        "folder or Hub name of the bi-encoder that searches (default: the bundled one)", default=None, short="-m"
    )
    columns: tuple[str, str] | None = option("columns of anchor and positive (default: by their names)", default=None)
    corpus: tuple[str, ...] = option("files of texts to choose from (default: all positives)", default=())
    corpus_column: str | None = option("column of the corpus that holds the text (default: by its name)", default=None)
    num_negatives: int = option("negatives of each pair", default=3)
    rank_from: int = option("skip so many of the nearest: they may be answers that nobody marked", default=0)
    rank_to: int = option("look at so many of the nearest", default=100)
    margin: float | None = option("a negative scores at most the positive minus this", default=None)
    relative_margin: float | None = option("a negative scores at most the positive less this share", default=None)
    max_score: float | None = option("a negative scores at most this", default=None)
    min_score: float | None = option("a negative scores at least this", default=None)
    scorer: str | None = option("folder or Hub name of a cross-encoder with a veto", default=None)
    scorer_margin: float | None = option(
        "it drops what it scores higher than the positive minus this (default: 0)", default=None
    )
    pick: Literal["top", "random"] = option("which of those that are left: the nearest, or any", default="top")
    seed: int = option("of --pick random", default=0)
    layout: Literal["triplet", "columns", "labelled"] = option(
        "a row for each negative; one for all of a pair's; or pairs with label 1 and 0", default="triplet"
    )
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best there is)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "type to compute in (default: by device); int8 is for a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    dry_run: bool = option("read everything, say what would happen, and stop", default=False)
    replace: bool = option("replace an output that is already there", default=False)
    config: str | None = option("TOML file of these options; flags win", default=None, metavar="FILE")
    quiet: bool = option("say nothing but errors", default=False)


def run(options: Options) -> int:
    """Read, check, mine, write."""
    from munjang.data.writing import check_suffix, check_texts, columns_of, write_table

    output = Path(options.output)
    check_suffix(output)
    if output.exists() and not options.replace:
        raise InputError(f"{output} is already there; choose another name, or replace it with --replace")
    from munjang.training.negatives import Rules, mine_negatives

    names = ("num_negatives", "rank_from", "rank_to", "margin", "relative_margin", "max_score", "min_score")
    rules = {name: getattr(options, name) for name in (*names, "scorer_margin", "pick", "seed")}
    Rules(**rules)  # a wrong number is refused before anything is read
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
            raise InputError(f"{name} is no {wanted}-encoder")
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
