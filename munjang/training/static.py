"""A static sibling of a model: a vector for each piece of its vocabulary, averaged; no network, microseconds a text.

V pieces, D width of the teacher, K of the student, N texts.

Each piece goes through the teacher alone; frequent pieces weigh less (SIF); the mean that all texts would share is
taken out; the directions in which the teacher's sentences differ most are kept; then the vectors are refined until a
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
from munjang.nn.encoder import Encoder
from munjang.nn.heads import Normalize
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.options import option
from munjang.text.tokenizer import Tokenizer
from munjang.training.static_refine import Lesson, refine
from munjang.types import Ids, Ints, TokenIds

HELD_OUT = 0.02  # share of the texts that only measure
MOST_HELD_OUT = 2000


@dataclass(frozen=True, kw_only=True)
class StaticConfig:
    """How a static model is made."""

    dimensions: int = option("components of the static vectors", 256)
    smoothing: float = option("share of all pieces at which a piece weighs half (SIF)", 1e-3)
    refine_epochs: int = option("how often the texts are gone through to refine the vectors; 0: never", 2)
    learning_rate: float = option("highest learning rate of the refining", 5e-4)
    batch_size: int = option("texts of a batch", 1024)
    seed: int = option("of everything that is drawn", 12)


@dataclass(frozen=True)
class StaticReport:
    """What came out: the mean cosine to the teacher's vectors over texts that were held out."""

    num_texts: int
    num_tokens: int
    cosine_before: float
    cosine_after: float

    def __str__(self) -> str:
        return (
            f"{self.num_texts:,} texts of {self.num_tokens / self.num_texts:.1f} pieces; mean cosine to the teacher on "
            f"texts held out: {self.cosine_before:.4f} before refining, {self.cosine_after:.4f} after"
        )


def load_teacher(path: str, device: str | None = None, dtype: str | None = None) -> BiEncoder:
    """A model to distill: on a CPU that can in 8 bits, twice as fast, which the student does not notice."""
    teacher = BiEncoder.load(path, device, dtype)
    is_ours = teacher.device.type == "cpu" and isinstance(teacher.network.encoder, Encoder)
    return BiEncoder.load(path, "cpu", "int8") if dtype is None and is_ours and can_pack(torch.int8) else teacher


def distill_static(
    teacher: BiEncoder, texts: list[str], config: StaticConfig | None = None, progress: bool | None = None
) -> tuple[BiEncoder, StaticReport]:
    """The static sibling of a bi-encoder, made with texts of the kind that it will meet."""
    config = config or StaticConfig()
    _check(teacher, config)
    flat, lengths = _bodies(teacher, texts)
    texts = [text for text, length in zip(texts, lengths.tolist(), strict=True) if length]
    lengths = lengths[lengths > 0]
    if len(texts) < 2 * config.dimensions:
        raise InputError(f"{len(texts):,} texts are too few for {config.dimensions} components; give thousands.")
    device = teacher.device
    counts_V = torch.from_numpy(np.bincount(flat, minlength=teacher.model.network.encoder.vocab_size)).to(device)
    sentences_ND = torch.from_numpy(teacher.encode(texts, normalize=True, progress=progress)).to(device)
    basis_DK = principal(sentences_ND, config.dimensions)
    weight_VK = start(_pieces(teacher, progress).to(device), counts_V, config.smoothing) @ basis_DK
    weight_VK[_silent(teacher.tokenizer)] = 0.0
    targets_NK = F.normalize((sentences_ND - sentences_ND.mean(0)) @ basis_DK, dim=-1)
    lesson = Lesson(
        torch.from_numpy(flat.astype(np.int64)).to(device), torch.from_numpy(lengths).to(device), targets_NK
    )
    order_N = torch.randperm(len(lesson), generator=torch.Generator().manual_seed(config.seed)).to(device)
    num_held = max(1, min(MOST_HELD_OUT, round(HELD_OUT * len(lesson))))
    held, taught = lesson.take(order_N[:num_held]), lesson.take(order_N[num_held:])
    before = float(held.cosines(weight_VK).mean())
    if config.refine_epochs:
        options = (config.refine_epochs, config.learning_rate, config.batch_size, config.seed, progress)
        weight_VK = refine(weight_VK, taught, *options)
    report = StaticReport(len(texts), len(flat), before, float(held.cosines(weight_VK).mean()))
    return _model(teacher, weight_VK.cpu()), report


