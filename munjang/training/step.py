"""The training step: a batch and an objective to gradients. Micro-batches, gradient cache and gathering are here, once.

b examples of this process, B of the whole batch, K sequences of each example, D dimension.

Separable objectives are computed micro-batch by micro-batch. The others see the outputs of the whole batch, from all
processes: every process computes the whole loss (a matrix product, little beside the encoder) and takes the gradient
of its own rows from it, so that any number of processes gives the same gradient. If the batch is split into several
micro-batches, their activations are not kept but computed a second time with the same dropout (gradient cache).
Dropout is seeded by (seed, step, process, micro-batch), so that a resumed run needs no random state of the past.
"""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.nn.late import TokenNetwork
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.nn.sparse import SparseNetwork
from munjang.objectives.base import Objective
from munjang.text.packing import Packed, join
from munjang.training.batches import to_device
from munjang.training.micro_batches import MicroBatch, SplitBatch
from munjang.training.process_group import ProcessGroup
from munjang.training.ragged import tokens_by_text


class Step:
    """Adds a batch's gradient to `.grad` of the network and the objective.

    The gradient is that of loss times size; `Gradients` divides by the sizes once everything is added up.
    """

    def __init__(
        self,
        network: SentenceNetwork | PairNetwork | TokenNetwork | SparseNetwork,
        processes: ProcessGroup,
        shape: dict[str, tuple[int, ...]],
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        is_cached: bool | None = None,
        dropped: Sequence[Tensor] = (),
    ) -> None:
        self.network, self.processes, self.seed, self.dtype = network, processes, seed, dtype
        self.shape = shape  # of one row of outputs, by what objectives need
        self.is_cached = is_cached  # None: where the batch is split into several micro-batches
        self.dropped = dropped  # tokens without a vector in late interaction: of queries, of documents
        self.number = 0

    def __call__(self, number: int, batch: SplitBatch, objective: Objective) -> tuple[Tensor, Tensor]:
        """Return the loss times its size, and the size, of this process's part of the batch."""
        self.number = number
        if objective.is_separable:
            return self._by_micro_batch(batch, objective)
        if self.is_cached and not objective.can_be_cached:
            raise InputError(f"{type(objective).__name__} can't be cached; leave gradient_cache out.")
        if objective.needs == "token_vectors" and self.processes.world_size > 1:
            raise InputError(f"{type(objective).__name__} is trained by one process; start it without torchrun.")
        return self._whole(batch, objective)

    def _by_micro_batch(self, batch: SplitBatch, objective: Objective) -> tuple[Tensor, Tensor]:
        device = self.processes.device
        loss, size = torch.zeros((), device=device), torch.zeros((), device=device)
        for position, micro_batch in enumerate(batch.micro_batches):
            assert micro_batch.known is not None
            assert micro_batch.order_of is not None
            rows = self._outputs(position, micro_batch, objective.needs)
            is_by_text = objective.needs != "token_states"
            outputs: Any
            if objective.needs == "token_vectors":
                packed, order = [micro_batch.packed], micro_batch.order_of
                outputs = tokens_by_text(rows, packed, order, batch.batch.num_sequences, self.dropped)
            else:
                outputs = torch.split(rows[micro_batch.order_of], micro_batch.num_examples) if is_by_text else (rows,)
            known = self._with_words(objective, micro_batch.known)
            own_size = objective.size(outputs, known)
            part = objective(outputs, known) * own_size
            part.backward()
            loss, size = loss + part.detach(), size + own_size
        return loss, size

    def _whole(self, batch: SplitBatch, objective: Objective) -> tuple[Tensor, Tensor]:
        assert batch.known is not None
        parts = batch.micro_batches
        is_cached = len(parts) > 1 if self.is_cached is None else self.is_cached
        # with gradients also where they are dropped at once: the second pass has to go through the same kernels
        rows = [self._outputs(position, part, objective.needs, is_cached) for position, part in enumerate(parts)]
        empty = torch.zeros(0, *self.shape[objective.needs], device=self.processes.device)
        is_ragged = objective.needs == "token_vectors"
        own = torch.cat([part.detach() for part in rows] or [empty])
        own = (own if is_ragged else own[batch.order_of]).requires_grad_()
        outputs = self._by_text(own, batch) if is_ragged else self._of_all(own, batch)
        known = self._with_words(objective, batch.known)
        size = objective.size(outputs, known)
        # every process computes the whole loss: a fraction of it each adds up to the whole
        loss = objective(outputs, known) * size
        loss.backward()
        gradient = torch.zeros_like(own)
        if own.grad is not None and is_ragged:
            gradient = own.grad
        elif own.grad is not None:
            gradient[batch.order_of] = own.grad
        gradients = torch.split(gradient, [len(part) for part in rows]) if rows else ()
        for position, (part, own_gradient) in enumerate(zip(parts, gradients, strict=True)):
            with_graph = self._outputs(position, part, objective.needs) if is_cached else rows[position]
            torch.autograd.backward(with_graph, own_gradient)
        fraction = 1 / self.processes.world_size
        # filled in on the device: copying a number would wait for it
        whole = size if isinstance(size, Tensor) else torch.full((), float(size), device=loss.device)
        return loss.detach() * fraction, whole * fraction

    @torch.no_grad()
    def loss(self, batch: SplitBatch, objective: Objective) -> float:
        """Return the loss of a batch of one process without dropout and without gradients."""
        was_training, _ = self.network.training, self.network.eval()
        rows = [self._outputs(place, part, objective.needs) for place, part in enumerate(batch.micro_batches)]
        self.network.train(was_training)
        assert batch.known is not None
        whole = torch.cat(rows)
        if objective.needs == "token_vectors":
            return float(objective(self._by_text(whole, batch), batch.known))
        outputs = torch.chunk(whole[batch.order_of], batch.batch.num_sequences)
        return float(objective(outputs, self._with_words(objective, batch.known)))

    def together(self, number: int, batches: Sequence[tuple[SplitBatch, Objective]], weight: float) -> Tensor:
        """Add the gradient of the weighted mean losses of several batches of one micro-batch each, in one pass.

        A small network waits for its launches more than it computes: thirteen batches cost little more than one.
        """
        self.number = number
        packed, positions = join([batch.micro_batches[0].packed for batch, _ in batches])
        whole = MicroBatch(packed.pinned() if self.processes.device.type == "cuda" else packed, None, None, 0)
        needs = batches[0][1].needs
        outputs_of_all = self._outputs(0, whole, needs)
        own = outputs_of_all.detach().requires_grad_()
        total = torch.zeros((), device=own.device)
        counts = [len(batch.micro_batches[0].packed.lengths) for batch, _ in batches]
        positions_of = torch.split(to_device(positions, own.device), counts)
        for (batch, objective), positions_S in zip(batches, positions_of, strict=True):
            only = batch.micro_batches[0]
            order, known = (only.order_of, only.known) if objective.is_separable else (batch.order_of, batch.known)
            assert order is not None
            assert known is not None
            outputs = torch.chunk(own[positions_S[order]], batch.batch.num_sequences)
            loss = objective(outputs, self._with_words(objective, known)) * weight
            loss.backward()
            total = total + loss.detach()
        assert own.grad is not None
        torch.autograd.backward(outputs_of_all, own.grad)
        return total

    def _by_text(self, own: Tensor, batch: SplitBatch) -> list[Any]:
        parts = [part.packed for part in batch.micro_batches]
        return tokens_by_text(own, parts, batch.order_of, batch.batch.num_sequences, self.dropped)

    def _of_all(self, own: Tensor, batch: SplitBatch) -> list[Tensor]:
        """Gather each column's outputs for the whole batch; gradients go to this process's own rows only."""
        sizes, count = batch.batch.sizes, batch.batch.num_sequences
        parts = self.processes.all_gather(own.detach(), [size * count for size in sizes])
        parts[self.processes.rank] = own
        columns = [part.reshape(count, size, *own.shape[1:]) for part, size in zip(parts, sizes, strict=True)]
        return [torch.cat([part[column] for part in columns]) for column in range(count)]

    def _outputs(self, position: int, micro_batch: MicroBatch, needs: str, is_detached: bool = False) -> Tensor:
        """Run the network on a micro-batch, with the dropout of its position."""
        torch.manual_seed(seed_of(self.seed, self.number, self.processes.rank, position))
        with self._precision():
            outputs = self._forward(micro_batch.packed.to(self.processes.device), needs).float()
        return outputs.detach() if is_detached else outputs

    def _forward(self, batch: Packed, needs: str) -> Tensor:
        network = self.network
        if needs == "token_states":
            states_TD: Tensor = network.encoder(batch)
            return states_TD
        if needs == "layers":
            encoder = network.encoder.own
            assert encoder is not None
            assert isinstance(network, SentenceNetwork)
            return torch.stack([network.head(states, batch) for states in encoder.layers(batch)[1:]], dim=1)
        outputs: Tensor = network(batch)
        return outputs

    def _precision(self) -> AbstractContextManager[None]:
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.processes.device.type, self.dtype)

    def _with_words(self, objective: Objective, known: dict[str, Tensor]) -> dict[str, Tensor]:
        if "words" not in objective.extras:
            return known
        words = self.network.encoder.table
        assert words is not None
        return {**known, "words": words.weight}


