"""The training loop: draw, step, update, look, save, from any place in the run to its end."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.engine.ahead import ahead
from munjang.errors import InputError, MunjangError
from munjang.progress import Progress
from munjang.training.chunks import Work, cut
from munjang.training.config import TrainConfig
from munjang.training.optimizer import Average, Optimizer, rate_at
from munjang.training.processes import Processes
from munjang.training.run import Run
from munjang.training.step import Gradients, Part, Step
from munjang.training.tasks import Draw, Task, draws
from munjang.training.trainee import Trainee

# Tokens at once: activations of a base-sized encoder take about 0.4 MB a token in bf16 and twice that in fp32
BUDGETS = {"cpu": 8192, "cuda": 65536, "mps": 16384}
Evaluate = Callable[[Any], dict[str, Any]]  # a model to {"main": score, ...}, for the log


@dataclass
class Position:
    """Where a run stands: all of it is in the checkpoint."""

    update: int = 0
    epoch: int = 0
    index: int = 0  # of the next batch in the epoch
    budget: int = 0
    best: float | None = None
    best_update: int = 0
    num_worse: int = 0
    is_stopped: bool = False
    recent: list[float] = field(default_factory=list)  # losses since the last line of the log


class Loop:
    """One run. `__call__` takes it from where it stands to its end."""

    def __init__(
        self, trainee: Trainee, tasks: Sequence[Task], processes: Processes, config: TrainConfig, num_updates: int
    ) -> None:
        self.trainee, self.tasks, self.processes, self.config = trainee, tasks, processes, config
        self.num_updates = num_updates
        if config.together and processes.world > 1:
            # sizes of the parts are known only after the exchange there
            raise InputError("together is for one process; leave it out under torchrun.")
        objectives = [task.objective for task in tasks]
        dtype = _dtype(config.dtype, processes.device)
        self.step = Step(trainee.network, processes, trainee.shapes, config.seed, dtype, config.gradient_cache)
        self.optimizer = Optimizer(trainee.network, objectives, config)
        self.gradients = Gradients(trainee.network, objectives, processes)
        self.average = None if config.ema is None else Average(trainee.network, config.ema)
        self.at = Position(budget=config.batch_tokens or BUDGETS[processes.device.type])
        self.run: Run | None = None
        self.evaluate: Evaluate | None = None
        self.best_weights: dict[str, Tensor] | None = None
        self.on_log: Callable[[dict[str, Any]], None] = lambda line: None
        self._pending: deque[tuple[int, list[Draw], Callable[[], float]]] = deque()
        self._clock, self._seen = time.monotonic(), 0

    def __call__(self, evaluate_every: int, save_every: int) -> None:
        """Train to the end."""
        config, at = self.config, self.at
        total = self.num_updates * config.accumulate
        shows = not config.quiet and self.processes.is_main
        with (
            Progress(total, "training, batches", enabled=shows) as bar,
            closing(self._work(total - at.update * config.accumulate)) as stream,
        ):
            bar.skip(at.update * config.accumulate)
            while at.update < self.num_updates and not at.is_stopped:
                some = [next(stream) for _ in range(config.accumulate)]
                self._update(some)
                bar.advance(len(some))
                if at.recent:
                    bar.label = f"training, loss {at.recent[-1]:.4f}, batches"
                is_last = at.update == self.num_updates
                is_looked_at = self.evaluate is not None and (at.update % evaluate_every == 0 or is_last)
                if is_looked_at or is_last or at.update % save_every == 0:
                    self._settle(keep=0)
                    self._check_weights()
                    if is_looked_at:
                        self._look()
                    self._save()

    def _work(self, count: int) -> Generator[tuple[Draw, Work], None, None]:
        """Batches, cut and in memory from which a GPU copies, a few ahead of the network."""

        def jobs() -> Iterator[Callable[[], tuple[Draw, Work]]]:
            source = draws(self.tasks, self.config, self.at.epoch, self.at.index)
            for _ in range(count):
                yield partial(self._make, next(source))

        return ahead(jobs(), 2 if self.processes.device.type == "cuda" else 1)

    def _make(self, draw: Draw) -> tuple[Draw, Work]:
        task = self.tasks[draw.task]
        random = np.random.default_rng([self.config.seed, draw.epoch, draw.index])
        batch = task.batches(draw.rows, self.processes.rank, self.processes.world, random)
        return draw, cut(batch, task.objective.is_separable, self.at.budget, self.processes.device)

    def _update(self, some: list[tuple[Draw, Work]]) -> None:
        loss = self._gradient(some)
        self.optimizer.update(self.at.update, self.num_updates)
        self.at.update += 1
        last = some[-1][0]
        self.at.epoch, self.at.index = last.epoch, last.index + 1
        if self.average is not None:
            self.average.update(self.at.update)
        self._pending.append((self.at.update, [draw for draw, _ in some], _later(loss)))
        self._seen += sum(len(draw.rows) for draw, _ in some)
        self._settle(keep=1)  # a loss is looked at one update later: the device is never waited for

    def _gradient(self, some: list[tuple[Draw, Work]]) -> Tensor:
        """The loss of some batches, whose gradient is in `.grad`; with smaller chunks where memory runs out."""
        while True:
            try:
                # what was prepared before memory ran out is cut too large
                some = [(draw, self._recut(draw, work)) for draw, work in some]
                placed = [Placed(place, draw, work) for place, (draw, work) in enumerate(some)]
                joined, rest = self._joined(placed) if self.config.together else ([], placed)
                parts = [self._part(rest, task, len(some)) for task in sorted({each.draw.task for each in rest})]
                return self.gradients.finish([*joined, *parts])
            except torch.OutOfMemoryError as error:
                # other processes would wait for this one's exchange: only a single one can try again
                if self.at.budget < 64 or self.processes.world > 1:
                    raise MunjangError(
                        f"A chunk of {self.at.budget} tokens does not fit into memory; "
                        "lower batch_tokens, or batch_size where gradient_cache is off."
                    ) from error
            self.at.budget //= 2
            self.optimizer.adam.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()

    def _joined(self, some: list["Placed"]) -> tuple[list[Part], list["Placed"]]:
        """Batches that go through the network together, and the others: in chunks, or of a task that is there twice."""
        counts = Counter(each.draw.task for each in some)
        fitting: list[Placed] = []
        rest: list[Placed] = []
        for each in some:
            objective = self.tasks[each.draw.task].objective
            is_fit = len(each.work.chunks) == 1 and objective.needs in ("embeddings", "logits")
            (fitting if is_fit and counts[each.draw.task] == 1 else rest).append(each)
        parts = []
        for group in _by_budget(fitting, self.at.budget):
            works = [(each.work, self.tasks[each.draw.task].objective) for each in group]
            loss = self.step.together(self._number(group[0]), works, 1 / len(some))
            parts.append(self.gradients.take(loss, torch.ones_like(loss)))
        return parts, rest

    def _part(self, some: list["Placed"], task: int, num_batches: int) -> Part:
        """The batches of one task; it weighs as much in the update as its share of the batches."""
        loss = size = torch.zeros((), device=self.processes.device)
        count = 0
        for each in some:
            if each.draw.task == task:
                own_loss, own_size = self.step(self._number(each), each.work, self.tasks[task].objective)
                loss, size, count = loss + own_loss, size + own_size, count + 1
        return self.gradients.take(loss, size, count / num_batches)

    def _number(self, each: "Placed") -> int:
        """Of a batch in the run, which its dropout is drawn from."""
        return self.at.update * self.config.accumulate + each.place

    def _recut(self, draw: Draw, work: Work) -> Work:
        if work.budget == self.at.budget:
            return work
        is_separable = self.tasks[draw.task].objective.is_separable
        return cut(work.batch, is_separable, self.at.budget, self.processes.device)

    def _settle(self, keep: int) -> None:
        """Look at the losses that are due; one that is no number ends the run before it is saved."""
        while len(self._pending) > keep:
            update, drawn, value = self._pending.popleft()
            loss = value()
            if not math.isfinite(loss):
                where = "; ".join(
                    f"{self.tasks[draw.task].name}, rows {', '.join(map(str, draw.rows[:8].tolist()))}"
                    f"{', ...' if len(draw.rows) > 8 else ''}"
                    for draw in drawn
                )
                raise MunjangError(
                    f"The loss of update {update} is {loss} (batch of {where}); {self._what_is_kept()}. "
                    "Look at those rows (counted from 0), lower the learning rate or set clip."
                )
            self.at.recent.append(loss)
            if update % self.config.log_every == 0 or update == self.num_updates:
                self._log(update)

    def _check_weights(self) -> None:
        """A finite loss may have had a gradient that was none; what it made of the weights is not saved."""
        largest = torch._foreach_norm(list(self.trainee.weights().values()), float("inf"))
        if not torch.stack(largest).isfinite().all():
            raise MunjangError(
                f"After update {self.at.update} some weights are no finite numbers; {self._what_is_kept()}. "
                "Lower the learning rate or set clip."
            )

    def _what_is_kept(self) -> str:
        step = None if self.run is None else self.run.last_step
        return "nothing was saved" if step is None else f"the checkpoint of update {step} is good"

    def _log(self, update: int) -> None:
        losses, self.at.recent = self.at.recent, []
        now = time.monotonic()
        line = {
            "step": update,
            "epoch": self.at.epoch,
            "loss": sum(losses) / len(losses),
            "learning_rate": rate_at(update - 1, self.num_updates, self.config) * self.config.learning_rate,
            "examples_per_s": self._seen / max(now - self._clock, 1e-9),
        }
        self._clock, self._seen = now, 0
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        if self.processes.is_main:
            if self.run is not None:
                self.run.log(line)
            self.on_log(line)

    def _look(self) -> None:
        """Evaluate, remember the best, and see whether it is time to stop."""
        assert self.evaluate is not None
        at, found = self.at, {}
        if self.processes.is_main:
            found = self.evaluate(self.trainee.snapshot(self._kept()))
        found = self.processes.tell(found)
        self._write({"step": at.update, "evaluation": found})
        if at.best is None or math.isnan(at.best) or found["main"] > at.best:
            at.best, at.best_update, at.num_worse = found["main"], at.update, 0
            self.best_weights = {name: value.cpu().clone() for name, value in self._kept().items()}
            if self.run is not None and self.processes.is_main:
                self.run.save_best(self.best_weights)
        else:
            at.num_worse += 1
        at.is_stopped = self.config.patience is not None and at.num_worse >= self.config.patience
        self._clock = time.monotonic()

    def _kept(self) -> dict[str, Tensor]:
        """The weights that are evaluated and saved."""
        return self.trainee.weights() if self.average is None else self.average.weights

    def _save(self) -> None:
        if self.run is None or not self.processes.is_main:
            return
        tensors = {f"network.{name}": value for name, value in self.trainee.weights().items()}
        for place, task in enumerate(self.tasks):
            tensors |= {f"objectives.{place}.{name}": value for name, value in task.objective.state_dict().items()}
        tensors |= {f"adam.{name}": value for name, value in self.optimizer.state().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.weights.items()}
        self.run.save(self.at.update, tensors, asdict(self.at))

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Take up a checkpoint."""

        def under(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

        self.trainee.restore(under("network."))
        for place, task in enumerate(self.tasks):
            task.objective.load_state_dict(under(f"objectives.{place}."))
        self.optimizer.restore(under("adam."))
        if self.average is not None:
            for name, value in under("average.").items():
                self.average.weights[name].copy_(value)
        self.at = Position(**{name: value for name, value in state.items() if name != "step"})
        if self.at.best is not None and self.run is not None:
            self.best_weights = self.run.best()


@dataclass(frozen=True)
class Placed:
    """A batch and its place in the update."""

    place: int
    draw: Draw
    work: Work


def _by_budget(some: list[Placed], budget: int) -> Iterator[list[Placed]]:
    """Neighbours whose tokens together are within the budget."""
    group: list[Placed] = []
    tokens = 0
    for each in some:
        count = each.work.chunks[0].packed.num_tokens
        if group and tokens + count > budget:
            yield group
            group, tokens = [], 0
        group.append(each)
        tokens += count
    if group:
        yield group


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_bf16 else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def _later(loss: Tensor) -> Callable[[], float]:
    """The loss as a number when it is asked for; until then the device works on."""
    if loss.device.type != "cuda":
        return lambda: float(loss)
    host = torch.empty((), pin_memory=True)
    host.copy_(loss, non_blocking=True)
    ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()

    def value() -> float:
        ready.synchronize()
        return float(host)

    return value
