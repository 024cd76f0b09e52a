"""The vocabulary of ko-en-small: what Korean and English text uses, and every character that Korean text may have."""

import re
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from munjang import BiEncoder
from munjang.checkpoint.prune import prune
from munjang.data.tables import read_texts

LINES = 307_000  # of each language: what the pieces are counted on
WORDS = "embeddings.word.weight"  # ends the name of the table
HANGUL = re.compile("[가-힣ㄱ-ㅎㅏ-ㅣ]")


def base(model: Path, data: Path, out: Path) -> None:
    """Prune the vocabulary to the pieces that Korean and English text uses at least twice, and Korean's characters."""
    texts: list[str] = []
    for name in ("en-sentences", "ko-reviews"):
        texts += [line for line, _ in zip(read_texts(data / f"text/{name}.txt.xz"), range(LINES), strict=False)]
    encoder = BiEncoder.load(model, "cpu", "float32")
    report = prune(encoder.model, texts, korean_characters(pieces(encoder)), min_count=2)
    print(report, flush=True)
    encoder.prompts = {}  # no prompt needed
    encoder.save(out)


def pieces(encoder: BiEncoder) -> dict[str, int]:
    """Every piece of the vocabulary with its number."""
    found: dict[str, int] = encoder.model.tokenizer.rust.get_vocab()
    return found


def only_korean_learns(encoder: BiEncoder) -> None:
    """Training changes the vectors of pieces with Hangul and nothing else: English stays what it is, to the bit."""
    table = encoder.network.encoder.get_submodule("embeddings.word")
    learns_V = torch.zeros(len(table.get_parameter("weight")), dtype=torch.bool)
    learns_V[[place for piece, place in pieces(encoder).items() if HANGUL.search(piece)]] = True
    encoder.network.requires_grad_(False)
    table.requires_grad_(True)
    table.register_buffer("learns_V", learns_V, persistent=False)  # moves with the network
    table.register_forward_hook(_without_others)


def _without_others(table: nn.Module, inputs: tuple[Tensor, ...], x_TD: Tensor) -> Tensor:
    learns_V: Tensor = table.get_buffer("learns_V")
    return torch.where(learns_V[inputs[0]][:, None], x_TD, x_TD.detach())


def korean_characters(vocabulary: Iterable[str]) -> list[str]:
    """Its pieces of one character: those of the Korean standard (Hanja, brackets, signs), and all syllables."""
    return [piece for piece in vocabulary if len(piece) == 1 and _is_korean(piece)]


def _is_korean(character: str) -> bool:
    try:
        character.encode("euc_kr")  # KS X 1001
    except UnicodeEncodeError:
        return "가" <= character <= "힣"
    return True
