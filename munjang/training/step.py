"""The training step: a batch and an objective to gradients. Chunks, the gradient cache and gathering live here, once.

b examples of this process, B of the whole batch, K sequences of each example, D width.

Objectives of one example at a time are computed chunk by chunk. The others see the outputs of the whole batch, from
all processes: every process computes the whole loss (a matrix product, little beside the encoder) and takes the
gradient of its own rows from it, so that any number of processes gives the same gradient. If the batch is cut into
several chunks, no chunk's activations are kept: they are computed a second time with the same dropout (gradient cache).
Dropout is drawn from (seed, step, process, chunk), so that a run that goes on needs no random state of the past.
"""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from munjang.errors import InputError
from munjang.nn.encoder import Encoder
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.objectives.base import Objective
from munjang.text.packing import Packed, join
from munjang.training.batches import to_device
from munjang.training.chunks import Chunk, Work
from munjang.training.processes import Processes


class Step:
    """Adds a batch's gradient to `.grad` of the network and the objective.

    The gradient is that of loss times size; `Gradients` divides by the sizes once everything is added up.
    """

    def __init__(
        self,
        network: SentenceNetwork | PairNetwork,
        processes: Processes,
        shape: dict[str, tuple[int, ...]],
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        is_cached: bool | None = None,
    ) -> None:
        self.network, self.processes, self.seed, self.dtype = network, processes, seed, dtype
        self.shape = shape  # of one row of outputs, by what objectives need
        self.is_cached = is_cached  # None: where the batch is cut into several chunks
        self.number = 0

    def __call__(self, number: int, work: Work, objective: Objective) -> tuple[Tensor, Tensor]:
        """The loss times its size, and the size: of this process's part, or its share of the whole."""
        self.number = number
        if objective.is_separable:
            return self._chunk_by_chunk(work, objective)
        if self.is_cached and not objective.can_be_cached:
            raise InputError(f"{type(objective).__name__} can't be cached; leave gradient_cache out.")
        return self._whole(work, objective)

    def _chunk_by_chunk(self, work: Work, objective: Objective) -> tuple[Tensor, Tensor]:
        device = self.processes.device
        loss, size = torch.zeros((), device=device), torch.zeros((), device=device)
        for place, chunk in enumerate(work.chunks):
            assert chunk.known is not None
            assert chunk.order_of is not None
            found = self._outputs(place, chunk, objective.needs)
            is_by_text = objective.needs != "token_states"
            outputs = torch.split(found[chunk.order_of], chunk.num_examples) if is_by_text else (found,)
            known = self._with_words(objective, chunk.known)
            own_size = objective.size(outputs, known)
            part = objective(outputs, known) * own_size
            part.backward()
            loss, size = loss + part.detach(), size + own_size
        return loss, size

    def _whole(self, work: Work, objective: Objective) -> tuple[Tensor, Tensor]:
        assert work.known is not None
        is_cached = len(work.chunks) > 1 if self.is_cached is None else self.is_cached
        # with gradients also where they are dropped at once: the second pass has to go through the same kernels
        found = [self._outputs(place, chunk, objective.needs, is_cached) for place, chunk in enumerate(work.chunks)]
        empty = torch.zeros(0, *self.shape[objective.needs], device=self.processes.device)
        own = torch.cat([each.detach() for each in found] or [empty])[work.order_of].requires_grad_()
        outputs = self._of_all(own, work)
        known = self._with_words(objective, work.known)
        size = objective.size(outputs, known)
        # everyone computes the whole: its share of it is what adds up
        loss = objective(outputs, known) * size
        loss.backward()
        gradient = torch.zeros_like(own)
        if own.grad is not None:
            gradient[work.order_of] = own.grad
        parts = torch.split(gradient, [len(each) for each in found]) if found else ()
        for place, (chunk, part) in enumerate(zip(work.chunks, parts, strict=True)):
            with_graph = self._outputs(place, chunk, objective.needs) if is_cached else found[place]
            torch.autograd.backward(with_graph, part)
        share = 1 / self.processes.world
        # a number is filled in there: copied, it would wait for the device
        whole = size if isinstance(size, Tensor) else torch.full((), float(size), device=loss.device)
        return loss.detach() * share, whole * share

    def together(self, number: int, parts: Sequence[tuple[Work, Objective]], weight: float) -> Tensor:
        """Add the gradient of the weighted mean losses of several batches, one chunk each, by one pass for all.

        A small network waits for its launches more than it computes: thirteen batches cost little more than one.
        """
        self.number = number
        packed, places = join([work.chunks[0].packed for work, _ in parts])
        whole = Chunk(packed.pinned() if self.processes.device.type == "cuda" else packed, None, None, 0)
        needs = parts[0][1].needs
        found = self._outputs(0, whole, needs)
        own = found.detach().requires_grad_()
        total = torch.zeros((), device=own.device)
        counts = [len(work.chunks[0].packed.lengths) for work, _ in parts]
        places_of = torch.split(to_device(places, own.device), counts)
        for (work, objective), places_S in zip(parts, places_of, strict=True):
            chunk = work.chunks[0]
            order, known = (chunk.order_of, chunk.known) if objective.is_separable else (work.order_of, work.known)
            assert order is not None
            assert known is not None
            outputs = torch.chunk(own[places_S[order]], work.batch.num_sequences)
            loss = objective(outputs, self._with_words(objective, known)) * weight
            loss.backward()
            total = total + loss.detach()
        assert own.grad is not None
        torch.autograd.backward(found, own.grad)
        return total

    def _of_all(self, own: Tensor, work: Work) -> list[Tensor]:
        """Each column's outputs for the whole batch; gradients go to this process's own rows only."""
        sizes, count = work.batch.sizes, work.batch.num_sequences
        parts = self.processes.gather(own.detach(), [size * count for size in sizes])
        parts[self.processes.rank] = own
        columns = [part.reshape(count, size, *own.shape[1:]) for part, size in zip(parts, sizes, strict=True)]
        return [torch.cat([each[column] for each in columns]) for column in range(count)]

    def _outputs(self, place: int, chunk: Chunk, needs: str, is_detached: bool = False) -> Tensor:
        """What the network makes of a chunk, with the dropout that belongs to it."""
        torch.manual_seed(seed_of(self.seed, self.number, self.processes.rank, place))
        with self._precision():
            found = self._forward(chunk.packed.to(self.processes.device), needs).float()
        return found.detach() if is_detached else found

    def _forward(self, batch: Packed, needs: str) -> Tensor:
        network = self.network
        if needs == "token_states":
            states_TD: Tensor = network.encoder(batch)
            return states_TD
        if needs == "layers":
            assert isinstance(network, SentenceNetwork)
            assert isinstance(network.encoder, Encoder)
            return torch.stack([network.head(states, batch) for states in network.encoder.layers(batch)[1:]], dim=1)
        outputs: Tensor = network(batch)
        return outputs

    def _precision(self) -> AbstractContextManager[None]:
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.processes.device.type, self.dtype)

    def _with_words(self, objective: Objective, known: dict[str, Tensor]) -> dict[str, Tensor]:
        if "words" not in objective.extras:
            return known
        assert isinstance(self.network.encoder, Encoder)
        return {**known, "words": self.network.encoder.embeddings.word.weight}


