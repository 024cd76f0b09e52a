"""Distill a static model: one vector for each token of the vocabulary, averaged over a text; no network to compute.

V tokens of the vocabulary, D dimension of the teacher, K of the student, T tokens of all texts in a row, N texts,
B texts of a batch.

Each token goes through the teacher alone; frequent tokens weigh less (SIF); the mean that all texts would share is
subtracted; the directions in which the teacher's sentences differ most are kept; then the vectors are refined until a
text's mean points where the teacher's vector does.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer as RustTokenizer
from torch import Tensor

from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.nn.cpu import can_pack
from munjang.nn.heads import Normalize
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.options import option
from munjang.progress import Progress
from munjang.text.tokenizer import Tokenizer
from munjang.types import Ids, Ints, TokenIds

HELD_OUT_FRACTION = 0.02  # of the texts, which only measure
MAX_HELD_OUT_TEXTS = 2000


@dataclass(frozen=True, kw_only=True)
class StaticConfig:
    """Settings of `distill_static`."""

    dimensions: int = option("dimension of the static vectors", 256)
    smoothing: float = option("relative frequency at which a token weighs half (SIF)", 1e-3)
    refine_epochs: int = option("passes over the texts to refine the vectors; 0: none", 2)
    learning_rate: float = option("highest learning rate of refining", 5e-4)
    batch_size: int = option("texts of a batch", 1024)
    seed: int = option("seed of all random numbers", 12)


@dataclass(frozen=True)
class StaticReport:
    """Mean cosine to the teacher's vectors on held-out texts, before and after refining."""

    num_texts: int
    num_tokens: int
    cosine_before: float
    cosine_after: float

    def __str__(self) -> str:
        return (
            f"{self.num_texts:,} texts of {self.num_tokens / self.num_texts:.1f} tokens; mean cosine to the teacher on "
            f"texts held out: {self.cosine_before:.4f} before refining, {self.cosine_after:.4f} after"
        )


def load_teacher(path: str, device: str | None = None, dtype: str | None = None) -> BiEncoder:
    """Load a model to distill, in int8 on a CPU that can: twice as fast, and the student is as good."""
    teacher = BiEncoder.load(path, device, dtype)
    is_ours = teacher.device.type == "cpu" and teacher.network.encoder.own is not None
    return BiEncoder.load(path, "cpu", "int8") if dtype is None and is_ours and can_pack(torch.int8) else teacher


def distill_static(
    teacher: BiEncoder, texts: list[str], config: StaticConfig | None = None, progress: bool | None = None
) -> tuple[BiEncoder, StaticReport]:
    """Make a static model from a bi-encoder and texts of the kind that it will encode."""
    config = config or StaticConfig()
    _check(teacher, config)
    flat, lengths = _bodies(teacher, texts)
    texts = [text for text, length in zip(texts, lengths.tolist(), strict=True) if length]
    lengths = lengths[lengths > 0]
    if len(texts) < 2 * config.dimensions:
        raise InputError(f"{len(texts):,} texts are too few for {config.dimensions} dimensions; give thousands.")
    device = teacher.device
    counts_V = torch.from_numpy(np.bincount(flat, minlength=teacher.model.network.encoder.vocab_size)).to(device)
    sentences_ND = torch.from_numpy(teacher.encode(texts, normalize=True, progress=progress)).to(device)
    basis_DK = principal(sentences_ND, config.dimensions)
    weight_VK = start(_token_vectors(teacher, progress).to(device), counts_V, config.smoothing) @ basis_DK
    weight_VK[_silent(teacher.tokenizer)] = 0.0
    targets_NK = F.normalize((sentences_ND - sentences_ND.mean(0)) @ basis_DK, dim=-1)
    lesson = Lesson(
        torch.from_numpy(flat.astype(np.int64)).to(device), torch.from_numpy(lengths).to(device), targets_NK
    )
    order_N = torch.randperm(len(lesson), generator=torch.Generator().manual_seed(config.seed)).to(device)
    num_held = max(1, min(MAX_HELD_OUT_TEXTS, round(HELD_OUT_FRACTION * len(lesson))))
    held, taught = lesson.take(order_N[:num_held]), lesson.take(order_N[num_held:])
    before = float(held.cosines(weight_VK).mean())
    if config.refine_epochs:
        options = (config.refine_epochs, config.learning_rate, config.batch_size, config.seed, progress)
        weight_VK = refine(weight_VK, taught, *options)
    report = StaticReport(len(texts), len(flat), before, float(held.cosines(weight_VK).mean()))
    return static_model(teacher, weight_VK.cpu()), report


def _check(teacher: BiEncoder, config: StaticConfig) -> None:
    if teacher.network.encoder.is_static:
        raise InputError(f"{teacher.model.folder} is static already.")
    if not 1 <= config.dimensions <= teacher.width:
        raise InputError(f"dimensions must be between 1 and the teacher's {teacher.width}, not {config.dimensions}.")
    if config.refine_epochs < 0 or config.batch_size < 1:
        raise InputError("refine_epochs must be at least 0 and batch_size at least 1.")
    if not 0 < config.smoothing < float("inf") or not 0 < config.learning_rate < float("inf"):
        raise InputError("smoothing and learning_rate must be numbers over 0.")


