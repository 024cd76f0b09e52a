"""The training loop: draw, step, update, evaluate, save, from any position in the run to its end."""

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
from munjang.training.config import TrainConfig
from munjang.training.datasets import PreparedDataset
from munjang.training.draws import Draw, draws
from munjang.training.micro_batches import SplitBatch, split
from munjang.training.optimizer import Average, Optimizer
from munjang.training.process_group import ProcessGroup
from munjang.training.run import Run
from munjang.training.step import Gradients, PartialGradient, Step
from munjang.training.trainee import Trainee

# Tokens of a micro-batch: activations of a base-sized encoder take about 0.4 MB a token in bf16 and twice that in fp32
BATCH_TOKENS = {"cpu": 8192, "cuda": 65536, "mps": 16384}
Evaluate = Callable[[Any], dict[str, Any]]  # a model to {"main": score, ...}, for the log


@dataclass
class Position:
    """The progress of a run, as it is saved in the checkpoint."""

    update: int = 0
    epoch: int = 0
    index: int = 0  # of the next batch in the epoch
    batch_tokens: int = 0
    best: float | None = None
    best_update: int = 0
    num_worse: int = 0
    is_stopped: bool = False
    recent: list[float] = field(default_factory=list)  # losses since the last line of the log
    places: dict[str, list[int]] = field(default_factory=dict)  # of streams, by the number of their dataset