@dataclass(frozen=True)
class Part:
    """What the batches of one task have added up in an update."""

    loss: Tensor  # times size
    size: Tensor
    weight: float  # in the update
    gradients: list[Tensor | None]


class Gradients:
    """Puts together what the steps of all processes have added up: one exchange for an update."""

    def __init__(self, network: nn.Module, objectives: Sequence[Objective], processes: Processes) -> None:
        self.processes = processes
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        for objective in objectives:
            self.parameters += [p for p in objective.parameters() if p.requires_grad]
        # of these every process has the whole gradient, as it has computed the whole loss
        whole = {id(p) for each in objectives if not each.is_separable for p in each.parameters()}
        self.is_whole = [id(p) in whole for p in self.parameters]

    def take(self, loss: Tensor, size: Tensor, weight: float = 1.0) -> Part:
        """What is in `.grad`, which is empty afterwards."""
        part = Part(loss.float(), size.float(), weight, [p.grad for p in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        return part

    def finish(self, parts: Sequence[Part]) -> Tensor:
        """Leave the gradient of the weighted mean of the parts' losses in `.grad`; gives that loss.

        Each part is a mean of its own: a task that counts tokens would drown one that counts examples.
        """
        parts = [self._of_all(part) for part in parts]
        total: list[Tensor | None] = [None] * len(self.parameters)
        loss = torch.zeros((), device=self.processes.device)
        for part in parts:
            scale = part.weight / part.size.clamp(min=1e-6)  # nothing to learn from: a loss of 0, not 0 / 0
            loss = loss + part.loss * scale
            there = [gradient for gradient in part.gradients if gradient is not None]
            torch._foreach_mul_(there, scale)
            total = [_sum(sum_, gradient) for sum_, gradient in zip(total, part.gradients, strict=True)]
        for parameter, gradient in zip(self.parameters, total, strict=True):
            parameter.grad = gradient
        return loss

    def _of_all(self, part: Part) -> Part:
        """Added up over the processes."""
        if self.processes.world == 1:
            return part
        pairs = zip(part.gradients, self.parameters, self.is_whole, strict=True)
        gradients = [
            (torch.zeros_like(p) if gradient is None else gradient).div_(self.processes.world if is_whole else 1)
            for gradient, p, is_whole in pairs
        ]
        totals = torch.stack([part.loss, part.size])
        self.processes.add_up([totals, *gradients])
        return Part(totals[0], totals[1], part.weight, list(gradients))


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return a if b is None else b if a is None else a.add_(b)


def seed_of(*numbers: int) -> int:
    """One seed from several numbers, the same everywhere.

    >>> seed_of(1, 2) == seed_of(1, 2) != seed_of(2, 1)
    True
    """
    text = ",".join(map(str, numbers)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest())
