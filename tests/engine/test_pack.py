"""Windows to batches: rows, segments and skipped tokens go along, and no slot is padding."""

import numpy as np

from munjang.engine.pack import Budget, pack_window
from munjang.engine.tokenize import Window
from munjang.text.tokenizer import Tokens
from tests.engine.test_ahead import window_of


def test_batches_carry_types_skips_and_rows() -> None:
    lengths = np.array([1, 3, 2], np.int64)
    tokens = Tokens(np.array([10, 20, 21, 22, 30, 31], np.int32), lengths, np.array([0, 0, 1, 1, 0, 1], np.int32))
    window = Window(np.array([7, 8, 9]), tokens, np.array([1, 2, 3]))
    first, second = pack_window(window, Budget(3))
    one, two = first.packed, second.packed
    assert (first.rows_B.tolist(), second.rows_B.tolist()) == ([8], [9, 7])
    assert one.ids_T.tolist() == [20, 21, 22]
    assert two.ids_T.tolist() == [30, 31, 10]
    assert one.types_T is not None
    assert one.types_T.tolist() == [0, 1, 1]
    assert two.types_T is not None
    assert two.types_T.tolist() == [0, 1, 0]
    assert [batch.skip.tolist() for batch in (one, two) if batch.skip is not None] == [[2], [3, 1]]


def test_slots_are_tokens() -> None:
    lengths = np.random.default_rng(1).integers(0, 9, 30).tolist()
    slots = sum(batch.packed.num_tokens for batch in pack_window(window_of(lengths), Budget(16)))
    assert slots == sum(lengths)
