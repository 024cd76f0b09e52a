"""The table gives what the tokenizer gives, from memory or from a file, whoever wrote the file and however it broke."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer

from munjang.data import tokens
from munjang.data.tokens import HEADER, TokenTable
from munjang.text.tokenizer import Tokenizer

TEXTS = [
    "the cat sat",
    "고양이가 앉았다",
    "",
    "the cat sat",
    "dog!",
    "lone \ud800 surrogate",
    "the cat sat ",
    "고양이가 앉았다",
]


@pytest.fixture(scope="module")
def tokenizer(tiny_bert: Path) -> Tokenizer:
    return Tokenizer(RustTokenizer.from_file(str(tiny_bert / "tokenizer.json")))


def expect(table: TokenTable, tokenizer: Tokenizer, texts: list[str], rows: list[int]) -> None:
    flat, lengths = table.take(rows)
    wanted, wanted_lengths = tokenizer.bodies([texts[row] for row in rows])
    assert flat.tolist() == wanted.tolist()
    assert lengths.tolist() == wanted_lengths.tolist()
    assert (flat.dtype, lengths.dtype) == (np.int32, np.int64)


@given(rows=st.lists(st.integers(0, len(TEXTS) - 1), max_size=20))
def test_takes_what_the_tokenizer_gives(tokenizer: Tokenizer, rows: list[int]) -> None:
    expect(TokenTable.build(TEXTS, tokenizer), tokenizer, TEXTS, rows)


def test_equal_texts_are_stored_once(tokenizer: Tokenizer) -> None:
    table = TokenTable.build(TEXTS, tokenizer)
    assert table.keys.tolist() == [0, 1, 2, 0, 3, 4, 5, 1]
    assert len(table) == len(TEXTS)
    assert len(table.starts) == 7
    assert table.lengths.tolist() == tokenizer.bodies(TEXTS)[1].tolist()
    assert len(table.ids) == tokenizer.bodies(list(dict.fromkeys(TEXTS)))[1].sum()


def test_a_device_gives_the_same(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here by Triton's interpreter."""
    pytest.importorskip("triton")
    monkeypatch.setattr(tokens, "MIN_TEXTS_FOR_DEVICE", 1)
    monkeypatch.setattr(Tokenizer, "bodies", None)
    table = TokenTable.build(TEXTS, tokenizer, device=torch.device("cpu"))
    monkeypatch.undo()
    expect(table, tokenizer, TEXTS, list(range(len(TEXTS))))


def test_no_texts(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        flat, lengths = TokenTable.build([], tokenizer, folder).take([])
        assert len(flat) == len(lengths) == 0


def test_the_file_is_found_again_and_mapped(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    first = TokenTable.build(TEXTS, tokenizer, folder)
    (path,) = folder.iterdir()
    written = path.stat().st_mtime_ns
    again = TokenTable.build(TEXTS, tokenizer, folder)
    assert path.stat().st_mtime_ns == written
    for table in (first, again):
        expect(table, tokenizer, TEXTS, [5, 0, 0, 2, 7])
        assert not table.ids.flags.writeable  # of the file
        assert not table.ids.flags.owndata
        assert table.keys.tolist() == [0, 1, 2, 0, 3, 4, 5, 1]


def test_other_texts_or_tokenizers_have_other_files(
    tokenizer: Tokenizer, make: Callable[..., Path], tmp_path: Path
) -> None:
    other = Tokenizer(RustTokenizer.from_file(str(make("roberta") / "tokenizer.json")))
    dropping = Tokenizer(tokenizer.rust)
    dropping.dropped = int(tokenizer.bodies(["cat"])[0][0])
    lists = [["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"], ["ab", "c", ""]]
    for texts in lists:
        expect(TokenTable.build(texts, tokenizer, tmp_path), tokenizer, texts, list(range(len(texts))))
    for one in (other, dropping):
        expect(TokenTable.build(lists[0], one, tmp_path), one, lists[0], [0, 1])
    assert len(list(tmp_path.iterdir())) == len(lists) + 2


def damaged(content: bytes) -> dict[str, bytes]:
    flipped = bytearray(content)
    flipped[-3] ^= 1
    return {
        "empty": b"",
        "short": content[:40],
        "half": content[: len(content) // 2],
        "longer": content + b"\0",
        "zeros": bytes(len(content)),
        "flipped": bytes(flipped),
        "absurd": HEADER.pack(content[:16], 2**62, -(2**62), 2**61, b"x" * 16) + content[HEADER.size :],
    }


def test_a_damaged_file_is_made_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    TokenTable.build(TEXTS, tokenizer, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for name, content in damaged(whole).items():
        path.unlink()  # not written over: earlier tables still map it
        path.write_bytes(content)
        expect(TokenTable.build(TEXTS, tokenizer, tmp_path), tokenizer, TEXTS, [0, 1, 5])
        assert path.read_bytes() == whole, name
    assert list(tmp_path.iterdir()) == [path]


RACE = """
import sys, time
from pathlib import Path
from tokenizers import Tokenizer as RustTokenizer
from munjang.data.tokens import TokenTable
from munjang.text.tokenizer import Tokenizer
tokenizer = Tokenizer(RustTokenizer.from_file(sys.argv[1]))
folder, name = Path(sys.argv[2]), sys.argv[3]
for turn in range(6):
    (folder / f"ready-{name}-{turn}").touch()
    while not (folder / f"ready-{'b' if name == 'a' else 'a'}-{turn}").exists():
        time.sleep(0)
    texts = [f"text {number % 500} of turn {turn}" for number in range(3000)]
    flat, lengths = TokenTable.build(texts, tokenizer, folder / "cache").take(range(3000))
    wanted, wanted_lengths = tokenizer.bodies(texts)
    assert flat.tolist() == wanted.tolist() and lengths.tolist() == wanted_lengths.tolist()
"""


def test_two_processes_at_once(tiny_bert: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACE, str(tiny_bert / "tokenizer.json"), str(tmp_path)]
    running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "ab"]
    try:
        for process in running:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
    finally:
        for process in running:
            process.kill()
    files = list((tmp_path / "cache").iterdir())
    assert len(files) == 6
    assert all(path.suffix == ".bin" for path in files)  # nothing half-written is left


def test_a_failed_write_leaves_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match="file"):
        TokenTable.build(TEXTS, tokenizer, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