def _bodies(teacher: BiEncoder, texts: list[str]) -> tuple[Ids, Ints]:
    """Return the tokens of all texts in a row, up to the teacher's length and without silent ones, and their counts."""
    flat, lengths = teacher.tokenizer.bodies(texts)
    room = teacher.tokenizer.room(teacher.tokenizer.single)
    text_of = np.repeat(np.arange(len(texts)), lengths)
    within = np.arange(len(flat)) - (np.cumsum(lengths) - lengths)[text_of]
    is_kept = ~np.isin(flat, _silent(teacher.tokenizer)) & (within < (len(flat) if room is None else room))
    return flat[is_kept], np.bincount(text_of[is_kept], minlength=len(texts)).astype(np.int64)


def _token_vectors(teacher: BiEncoder, progress: bool | None) -> Tensor:
    """Return the teacher's vector of every token alone, between the special tokens of a text [V, D]."""
    num_tokens = teacher.model.network.encoder.vocab_size
    ids = np.arange(num_tokens, dtype=np.int32)
    tokens = teacher.tokenizer.finish(ids, np.ones(num_tokens, np.int64))
    rows = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
    return torch.from_numpy(teacher.encode(TokenIds(rows), normalize=True, progress=progress))


def principal(vectors_ND: Tensor, num_kept: int) -> Tensor:
    """Return the directions of largest variance [D, K], the largest first."""
    centred_ND = vectors_ND - vectors_ND.mean(0)
    _, directions_DD = torch.linalg.eigh(centred_ND.T @ centred_ND)  # in ascending order
    return directions_DD[:, -num_kept:].flip(1)


def start(tokens_VD: Tensor, counts_V: Tensor, smoothing: float) -> Tensor:
    """Weigh token vectors by how rare they are, so that the mean of all texts' vectors is zero."""
    frequency_V = (counts_V + 1) / (counts_V.sum() + len(counts_V))  # plus one: an unseen token is rare
    weight_V = (smoothing / (smoothing + frequency_V)).float()
    use_V = frequency_V.float() * weight_V
    centre_D = (tokens_VD * use_V[:, None]).sum(0) / use_V.sum()
    return (tokens_VD - centre_D) * weight_V[:, None]


def _silent(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens without meaning, special and unknown ones; before Normalize a zero is as if left out."""
    special = [id for id, token in tokenizer.rust.get_added_tokens_decoder().items() if token.special]
    unknown = checkpoint.unknown_id(tokenizer)
    return special if unknown is None else [*special, unknown]


def static_model(teacher: BiEncoder, weight_VK: Tensor) -> BiEncoder:
    """Return a model of one vector per token, with the tokenizer of another and without special tokens."""
    rust = RustTokenizer.from_str(teacher.tokenizer.rust.to_str())
    tokenizer = Tokenizer(rust, None, has_special=False)
    network = SentenceNetwork(StaticEncoder(weight_VK), ("mean",), [Normalize()])
    model = checkpoint.Model(network, tokenizer, "distilled", Path(teacher.model.folder))
    return BiEncoder(model, torch.device("cpu"), torch.float32)


@dataclass(frozen=True)
class Lesson:
    """Texts as tokens, and the vectors that they should have."""

    ids_T: Tensor
    lengths_N: Tensor
    targets_NK: Tensor  # of unit length

    def __len__(self) -> int:
        return len(self.lengths_N)

    def take(self, rows_B: Tensor) -> "Lesson":
        """Select texts, in this order."""
        starts_N, lengths_B = self.lengths_N.cumsum(0) - self.lengths_N, self.lengths_N[rows_B]
        shift_B = starts_N[rows_B] - (lengths_B.cumsum(0) - lengths_B)
        at_T = torch.repeat_interleave(shift_B, lengths_B)
        at_T = at_T + torch.arange(len(at_T), device=at_T.device)
        return Lesson(self.ids_T[at_T], lengths_B, self.targets_NK[rows_B])

    def cosines(self, weight_VK: Tensor) -> Tensor:
        """Return the cosine of each text's static vector with its target."""
        starts_N = self.lengths_N.cumsum(0) - self.lengths_N
        sums_NK = F.embedding_bag(self.ids_T, weight_VK, starts_N, mode="sum")
        return (F.normalize(sums_NK, dim=-1) * self.targets_NK).sum(1)


def refine(
    start_VK: Tensor,
    lesson: Lesson,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
    progress: bool | None = None,
) -> Tensor:
    """Minimise one minus the cosine by Adam, with a rate that falls to zero; return the new vectors."""
    weight_VK = start_VK.clone().requires_grad_()
    optimizer = torch.optim.Adam([weight_VK], lr=learning_rate)
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(lesson), generator=generator).to(weight_VK.device) for _ in range(epochs)]
    batches = [order_N[at : at + batch_size] for order_N in orders for at in range(0, len(lesson), batch_size)]
    with Progress(len(batches), "refining, batches", progress) as bar:
        for step, rows_B in enumerate(batches):
            optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / len(batches))
            loss = 1 - lesson.take(rows_B).cosines(weight_VK).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            optimizer.step()
            bar.advance()
    return weight_VK.detach()