class Loop:
    """One run; `__call__` trains from the current position to the end."""

    def __init__(
        self,
        trainee: Trainee,
        datasets: Sequence[PreparedDataset],
        processes: ProcessGroup,
        config: TrainConfig,
        num_updates: int,
    ) -> None:
        self.trainee, self.datasets, self.processes, self.config = trainee, datasets, processes, config
        self.num_updates = num_updates
        if config.together and processes.world_size > 1:
            # there the sizes are known only after the exchange
            raise InputError("together is for one process; leave it out under torchrun.")
        objectives = [dataset.objective for dataset in datasets]
        dtype = _dtype(config.dtype, processes.device)
        cached, dropped = config.gradient_cache, trainee.dropped
        self.step = Step(trainee.network, processes, trainee.shapes, config.seed, dtype, cached, dropped)
        self.optimizer = Optimizer(trainee.network, objectives, config)
        self.gradients = Gradients(trainee.network, objectives, processes)
        self.average = None if config.ema is None else Average(trainee.network, config.ema)
        self.at = Position(batch_tokens=config.batch_tokens or BATCH_TOKENS[processes.device.type])
        self.run: Run | None = None
        self.evaluate: Evaluate | None = None
        self.best_weights: dict[str, Tensor] | None = None
        self.on_log: Callable[[dict[str, Any]], None] = lambda line: None
        self.on_update: Callable[[], None] = lambda: None  # called after every update
        self._pending: deque[tuple[int, list[Draw], Callable[[], float]]] = deque()
        self._clock, self._seen = time.monotonic(), 0

    def __call__(self, evaluate_every: int, save_every: int) -> None:
        """Train to the end."""
        config, at = self.config, self.at
        total = self.num_updates * config.accumulate
        shows = not config.quiet and self.processes.is_main
        with (
            Progress(total, "training, batches", enabled=shows) as bar,
            closing(self._split_batches(total - at.update * config.accumulate)) as stream,
        ):
            bar.skip(at.update * config.accumulate)
            while at.update < self.num_updates and not at.is_stopped:
                drawn = [next(stream) for _ in range(config.accumulate)]
                self._update(drawn)
                bar.advance(len(drawn))
                if at.recent:
                    bar.label = f"training, loss {at.recent[-1]:.4f}, batches"
                self.on_update()
                is_last = at.update == self.num_updates
                is_evaluated = self.evaluate is not None and (at.update % evaluate_every == 0 or is_last)
                if is_evaluated or is_last or at.update % save_every == 0:
                    self._settle(keep=0)
                    self._check_weights()
                    if is_evaluated:
                        self._run_evaluation()
                    self._save()

    def _split_batches(self, count: int) -> Generator[tuple[Draw, SplitBatch], None, None]:
        """Prepare batches a few ahead of the network, in memory that a GPU can copy from."""

        def jobs() -> Iterator[Callable[[], tuple[Draw, SplitBatch]]]:
            source = draws(self.datasets, self.config, self.at.epoch, self.at.index, self.at.places)
            for _ in range(count):
                yield partial(self._make, next(source))

        return ahead(jobs(), 2 if self.processes.device.type == "cuda" else 1)

    def _make(self, draw: Draw) -> tuple[Draw, SplitBatch]:
        dataset = self.datasets[draw.dataset]
        random = np.random.default_rng([self.config.seed, draw.epoch, draw.index])
        batches = dataset.batches if draw.batches is None else draw.batches
        batch = batches(draw.rows, self.processes.rank, self.processes.world_size, random)
        return draw, split(batch, dataset.objective.is_separable, self.at.batch_tokens, self.processes.device)

    def _update(self, drawn: list[tuple[Draw, SplitBatch]]) -> None:
        loss = self._gradient(drawn)
        self.optimizer.update(self.at.update, self.num_updates)
        self.at.update += 1
        last = drawn[-1][0]
        self.at.epoch, self.at.index = last.epoch, last.index + 1
        self.at.places |= {str(draw.dataset): list(draw.after) for draw, _ in drawn if draw.after is not None}
        if self.average is not None:
            self.average.update(self.at.update)
        self._pending.append((self.at.update, [draw for draw, _ in drawn], _later(loss)))
        self._seen += sum(len(draw.rows) for draw, _ in drawn)
        self._settle(keep=1)  # a loss is looked at one update later: the device is never waited for

    def _gradient(self, drawn: list[tuple[Draw, SplitBatch]]) -> Tensor:
        """Compute an update's gradient into `.grad` and return its loss; out of memory: retry with half the tokens."""
        while True:
            try:
                # batches that were prepared before memory ran out have too large micro-batches
                items = [Item(at, draw, self._fit(draw, batch)) for at, (draw, batch) in enumerate(drawn)]
                joined, rest = self._joined(items) if self.config.together else ([], items)
                numbers = sorted({item.draw.dataset for item in rest})
                parts = [self._part(rest, number, len(items)) for number in numbers]
                return self.gradients.finish([*joined, *parts])
            except torch.OutOfMemoryError as error:
                # other processes would wait for this one's exchange: only a single process can retry
                if self.at.batch_tokens < 64 or self.processes.world_size > 1:
                    raise MunjangError(
                        f"A micro-batch of {self.at.batch_tokens} tokens does not fit into memory; "
                        "lower batch_tokens, or batch_size where gradient_cache is off."
                    ) from error
            self.at.batch_tokens //= 2
            self.optimizer.adam.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()

    def _joined(self, items: list["Item"]) -> tuple[list[PartialGradient], list["Item"]]:
        """Run batches through the network together; return the others: split ones, and datasets that occur twice."""
        counts = Counter(item.draw.dataset for item in items)
        fitting: list[Item] = []
        rest: list[Item] = []
        for item in items:
            objective = self.datasets[item.draw.dataset].objective
            is_fit = len(item.batch.micro_batches) == 1 and objective.needs in ("embeddings", "logits")
            (fitting if is_fit and counts[item.draw.dataset] == 1 else rest).append(item)
        parts = []
        for group in _by_tokens(fitting, self.at.batch_tokens):
            batches = [(item.batch, self.datasets[item.draw.dataset].objective) for item in group]
            loss = self.step.together(self._number(group[0]), batches, 1 / len(items))
            parts.append(self.gradients.take(loss, torch.ones_like(loss)))
        return parts, rest

    def _part(self, items: list["Item"], number: int, num_batches: int) -> PartialGradient:
        """Run the batches of one dataset, weighted in the update by their number."""
        loss = size = torch.zeros((), device=self.processes.device)
        count = 0
        objective = self.datasets[number].objective
        for item in items:
            if item.draw.dataset == number:
                own_loss, own_size = self.step(self._number(item), item.batch, objective)
                loss, size, count = loss + own_loss, size + own_size, count + 1
        return self.gradients.take(loss, size, count / num_batches)

    def _number(self, item: "Item") -> int:
        """Return the global batch index, which seeds dropout."""
        return self.at.update * self.config.accumulate + item.position

    def _fit(self, draw: Draw, batch: SplitBatch) -> SplitBatch:
        if batch.batch_tokens == self.at.batch_tokens:
            return batch
        is_separable = self.datasets[draw.dataset].objective.is_separable
        return split(batch.batch, is_separable, self.at.batch_tokens, self.processes.device)

    def _settle(self, keep: int, logs: bool = True) -> None:
        """Read the losses that are due; one that is not finite ends the run before anything is saved."""
        while len(self._pending) > keep:
            update, drawn, value = self._pending.popleft()
            loss = value()
            if not math.isfinite(loss):
                where = "; ".join(
                    f"{self.datasets[draw.dataset].name}, rows {', '.join(map(str, draw.rows[:8].tolist()))}"
                    f"{', ...' if len(draw.rows) > 8 else ''}"
                    f"{'' if draw.after is None else f' of block {draw.after.block}'}"
                    for draw in drawn
                )
                raise MunjangError(
                    f"The loss of update {update} is {loss} (batch of {where}); {self._what_is_kept()}. "
                    "Look at those rows (counted from 0), lower the learning rate or set clip."
                )
            self.at.recent.append(loss)
            if logs and (update % self.config.log_every == 0 or update == self.num_updates):
                self._log(update)

    def take_losses(self) -> list[float]:
        """Return the losses since the last call instead of logging them; for a log of one's own."""
        self._settle(keep=0, logs=False)
        losses, self.at.recent = self.at.recent, []
        return losses

    def _check_weights(self) -> None:
        """Refuse to save weights that are not finite: a finite loss may have an infinite gradient."""
        largest = torch._foreach_norm(list(self.trainee.weights().values()), float("inf"))
        if not torch.stack(largest).isfinite().all():
            raise MunjangError(
                f"After update {self.at.update} some weights are not finite; {self._what_is_kept()}. "
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
            "learning_rate": self.optimizer.rate_at(update - 1, self.num_updates) * self.config.learning_rate,
            "examples_per_s": self._seen / max(now - self._clock, 1e-9),
        }
        self._clock, self._seen = now, 0
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        if self.processes.is_main:
            if self.run is not None:
                self.run.log(line)
            self.on_log(line)

    def _run_evaluation(self) -> None:
        """Evaluate, keep the best weights, and decide whether to stop early."""
        assert self.evaluate is not None
        at, scores = self.at, {}
        if self.processes.is_main:
            scores = self.evaluate(self.trainee.snapshot(self._final_weights()))
        scores = self.processes.broadcast_object(scores)
        self._write({"step": at.update, "evaluation": scores})
        if at.best is None or math.isnan(at.best) or scores["main"] > at.best:
            at.best, at.best_update, at.num_worse = scores["main"], at.update, 0
            self.best_weights = {name: value.cpu().clone() for name, value in self._final_weights().items()}
            if self.run is not None and self.processes.is_main:
                self.run.save_best(self.best_weights)
        else:
            at.num_worse += 1
        at.is_stopped = self.config.patience is not None and at.num_worse >= self.config.patience
        self._clock = time.monotonic()

    def _final_weights(self) -> dict[str, Tensor]:
        """Return the weights that are evaluated and saved."""
        return self.trainee.weights() if self.average is None else self.average.weights

    def _save(self) -> None:
        if self.run is not None and self.processes.is_main:
            self.run.save(self.at.update, *self.state())

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything that `restore` needs to go on from here."""
        tensors = {f"network.{name}": value for name, value in self.trainee.weights().items()}
        for at, dataset in enumerate(self.datasets):
            tensors |= {f"objectives.{at}.{name}": value for name, value in dataset.objective.state_dict().items()}
        tensors |= {f"adam.{name}": value for name, value in self.optimizer.state().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.weights.items()}
        return tensors, asdict(self.at)

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Load a checkpoint."""

        def under(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

        self.trainee.restore(under("network."))
        for at, dataset in enumerate(self.datasets):
            dataset.objective.load_state_dict(under(f"objectives.{at}."))
        self.optimizer.restore(under("adam."))
        if self.average is not None:
            for name, value in under("average.").items():
                self.average.weights[name].copy_(value)
        self.at = Position(**{name: value for name, value in state.items() if name != "step"})
        if self.at.best is not None and self.run is not None:
            self.best_weights = self.run.best()


@dataclass(frozen=True)
class Item:
    """A batch and its position in the update."""

    position: int
    draw: Draw
    batch: SplitBatch


def _by_tokens(items: list[Item], max_tokens: int) -> Iterator[list[Item]]:
    """Group consecutive batches that have at most `max_tokens` together."""
    group: list[Item] = []
    num_tokens = 0
    for item in items:
        count = item.batch.micro_batches[0].packed.num_tokens
        if group and num_tokens + count > max_tokens:
            yield group
            group, num_tokens = [], 0
        group.append(item)
        num_tokens += count
    if group:
        yield group


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_bf16 else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def _later(loss: Tensor) -> Callable[[], float]:
    """Return a function that reads the loss; the device is not waited for until it is called."""
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
