"""Tokens of all texts of a run: cut once, kept in a file that any number of processes map into memory.

A file holds a header, then where each distinct text starts (int64), the number of each text (int64), all ids (int32).
"""

import hashlib
import itertools
import os
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from munjang.data.examples import number_texts
from munjang.data.files import replacing
from munjang.text.flat import cumulative, gather
from munjang.text.tokenizer import Tokenizer
from munjang.types import Ids, Ints

HEADER = struct.Struct("<16sqqq16s8x")  # magic, numbers of texts, of distinct texts and of ids, hash of what follows
MAGIC = b"munjang tokens 1"
MIN_TEXTS_FOR_DEVICE = 1 << 17  # for fewer the host is done before the kernels are compiled


@dataclass(frozen=True)
class TokenTable:
    """Ids of texts without special tokens; equal texts are stored once."""

    ids: Ids
    starts: Ints  # of each distinct text, and the end of the last
    keys: Ints  # number of each text, the same for equal texts

    @classmethod
    def build(
        cls, texts: Sequence[str], tokenizer: Tokenizer, folder: Path | None = None, device: torch.device | None = None
    ) -> "TokenTable":
        """Load the file that another run or process left in `folder`, else write it; None: stay in memory.

        A GPU as `device` tokenizes where there is much to do.

        >>> from munjang import BiEncoder
        >>> TokenTable.build(["a cat", "a dog", "a cat"], BiEncoder.load().tokenizer).keys.tolist()
        [0, 1, 0]
        """
        if folder is None:
            return _made(texts, tokenizer, device)
        path = folder / f"tokens-{_fingerprint(texts, tokenizer)}.bin"
        cached = _mapped(path)
        if cached is not None:
            return cached
        table = _made(texts, tokenizer, device)
        folder.mkdir(parents=True, exist_ok=True)
        _write(table, path)
        return _mapped(path) or table  # mapped, so that processes of one machine share the memory

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def lengths(self) -> Ints:
        """Return the number of tokens of each text."""
        return np.diff(self.starts)[self.keys]

    def take(self, rows: Ints | Sequence[int]) -> tuple[Ids, Ints]:
        """Return the ids of some texts in a row, and how many each has."""
        keys = self.keys[np.asarray(rows, np.int64)]
        lengths = self.starts[keys + 1] - self.starts[keys]
        return gather(self.ids, self.starts, keys, lengths), lengths


def _made(texts: Sequence[str], tokenizer: Tokenizer, device: torch.device | None) -> TokenTable:
    keys, distinct = number_texts(texts), list(dict.fromkeys(texts))
    lookup = tokenizer.on(device) if device is not None and len(distinct) >= MIN_TEXTS_FOR_DEVICE else None
    ids, lengths = tokenizer.bodies(distinct) if lookup is None else lookup(distinct).to_host()
    return TokenTable(ids, cumulative(lengths), keys)


def _fingerprint(texts: Sequence[str], tokenizer: Tokenizer) -> str:
    """Hash everything that the tokens depend on."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{tokenizer.rust.to_str()}\0{tokenizer.dropped}\0".encode())
    digest.update(np.fromiter(map(len, texts), "<i8", len(texts)).tobytes())  # so that no two lists join to the same
    digest.update("".join(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _write(table: TokenTable, path: Path) -> None:
    parts = [
        np.ascontiguousarray(table.starts, "<i8"),
        np.ascontiguousarray(table.keys, "<i8"),
        np.ascontiguousarray(table.ids, "<i4"),
    ]
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part.data)
    # Every process has a name of its own to write to; they write the same, so it does not matter who is last.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with replacing(path, temporary) as file:
        sizes = len(table.keys), len(table.starts) - 1, len(table.ids)
        file.write(HEADER.pack(MAGIC, *sizes, digest.digest()))
        for part in parts:
            file.write(part.data)


def _mapped(path: Path) -> TokenTable | None:
    """Map the table of a file into memory; None if there is none, or an incomplete one."""
    try:
        content: NDArray[np.uint8] = np.asarray(np.memmap(path, np.uint8, "r"))
    except (FileNotFoundError, ValueError):  # numpy's error for an empty file
        return None
    if len(content) < HEADER.size:
        return None
    magic, num_texts, num_distinct, num_ids, digest = HEADER.unpack(content[: HEADER.size].tobytes())
    ends = np.cumsum([HEADER.size, 8 * (num_distinct + 1), 8 * num_texts, 4 * num_ids], dtype=object)
    if magic != MAGIC or min(num_texts, num_distinct, num_ids) < 0 or ends[-1] != len(content):
        return None
    if hashlib.blake2b(content[HEADER.size :].data, digest_size=16).digest() != digest:
        return None
    starts, keys, ids = (content[start:end] for start, end in itertools.pairwise(ends))
    return TokenTable(ids.view("<i4"), starts.view("<i8"), keys.view("<i8"))
