"""TensorBoard's events: the log's numbers as scalars, beside the log that the report is made of."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from munjang.errors import MissingExtra


def events(folder: Path) -> Callable[[dict[str, Any]], None]:
    """A function that takes the lines of the log and writes their numbers into `folder`.

    >>> write = events(Path("out.training/events"))
    >>> write({"step": 10, "loss": 0.7})  # the scalar train/loss at step 10
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("tensorboard", "tensorboard", "Writing TensorBoard's events") from None
    writer: SummaryWriter | None = None

    def write(line: dict[str, Any]) -> None:
        nonlocal writer
        if writer is None:
            # a run that goes on from a checkpoint repeats steps that it had written before it was stopped
            writer = SummaryWriter(str(folder), purge_step=line["step"])
        for tag, value in _scalars(line):
            writer.add_scalar(tag, value, line["step"])
        writer.flush()  # lines are rare, and a killed run loses none

    return write


def _scalars(line: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Every number of a line by the name that TensorBoard groups it under."""
    for name, value in line.items():
        if name != "step" and _is_number(value):
            yield f"train/{name}", value
    found = line.get("evaluation", {})
    if _is_number(found.get("main")):
        yield "evaluation/main", found["main"]
    for dataset, report in found.get("on", {}).items():
        # protocol buffers refuse lone surrogates
        name = dataset.encode("utf-8", "replace").decode()
        for metric, value in report["metrics"].items():
            if _is_number(value):
                yield f"evaluation/{name}/{metric}", value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
