"""The table: an entry is known by both of its hashes, wherever it had to be put."""

from itertools import chain

import numpy as np

from munjang.text.lookup.table import OTHER, UNKNOWN, Table


def add(table: Table, hashes: list[int], second: list[int], ids: list[list[int]]) -> None:
    counts = np.array([len(one) for one in ids])
    flat = np.array(list(chain(*ids)), np.int32)
    table.add(np.array(hashes, np.uint64), np.array(second, np.uint64), flat, counts)


def test_an_entry_is_known_by_both_hashes() -> None:
    table = Table()
    add(table, [7], [70], [[5]])
    found = table.entries(np.array([7, 7, 8], np.uint64), np.array([70, 71, 70], np.uint64))
    assert found.tolist() == [0, OTHER, UNKNOWN]


def test_slots_that_are_taken_are_passed_over() -> None:
    table = Table()
    mask = len(table.slots)
    values = [3, 3 + mask, 4, 3 + 2 * mask]  # three want one slot, the fourth is pushed on
    hashes = np.array(values, np.uint64)
    for place, value in enumerate(values):
        add(table, [value], [place], [[place]])
    together = Table()
    add(together, values, [0, 1, 2, 3], [[0], [1], [2], [3]])
    assert table.find(hashes).tolist() == together.find(hashes).tolist() == [0, 1, 2, 3]
    assert table.find(np.array([3 + 3 * mask, 9], np.uint64)).tolist() == [UNKNOWN, UNKNOWN]
