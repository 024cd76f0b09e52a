"""munjang distill STUDENT DATA --teacher TEACHER -o OUT: let a model learn from another one.

munjang distill multilingual-folder en-ko.tsv --teacher english-model -o ko-en     teacher(en) ≈ student(ko)
munjang distill small-folder sentences.txt --teacher large-model -o small          the same vectors from fewer layers
munjang distill bert-folder triplets.tsv --teacher cross-encoder -o bi             a cross-encoder's margins
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from munjang.cli import train
from munjang.cli.options import option
from munjang.errors import InputError

if TYPE_CHECKING:
    from munjang.training.tasks import Dataset


@dataclass(frozen=True, kw_only=True)
class Options(train.Options):
    """Of `munjang distill`."""

    model: str = option("folder or Hub name of the student", is_positional=True, metavar="STUDENT")
    teacher: str = option("folder or Hub name of the teacher, a bi-encoder or a cross-encoder")
    layers: int | None = option("begin with so many of the student's layers, evenly taken", default=None)


def run(options: Options) -> int:
    """Choose what fits teacher and student, and train."""
    if options.output is None and not options.dry_run:
        raise InputError("Where to? Give -o OUT (output)")
    from munjang import checkpoint

    is_cross = checkpoint.kind(options.teacher) == "cross"
    objective = options.objective or ("margin_mse" if is_cross else "embedding_mse")
    datasets = [_parallel(dataset) for dataset in train.datasets_of(options, objective)]
    return train.train_with(options, datasets, options.cross, options.layers)


def _parallel(dataset: "Dataset") -> "Dataset":
    """Parallel sentences are all to have the vector that the teacher gives the first one."""
    if dataset.objective != "embedding_mse" or "target" in dataset.options:
        return dataset
    return replace(dataset, options={"target": "first", **dataset.options})
