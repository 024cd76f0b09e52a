"""munjang similarity TEXT TEXT...: score how similar texts are; --file scores the pairs of a table.

munjang similarity "A cat sleeps." "새끼 고양이가 낮잠을 잔다."
munjang similarity "A cat sits." "고양이가 앉아 있다." --model path/to/model
munjang similarity --file pairs.tsv --model path/to/model > scores.txt
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from munjang.cli.options import option
from munjang.data.tables import read_pairs
from munjang.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scores: TypeAlias = "NDArray[Any]"
PAIRS_PER_CALL = 1024  # scored and printed together


SUMMARY_KO = "글이 서로 얼마나 비슷한지"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang similarity`."""

    texts: tuple[str, ...] = option(
        "two texts give a number, more a table of all pairs", default=(), is_positional=True, metavar="TEXT"
    )
    model: str | None = option("folder or Hub name of the model (default: the bundled one)", default=None, short="-m")
    file: str | None = option("score the pairs of this table instead: .tsv .csv .jsonl .parquet, or -", default=None)
    columns: tuple[str, str] | None = option("the two text columns (default: recognized by name)", default=None)
    format: Literal["csv", "tsv", "json", "jsonl", "parquet"] | None = option(
        "format of the table (default: by suffix)", default=None
    )
    function: Literal["cosine", "dot", "euclidean", "manhattan"] | None = option(
        "similarity function, higher is closer (default: the model's own)", default=None, one_of="scorer"
    )
    cross: bool = option("score with a cross-encoder, which reads both texts together", default=False, one_of="scorer")
    json: bool = option("print one JSON object; with --file, one per line", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)


@dataclass(frozen=True)
class Scorer:
    """Scoring functions of a bi-encoder or a cross-encoder."""

    pairs: Callable[[list[str], list[str]], Scores]  # row by row; several scores per row if the model has labels
    table: Callable[[list[str]], Scores]  # all pairs


def run(options: Options) -> int:
    """Load the model and print its scores."""
    if options.file is None and len(options.texts) < 2:
        raise InputError(f"Give at least two texts, or --file with pairs; {len(options.texts)} given")
    if options.file is not None and options.texts:
        raise InputError("Give either texts or --file, not both")
    if options.file is None and (options.columns or options.format):
        raise InputError("--columns and --format describe a table; give it with --file")
    scorer = _cross(options) if options.cross else _bi(options)
    if options.file is not None:
        _print_pairs(options, read_pairs(options.file, options.columns, options.format), scorer)
    elif len(options.texts) == 2:
        score = scorer.pairs([options.texts[0]], [options.texts[1]])[0].tolist()
        print(json.dumps({"score": score}) if options.json else _shown(score))
    else:
        _print_table(options, scorer.table(list(options.texts)).tolist())
    return 0


def _bi(options: Options) -> Scorer:
    from munjang import checkpoint  # imports torch: not for --help
    from munjang.bi_encoder import BiEncoder

    if options.model is not None and checkpoint.kind(options.model) == "cross":  # its vectors would mean little
        raise InputError(f"{options.model} is a cross-encoder: add --cross")
    model = BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)
    if options.function is not None:
        model.similarity_name = options.function
    return Scorer(model.similarity_pairwise, lambda texts: model.similarity(texts, texts))


def _cross(options: Options) -> Scorer:
    from munjang.cross_encoder import CrossEncoder

    model = CrossEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)

    def pairs(first: list[str], second: list[str]) -> Scores:
        scores: Scores = model.predict(list(zip(first, second, strict=True)), progress=False)
        return scores

    def table(texts: list[str]) -> Scores:
        scores = pairs([text for text in texts for _ in texts], texts * len(texts))
        if scores.ndim > 1:
            raise InputError(
                f"{options.model} gives {scores.shape[1]} scores for a pair; compare two texts at a time, or use --file"
            )
        return scores.reshape(len(texts), len(texts))

    return Scorer(pairs, table)


def _print_pairs(options: Options, pairs: Iterator[tuple[str, str]], scorer: Scorer) -> None:
    """Print one line per pair as soon as it is scored."""
    while rows := list(islice(pairs, PAIRS_PER_CALL)):
        scores = scorer.pairs([first for first, _ in rows], [second for _, second in rows]).tolist()
        for (first, second), score in zip(rows, scores, strict=True):
            line = {"a": first, "b": second, "score": score}
            print(json.dumps(line, ensure_ascii=False) if options.json else _shown(score))
        sys.stdout.flush()


def _print_table(options: Options, scores: list[list[float]]) -> None:
    if options.json:
        print(json.dumps({"texts": options.texts, "scores": scores}, ensure_ascii=False))
        return
    cells = [[f"{number:.4f}" for number in row] for row in scores]
    width = max(len(cell) for row in cells for cell in row)
    numbers = [f"{number:>{len(str(len(cells)))}}" for number in range(1, len(cells) + 1)]
    print(" " * len(numbers[0]), *(f"{number:>{width}}" for number in numbers))
    for number, text, row in zip(numbers, options.texts, cells, strict=True):
        print(number, *(f"{cell:>{width}}" for cell in row), f" {text:.60}".replace("\n", " "))


def _shown(score: float | list[float]) -> str:
    return "\t".join(f"{number:.6f}" for number in (score if isinstance(score, list) else [score]))
