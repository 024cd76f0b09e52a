from random import Random

import numpy as np

from munjang.stores.filters import matches
from munjang.stores.memory.columns import Buffer, Column, rows_that_fit
from tests.stores.trees import random_row, random_tree

FIELDS = {"lang": "text", "year": "int", "price": "float", "open": "bool"}


def test_a_buffer_never_changes_what_it_gave_out() -> None:
    buffer = Buffer(2, dtype=np.int64)
    buffer.append([[1, 2]])
    first = buffer.rows
    for number in range(3000):
        buffer.append([[number, number]])
    assert first.tolist() == [[1, 2]]
    assert buffer.rows.shape == (3001, 2)
    assert buffer.rows[-1].tolist() == [2999, 2999]


def test_whole_columns_agree_with_single_rows() -> None:
    random = Random(2)
    rows = [random_row(random, FIELDS) for _ in range(150)]
    columns = {name: Column(name, kind) for name, kind in FIELDS.items()}
    for start in range(0, 150, 50):
        for name, column in columns.items():
            column.append([row.get(name) for row in rows[start : start + 50]])
    is_alive = np.arange(150) % 7 > 0
    for _ in range(500):
        tree = random_tree(random, FIELDS)
        expected = [row for row in range(150) if is_alive[row] and matches(tree, rows[row])]
        assert rows_that_fit(tree, columns, is_alive).tolist() == expected, tree
    assert len(rows_that_fit(None, columns, is_alive)) == is_alive.sum()
