"""The folder of a run, beside the model it makes: checkpoints to resume from, and the log.

OUT.training/run.json         settings and data; a run with others is refused
OUT.training/log.jsonl        losses and evaluations, one object a line
OUT.training/step-000120/     the newest checkpoint: weights.safetensors and state.json
OUT.training/best.safetensors the best weights so far, where there is an evaluation
OUT.training/events.*         TensorBoard's, where they are asked for
OUT.training/lock             held while a process works on it
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from munjang.checkpoint.atomic import check_free
from munjang.data.files import replacing
from munjang.data.locks import locked
from munjang.errors import CheckpointError, InputError, MissingExtra

STEP = re.compile(r"step-(\d+)")


def folder_of(output: Path) -> Path:
    """Return the run's folder, beside the model that it makes."""
    return output.with_name(f"{output.name}.training")


def is_begun(output: Path) -> bool:
    """Tell whether there is a run to resume."""
    return (folder_of(output) / "run.json").exists()


class Run:
    """A run's folder. Enter it to hold its lock: two runs never write into one."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = folder_of(output)
        self._lock: int | None = None

    def __enter__(self) -> "Run":
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._lock = locked(self.folder, self.output)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not is_begun(self.output):  # refused before anything was done
            with suppress(OSError):
                (self.folder / "lock").unlink()
                self.folder.rmdir()
        if self._lock is not None:
            os.close(self._lock)

    def expect(self, resume: bool) -> None:
        """Refuse to resume a run that does not exist, or to overwrite one that does, before anything is computed."""
        check_free(self.output)
        if resume and not is_begun(self.output):
            raise InputError(f"There is no run to resume in {self.folder}; leave resume out.")
        if not resume and self._steps():
            raise InputError(
                f"{self.folder} holds a run already; resume it (resume=True, --resume), "
                f"choose another output, or delete that folder."
            )

    def begin(self, settings: Mapping[str, object]) -> None:
        """Begin a new run; an existing one has to be resumed, or deleted by hand."""
        self.expect(resume=False)
        for path in (self.folder / "log.jsonl", self.folder / "best.safetensors"):
            path.unlink(missing_ok=True)
        with replacing(self.folder / "run.json") as file:
            file.write(json.dumps(settings, indent=1).encode())

    def check(self, settings: Mapping[str, object]) -> None:
        """Refuse to resume with other settings."""
        self.expect(resume=True)
        old = json.loads((self.folder / "run.json").read_bytes())
        changed = _changes(old, json.loads(json.dumps(settings)))
        if changed:
            raise InputError(
                f"{self.folder} is a run with other settings: {'; '.join(changed[:8])}. "
                "Resume with the same ones, or choose another output."
            )

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, object]) -> None:
        """Write a checkpoint atomically, then delete the one before it."""
        place = self.folder / f"step-{step:06d}"
        fresh = place.with_name(place.name + ".saving")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            fresh.mkdir()
            _save_tensors(tensors, fresh / "weights.safetensors")
            with replacing(fresh / "state.json") as file:
                file.write(json.dumps({"step": step, **state}).encode())
            if place.exists():  # of a run that was killed before it deleted the one before
                shutil.rmtree(place)
            fresh.rename(place)
        except BaseException as error:
            shutil.rmtree(fresh, ignore_errors=True)
            if not isinstance(error, (OSError, SafetensorError)):
                raise
            raise self._unwritten(place, error) from error
        for other in self._steps():
            if other != step:
                shutil.rmtree(self.folder / f"step-{other:06d}", ignore_errors=True)

    def newest(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Load tensors and state of the last checkpoint."""
        steps = self._steps()
        if not steps:
            return None
        place = self.folder / f"step-{steps[-1]:06d}"
        try:
            return load_file(place / "weights.safetensors"), json.loads((place / "state.json").read_bytes())
        except (OSError, SafetensorError, ValueError) as error:
            raise CheckpointError(f"The checkpoint {place} can't be read: {error}. Delete it and start anew.") from None

    def save_best(self, weights: Mapping[str, Tensor]) -> None:
        """Save the best weights so far."""
        place, temporary = self.folder / "best.safetensors", self.folder / "best.safetensors.tmp"
        try:
            _save_tensors(weights, temporary)
            os.replace(temporary, place)
        except (OSError, SafetensorError) as error:
            temporary.unlink(missing_ok=True)
            raise self._unwritten(place, error) from error

    def best(self) -> dict[str, Tensor]:
        """Load what `save_best` kept."""
        return load_file(self.folder / "best.safetensors")

    def log(self, line: Mapping[str, object]) -> None:
        """Append a line to the log."""
        with (self.folder / "log.jsonl").open("a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")  # plain ASCII: a name may hold anything

    def read_log(self) -> list[dict[str, Any]]:
        """Read all lines of the log; a half-written one of a killed run is dropped."""
        path, lines = self.folder / "log.jsonl", []
        if path.exists():
            for line in path.read_text(encoding="ascii").split("\n"):
                with suppress(ValueError):
                    lines.append(json.loads(line))
        return lines

    def cut_log(self, step: int) -> None:
        """Drop the lines after the checkpoint that the run resumes from."""
        kept = [line for line in self.read_log() if line["step"] <= step]
        with replacing(self.folder / "log.jsonl") as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept).encode())

    @property
    def last_step(self) -> int | None:
        """Return the update of the last checkpoint."""
        return max(self._steps(), default=None)

    def _unwritten(self, place: Path, error: Exception) -> CheckpointError:
        step = self.last_step
        kept = "there is none before" if step is None else f"that of step {step} is kept, go on from there with resume"
        reason = error.strerror if isinstance(error, OSError) else error
        return CheckpointError(f"The checkpoint {place} can't be written: {reason}; {kept}.")

    def _steps(self) -> list[int]:
        found = [STEP.fullmatch(path.name) for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(match[1]) for match in found if match)


def _save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _changes(old: Any, new: Any, name: str = "") -> list[str]:
    """List the differences by their path."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            change
            for key in {**old, **new}
            for change in _changes(old.get(key), new.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if old == new else [f"{name} was {old!r:.60}, is now {new!r:.60}"]


def events(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes the numbers of a log line into `folder` as TensorBoard scalars.

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
            # a resumed run repeats the steps after its checkpoint
            writer = SummaryWriter(str(folder), purge_step=line["step"])
        for tag, value in _scalars(line):
            writer.add_scalar(tag, value, line["step"])
        writer.flush()  # lines are rare, and a killed run loses none

    return write


def _scalars(line: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield every number of a line by the name that TensorBoard groups it under."""
    for name, value in line.items():
        if name != "step" and _is_number(value):
            yield f"train/{name}", value
    evaluation = line.get("evaluation", {})
    if _is_number(evaluation.get("main")):
        yield "evaluation/main", evaluation["main"]
    for dataset, report in evaluation.get("on", {}).items():
        # protocol buffers refuse lone surrogates
        name = dataset.encode("utf-8", "replace").decode()
        for metric, value in report["metrics"].items():
            if _is_number(value):
                yield f"evaluation/{name}/{metric}", value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