def _check(teacher: BiEncoder, config: StaticConfig) -> None:
    if isinstance(teacher.network.encoder, StaticEncoder):
        raise InputError(f"{teacher.model.folder} is static already.")
    if not 1 <= config.dimensions <= teacher.width:
        raise InputError(f"dimensions must be between 1 and the teacher's {teacher.width}, not {config.dimensions}.")
    if config.refine_epochs < 0 or config.batch_size < 1:
        raise InputError("refine_epochs must be at least 0 and batch_size at least 1.")
    if not 0 < config.smoothing < float("inf") or not 0 < config.learning_rate < float("inf"):
        raise InputError("smoothing and learning_rate must be numbers over 0.")


def _bodies(teacher: BiEncoder, texts: list[str]) -> tuple[Ids, Ints]:
    """Flat pieces of all texts as far as the teacher reads them and they say something, and how many each has."""
    flat, lengths = teacher.tokenizer.bodies(texts)
    room = teacher.tokenizer.room(teacher.tokenizer.single)
    text_of = np.repeat(np.arange(len(texts)), lengths)
    within = np.arange(len(flat)) - (np.cumsum(lengths) - lengths)[text_of]
    is_kept = ~np.isin(flat, _silent(teacher.tokenizer)) & (within < (len(flat) if room is None else room))
    return flat[is_kept], np.bincount(text_of[is_kept], minlength=len(texts)).astype(np.int64)


def _pieces(teacher: BiEncoder, progress: bool | None) -> Tensor:
    """The teacher's vector for every piece alone, between the special tokens of a text [V, D]."""
    num_pieces = teacher.model.network.encoder.vocab_size
    ids = np.arange(num_pieces, dtype=np.int32)
    tokens = teacher.tokenizer.finish(ids, np.ones(num_pieces, np.int64))
    rows = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
    return torch.from_numpy(teacher.encode(TokenIds(rows), normalize=True, progress=progress))


def principal(vectors_ND: Tensor, num_kept: int) -> Tensor:
    """The directions of the largest variance [D, K], the largest first."""
    centred_ND = vectors_ND - vectors_ND.mean(0)
    _, directions_DD = torch.linalg.eigh(centred_ND.T @ centred_ND)  # in ascending order
    return directions_DD[:, -num_kept:].flip(1)


def start(pieces_VD: Tensor, counts_V: Tensor, smoothing: float) -> Tensor:
    """Piece vectors weighted by how rare they are, so that the mean of all texts' vectors is zero."""
    share_V = (counts_V + 1) / (counts_V.sum() + len(counts_V))  # one more of each: a piece that was not seen is rare
    weight_V = (smoothing / (smoothing + share_V)).float()
    use_V = share_V.float() * weight_V
    centre_D = (pieces_VD * use_V[:, None]).sum(0) / use_V.sum()
    return (pieces_VD - centre_D) * weight_V[:, None]


def _silent(tokenizer: Tokenizer) -> list[int]:
    """Pieces that say nothing: special tokens and the unknown one. Behind Normalize a zero is as if left out."""
    special = [id for id, token in tokenizer.rust.get_added_tokens_decoder().items() if token.special]
    unknown = checkpoint.unknown_id(tokenizer)
    return special if unknown is None else [*special, unknown]


def _model(teacher: BiEncoder, weight_VK: Tensor) -> BiEncoder:
    rust = RustTokenizer.from_str(teacher.tokenizer.rust.to_str())
    tokenizer = Tokenizer(rust, None, has_special=False)
    network = SentenceNetwork(StaticEncoder(weight_VK), ("mean",), [Normalize()])
    model = checkpoint.Model(network, tokenizer, "distilled", Path(teacher.model.folder))
    return BiEncoder(model, torch.device("cpu"), torch.float32)
