"""Texts and pairs that are tokenized on a GPU, here by Triton's interpreter: the results of the host's way."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.engine import on_device
from munjang.errors import CheckpointError, InputError, TruncationWarning
from munjang.text.device import SortedRow
from munjang.text.lookup import device
from munjang.text.lookup.device import Bodies, DeviceLookup
from tests.texts import HOSTILE, hostile, mixed

TEXTS = [*mixed(60, longest=25), *HOSTILE[:25], *hostile(60), "one", "하나", "one"]
TOLERANCE = 2e-6
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")


@pytest.fixture
def tokenizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a CPU tokenize like a GPU, in small windows; return the sizes of those that it did."""
    seen: list[int] = []

    real = on_device.check_row

    def noted(row: SortedRow, max_id: int, vocab_size: int) -> None:
        seen.append(len(row.lengths))
        real(row, max_id, vocab_size)

    monkeypatch.setattr(on_device, "check_row", noted)
    monkeypatch.setattr(device, "MAX_TEXT_CHARACTERS", 150)  # every step takes the interpreter some milliseconds
    monkeypatch.setattr(on_device, "MIN_UNITS", 1)
    monkeypatch.setattr(on_device, "WINDOW", 50)
    monkeypatch.setattr(on_device, "FIRST_WINDOW", 50)
    monkeypatch.setattr(on_device, "DEVICES_THAT_TOKENIZE", ())
    return seen


def turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "DEVICES_THAT_TOKENIZE", ("cpu", "cuda"))


OPTIONS = [
    {},
    {"prompt": "query: "},
    {"normalize": True, "truncate_dim": 8},
    {"output": "torch"},
    {"output": "tokens"},
    {"precision": "binary"},
    {"long": "average"},
    {"batch_tokens": 40},
]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert"])
def test_encode(make: Callable[..., Path], family: str, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiEncoder.load(make(family), device="cpu")
    tried = OPTIONS if family == "bert" else OPTIONS[:2]  # the interpreter takes seconds for each
    wanted = [model.encode(TEXTS, **options) for options in tried]
    assert tokenizes == []
    turn_on(monkeypatch)
    for options, rows in zip(tried, wanted, strict=True):
        del tokenizes[:]
        found = model.encode(TEXTS, **options)
        assert type(found) is type(rows)
        for one, other in zip(found, rows, strict=True):
            assert np.abs(np.asarray(one, float) - np.asarray(other, float)).max(initial=0) <= TOLERANCE
        assert sorted(tokenizes) == ([] if "long" in options else [len(set(TEXTS)) % 50, 50, 50])


def test_iterators_and_threads(tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.interpreter import GridExecutor

    lock, start = threading.RLock(), GridExecutor.__call__

    def one_at_a_time(*given: object, **options: object) -> None:
        with lock:  # what the interpreter changes for a kernel, it changes for all threads; a GPU needs none of this
            start(*given, **options)

    monkeypatch.setattr(GridExecutor, "__call__", one_at_a_time)
    model = BiEncoder.load(tiny_bert, device="cpu")
    wanted = model.encode(TEXTS)
    turn_on(monkeypatch)
    assert np.abs(np.concatenate(list(model.encode(iter(TEXTS), chunk_rows=30))) - wanted).max() <= TOLERANCE
    found: dict[int, np.ndarray] = {}
    threads = [threading.Thread(target=lambda at=at: found.update({at: model.encode(TEXTS[at::4])})) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(float(np.abs(found[at] - wanted[at::4]).max()) for at in range(4)) <= TOLERANCE


def test_predict(tmp_path: Path, tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = CrossEncoder.create(tiny_bert, device="cpu")
    pairs = [(TEXTS[at % len(TEXTS)], TEXTS[(7 * at + 3) % len(TEXTS)]) for at in range(130)]
    queries, documents = TEXTS[:9], [TEXTS[at : at + 30] for at in range(9)]
    wanted, hits = scorer.predict(pairs), scorer.rank_many(queries, documents)
    turn_on(monkeypatch)
    assert np.abs(scorer.predict(pairs) - wanted).max() <= TOLERANCE
    assert tokenizes
    found = scorer.rank_many(queries, documents)
    for one, other in zip(found, hits, strict=True):
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=TOLERANCE)


def test_ranking_tokenizes_every_text_once(
    tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch)
    scorer, given, look_up = CrossEncoder.create(tiny_bert, device="cpu"), list[str](), DeviceLookup.__call__

    def noted(self: DeviceLookup, texts: Sequence[str]) -> Bodies:
        given.extend(texts)
        return look_up(self, texts)

    monkeypatch.setattr(DeviceLookup, "__call__", noted)
    queries, documents = ["one", "two", "one"], [["a", "b", "one"], ["b", "c"], ["a", "c", "c"]]
    scorer.rank_many(queries, documents)
    assert sorted(given) == ["a", "b", "c", "one", "two"]


def test_texts_that_are_too_long(tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch)
    model = BiEncoder.load(tiny_bert, device="cpu")
    model.max_length = 8
    with pytest.warns(TruncationWarning, match="3 of 90 texts"):
        model.encode([*("word " * 30 + str(row) for row in range(3)), *(f"a {row}" for row in range(87))])
    with pytest.raises(InputError, match="2 texts are longer"):
        model.encode(["a"] * 30 + [f"b {row}" for row in range(40)] + ["c " * 30, "d " * 30], long="error")


def test_ids_without_an_embedding(tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch)
    model = BiEncoder.load(tiny_bert, device="cpu")
    model.tokenizer.rust.add_tokens(["zzzz"])
    with pytest.raises(CheckpointError, match="embeddings"):
        model.encode(["the", "zzzz zzzz"])
    assert np.isfinite(model.encode(["the", "fox"])).all()


def test_values_that_are_no_numbers(tiny_bert: Path, tokenizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    turn_on(monkeypatch)
    model = BiEncoder.load(tiny_bert, device="cpu")
    word = next(module for module in model.network.modules() if isinstance(module, torch.nn.Embedding))
    word.weight.data[model.tokenizer(["fox"]).ids[1]] = float("nan")
    with pytest.raises(CheckpointError, match="for 2 of 41 rows"):
        model.encode(["the fox", "fox", *(f"the {row}" for row in range(39))])
