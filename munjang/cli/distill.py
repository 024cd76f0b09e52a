"""munjang distill STUDENT DATA --teacher TEACHER -o OUT: train a model on another's vectors or scores; or --static.

munjang distill STUDENT en-ko.tsv --teacher MODEL -o OUT
munjang distill multilingual-folder en-ko.tsv --teacher english-model -o ko-en     teacher(en) ≈ student(ko)
munjang distill small-folder sentences.txt --teacher large-model -o small          the same vectors from fewer layers
munjang distill bert-folder triplets.tsv --teacher cross-encoder -o bi             a cross-encoder's margins
munjang distill ko-en-small texts.txt.xz --static -o static                        one vector per token, averaged
"""

import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from munjang.cli import train
from munjang.cli.options import option
from munjang.errors import InputError

if TYPE_CHECKING:
    from munjang.training.datasets import Dataset


STATIC_OPTIONS = (
    *("static", "model", "data", "output", "dimensions", "refine_epochs", "texts", "max_rows", "max_length"),
    *("seed", "device", "dtype", "quiet", "config"),
)


SUMMARY_KO = "다른 모델의 벡터나 점수를 배우게 하기"


@dataclass(frozen=True, kw_only=True)
class Options(train.Options):
    """Options of `munjang distill`."""

    model: str = option(
        "folder or Hub name of the student; with --static, of the teacher", is_positional=True, metavar="STUDENT"
    )
    teacher: str | None = option("folder or Hub name of the teacher, a bi-encoder or a cross-encoder", default=None)
    layers: int | None = option("keep this many of the student's layers, evenly spaced", default=None)
    static: bool = option("make a static model: one vector per token, averaged over a text", default=False)
    dimensions: int = option("dimension of the static vectors", default=256)
    refine_epochs: int = option("passes over the texts to refine the static vectors; 0: none", default=2)


def run(options: Options) -> int:
    """Choose the objective for this teacher, then train."""
    if options.output is None and not options.dry_run:
        raise InputError("Where to? Give -o OUT (output)")
    if options.static:
        return _static(options)
    if options.teacher is None:
        raise InputError("Whom to learn from? Give --teacher, or --static for static vectors of the model itself")
    for name in ("dimensions", "refine_epochs"):
        if getattr(options, name) != Options.__dataclass_fields__[name].default:
            raise InputError(f"{name} is for --static")
    from munjang import checkpoint

    is_cross = checkpoint.kind(options.teacher) == "cross"
    objective = options.objective or ("margin_mse" if is_cross else "embedding_mse")
    datasets = [_parallel(dataset) for dataset in train.datasets_of(options, objective)]
    return train.train_with(options, datasets, options.cross, options.layers)


def _static(options: Options) -> int:
    """Read the texts, make the static model, report how close it comes to the teacher."""
    for each in fields(Options):
        if each.name not in STATIC_OPTIONS and getattr(options, each.name) != each.default:
            raise InputError(f"{each.name} is not for --static; it takes {', '.join(STATIC_OPTIONS)}")
    if not options.data:
        raise InputError("No texts: give files of the kind of text that the model will meet")
    if options.output is None:
        raise InputError("Where to? Give -o OUT (output)")
    from pathlib import Path

    from munjang.checkpoint.atomic import check_free
    from munjang.cli.export import texts_of
    from munjang.training.static import StaticConfig, distill_static, load_teacher

    check_free(Path(options.output))
    found = dict.fromkeys(text.strip() for path in options.data for text in texts_of(path, options.texts))
    texts = [text for text in found if text][: options.max_rows]
    teacher = load_teacher(options.model, options.device, options.dtype)
    if options.max_length is not None:
        teacher.max_length = options.max_length
    config = StaticConfig(dimensions=options.dimensions, refine_epochs=options.refine_epochs, seed=options.seed)
    model, report = distill_static(teacher, texts, config, progress=False if options.quiet else None)
    model.save(options.output)
    if not options.quiet:
        print(f"munjang: {report}\nthe model is in {options.output}", file=sys.stderr)
    return 0


def _parallel(dataset: "Dataset") -> "Dataset":
    """Train all columns of parallel sentences towards the teacher's vector of the first one."""
    if dataset.objective != "embedding_mse" or "target" in dataset.options:
        return dataset
    return replace(dataset, options={"target": "first", **dataset.options})
