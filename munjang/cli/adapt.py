"""munjang adapt MODEL TEXTS -o OUT: adapt a model to the texts of a domain; --then fine-tunes it afterwards.

munjang adapt MODEL articles/ -o OUT --method denoising
munjang adapt biobert-folder articles/ -o adapted --method denoising
munjang adapt bert-folder notes.txt -o model --method masked --then pairs.tsv --then-objective in_batch
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from munjang.cli import train
from munjang.cli.options import option
from munjang.errors import InputError

EXAMPLE_OPTIONS = ("texts", "label", "labels", "score", "score_range", "max_rows", "format", "prompts")


SUMMARY_KO = "모델에 한 분야의 글을 읽히기"


@dataclass(frozen=True, kw_only=True)
class Options(train.Options):
    """Options of `munjang adapt`."""

    data: tuple[str, ...] = option(
        "files or folders of texts: .txt .csv .tsv .jsonl .parquet, compressed or not",
        default=(),
        is_positional=True,
        metavar="TEXTS",
    )
    method: Literal["masked", "denoising", "simcse", "pairs"] = option(
        "predict masked tokens, reconstruct noisy texts (TSDAE), contrast texts (SimCSE), or pair sentences",
        default="denoising",
    )
    column: str | None = option("text column (default: recognized by name)", default=None)
    then: tuple[str, ...] = option("fine-tune on these examples afterwards", default=())
    then_objective: str = option("objective of the fine-tuning", default="in_batch")


def run(options: Options) -> int:
    """Read the texts, adapt the model, fine-tune it."""
    if options.output is None and not options.dry_run:
        raise InputError("Where to? Give -o OUT (output)")
    if not options.data:
        raise InputError("No texts: give files or folders of the domain")
    for name in ("objective", "cross", "num_labels", "teacher", "guide", "datasets"):
        if getattr(options, name):
            raise InputError(f"{name} is not for adapt: --method says what is learned, --then-objective what then")
    for name in EXAMPLE_OPTIONS:
        if getattr(options, name) and not options.then:
            raise InputError(f"{name} is about the examples of --then, and there are none; --column is for texts")
    from munjang.training.datasets import Dataset
    from munjang.training.domain import METHODS, read_domain
    from munjang.training.run import is_begun

    objective, made = METHODS[options.method]
    name = f"{', '.join(options.data)} ({options.method})"
    examples = made(read_domain(options.data, options.column), name)
    dataset = Dataset(data=examples, objective=objective, options=train.settings(options.set))
    if not options.then:
        return train.train_with(options, [dataset], False)
    # each stage has its own folder, so that either can be resumed
    adapted = f"{options.output}.adapted"
    tuning = replace(options, data=options.then, set=())
    examples_then = train.datasets_of(tuning, options.then_objective)
    preview = train.previewed(tuning, examples_then, False)  # report bad examples now, not after hours
    first = replace(options, output=adapted if options.output else None)
    code = train.train_with(first, [dataset], False, is_over=False)
    if options.dry_run:
        print(f"then\n{preview}")
    if code or options.dry_run:
        return code
    # a run that stopped in the first stage has no second one to resume
    resume = options.resume and options.output is not None and is_begun(Path(options.output))
    return train.train_with(replace(tuning, model=adapted, resume=resume), examples_then, False)