@dataclass(frozen=True)
class PartialGradient:
    """The gradient of the batches of one dataset in an update."""

    loss: Tensor  # times size
    size: Tensor
    weight: float  # in the update
    gradients: list[Tensor | None]


class Gradients:
    """Combines the gradients of all batches and processes: one exchange for an update."""

    def __init__(self, network: nn.Module, objectives: Sequence[Objective], processes: ProcessGroup) -> None:
        self.processes = processes
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        for objective in objectives:
            self.parameters += [p for p in objective.parameters() if p.requires_grad]
        # every process has computed the whole loss, and so has the whole gradient of these
        whole = {id(p) for objective in objectives if not objective.is_separable for p in objective.parameters()}
        self.is_whole = [id(p) in whole for p in self.parameters]

    def take(self, loss: Tensor, size: Tensor, weight: float = 1.0) -> PartialGradient:
        """Take the gradients out of `.grad`."""
        part = PartialGradient(loss.float(), size.float(), weight, [p.grad for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        return part

    def finish(self, parts: Sequence[PartialGradient]) -> Tensor:
        """Leave the gradient of the weighted mean of the parts' losses in `.grad`, and return that loss.

        Each part is a mean of its own: an objective that counts tokens would drown one that counts examples.
        """
        parts = [self._of_all(part) for part in parts]
        total: list[Tensor | None] = [None] * len(self.parameters)
        loss = torch.zeros((), device=self.processes.device)
        for part in parts:
            scale = part.weight / part.size.clamp(min=1e-6)  # nothing to learn from: a loss of 0, not 0 / 0
            loss = loss + part.loss * scale
            torch._foreach_mul_([gradient for gradient in part.gradients if gradient is not None], scale)
            total = [_sum(sum_, gradient) for sum_, gradient in zip(total, part.gradients, strict=True)]
        for parameter, gradient in zip(self.parameters, total, strict=True):
            parameter.grad = gradient
        return loss

    def _of_all(self, part: PartialGradient) -> PartialGradient:
        """Sum over the processes."""
        if self.processes.world_size == 1:
            return part
        pairs = zip(part.gradients, self.parameters, self.is_whole, strict=True)
        gradients = [
            (torch.zeros_like(p) if gradient is None else gradient).div_(self.processes.world_size if is_whole else 1)
            for gradient, p, is_whole in pairs
        ]
        totals = torch.stack([part.loss, part.size])
        self.processes.all_reduce([totals, *gradients])
        return PartialGradient(totals[0], totals[1], part.weight, list(gradients))


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return a if b is None else b if a is None else a.add_(b)


def seed_of(*numbers: int) -> int:
    """Derive one seed from several numbers, the same on every machine.

    >>> seed_of(1, 2) == seed_of(1, 2) != seed_of(2, 1)
    True
    """
    text = ",".join(map(str, numbers)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest())
