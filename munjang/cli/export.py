"""munjang export MODEL --to onnx -o FOLDER: export a model to another runtime, in 8 bits, or with a smaller vocabulary.

munjang export MODEL --to onnx --dtype int8 -o FOLDER
munjang export path/to/model --to onnx --dtype int8 -o path/to/export
munjang export path/to/model --to munjang-int8 -o path/to/folder
munjang export ko-en-small -o path/to/folder            in float32, as sentence-transformers loads it
munjang export path/to/model -o path/to/folder --prune corpus.txt pairs.tsv.xz
munjang export path/to/model -o path/to/folder --level texts.txt     unrelated texts get a cosine near 0
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from munjang.cli.options import option
from munjang.data.columns import choose_texts
from munjang.data.files import label
from munjang.data.rows import Broken
from munjang.data.tables import place, read_rows
from munjang.errors import InputError

if TYPE_CHECKING:  # torch stays out of --help
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder


MAX_LEVEL_TEXTS = 50_000  # the first ones; more change nothing
SAMPLE_TEXTS = 1000  # for the mean cosine before and after
SUMMARY_KO = "ONNX나 sentence-transformers 폴더로 저장"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang export`."""

    model: str = option("folder or Hub name of a bi-encoder or cross-encoder", is_positional=True)
    to: Literal["onnx", "munjang-int8", "sentence-transformers"] | None = option(
        "output format (default: sentence-transformers, in float32)", default=None
    )
    output: str = option("folder to write; replaces a model there", short="-o", metavar="FOLDER")
    dtype: Literal["float32", "int8"] = option("dtype of the weights; int8 needs --to onnx", default="float32")
    prune: tuple[str, ...] = option(
        "keep only the tokens that the texts of these files use: .txt .csv .tsv .jsonl .parquet, compressed or not",
        default=(),
        metavar="CORPUS",
    )
    prune_columns: tuple[str, ...] = option(
        "text columns of those files and of --level's (default: recognized by name)", default=()
    )
    keep: tuple[str, ...] = option("tokens to keep whether the texts use them or not", default=())
    min_count: int | None = option("keep tokens that occur at least this often (default: 1)", default=None)
    level: tuple[str, ...] = option(
        "take away what all vectors have in common, measured on typical texts of these files, so that cosines of "
        "unrelated texts are near 0",
        default=(),
        metavar="TEXTS",
    )


def run(options: Options) -> int:
    """Load the model, write it, and report how close the result is."""
    _check(options)
    to = options.to or "sentence-transformers"
    from munjang.cross_encoder import CrossEncoder  # imports torch: not for --help

    target = Path(options.output)
    model = _load(options)
    if options.level:
        _level(model, options)
    if to != "onnx":
        model.save(target, format=to)
        _copy_notices(model.model.folder, target)
        print(f"{target}: {_size(target)}")
        return 0
    from munjang.checkpoint.export import export_onnx

    activation = model.activation if isinstance(model, CrossEncoder) else None
    agreement = export_onnx(model.model, target, options.dtype, activation)
    print(f"{target}: {_size(target)}; {agreement}, against torch in float32")
    return 0


def _level(model: "BiEncoder | CrossEncoder", options: Options) -> None:
    """Level a bi-encoder's vectors, and say what becomes of its cosines."""
    from munjang.bi_encoder import BiEncoder

    if not isinstance(model, BiEncoder):
        raise InputError("--level is for a bi-encoder: a cross-encoder has no vectors.")
    texts: dict[str, None] = {}  # in their order, none twice
    for text in (text for path in options.level for text in texts_of(path, options.prune_columns)):
        texts[text] = None
        if len(texts) == MAX_LEVEL_TEXTS:
            break
    sample = list(texts)[:: -(-len(texts) // SAMPLE_TEXTS) or 1]
    before = _mean_cosine(model, sample)
    if middle := model.level(list(texts)):
        change = f"{middle:.3f} becomes 0; different texts have {_mean_cosine(model, sample):.2f}, before {before:.2f}"
        print(f"levelled on {len(texts):,} texts: a cosine of {change}")
    else:
        print(f"{len(texts):,} texts have nothing in common (different ones a cosine of {before:.2f}): nothing changes")


def _mean_cosine(model: "BiEncoder", texts: list[str]) -> float:
    """Return the mean cosine of different texts."""
    vectors, count = model.encode(texts, normalize=True, progress=False), len(texts)
    return float(((vectors.sum(0) ** 2).sum() - (vectors**2).sum()) / max(1, count * (count - 1)))


def _copy_notices(source: Path, target: Path) -> None:
    """Copy licence and notice along with the model."""
    for name in ("LICENSE", "NOTICE"):
        if (source / name).is_file() and source.resolve() != target.resolve():
            shutil.copyfile(source / name, target / name)


def _check(options: Options) -> None:
    if options.to != "onnx" and options.dtype != "float32":
        target = options.to or "sentence-transformers"
        raise InputError(f"--to {target} fixes the format; --dtype int8 goes with --to onnx.")
    if not options.prune and (options.keep or options.min_count is not None):
        raise InputError("--keep and --min-count go with --prune CORPUS.")
    if options.prune_columns and not (options.prune or options.level):
        raise InputError("--prune-columns goes with --prune CORPUS or --level TEXTS.")


def _load(options: Options) -> "BiEncoder | CrossEncoder":
    """Load the model on the CPU, its vocabulary pruned if --prune is given."""
    from munjang import checkpoint
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder

    is_cross = checkpoint.kind(options.model) == "cross"
    if not options.prune:
        return (CrossEncoder if is_cross else BiEncoder).load(options.model, device="cpu", dtype="float32")
    import torch

    from munjang.checkpoint.prune import prune

    texts = [text for path in options.prune for text in texts_of(path, options.prune_columns)]
    folder = checkpoint.resolve(options.model, *([checkpoint.CROSS_HUB] if is_cross else []))
    model = checkpoint.load_cross(folder) if is_cross else checkpoint.load_bi(folder)
    print(f"{folder}: {_size(folder)}")
    print(prune(model, texts, options.keep, 1 if options.min_count is None else options.min_count))
    return (CrossEncoder if is_cross else BiEncoder)(model, torch.device("cpu"), torch.float32)


def texts_of(path: str, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield all texts of a table's text columns; a row may lack one."""
    choose = partial(choose_texts, label(path), columns or None, num_texts=(1, None))
    for where, values in read_rows(path, lambda found: choose(columns=found)):
        if isinstance(values, Broken):
            raise InputError(f"{place(path, where)}: {values.reason}")
        yield from (value for value in values if isinstance(value, str))


def _size(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6:,.1f} MB"
