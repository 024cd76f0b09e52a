"""Filters: on every engine random ones keep the rows that Python keeps, hostile ones are refused or kept as text."""

import argparse
import tempfile
from pathlib import Path
from random import Random

from attack.verdict import Verdict
from munjang.errors import InputError
from munjang.stores import STORES, open_store
from munjang.stores.base import Store
from munjang.stores.filters import matches
from munjang.stores.parsing import parse
from tests.contracts.stores.engines import ENGINES, FIELDS, as_filter_row, make_queries, make_schema
from tests.stores.rows import make_rows
from tests.stores.trees import random_tree

NUM_TREES, NUM_ROWS = 2000, 120  # at scale 1
INJECTIONS = [
    "' or '1'='1",
    "'; DROP TABLE passages; --",
    "\\' or 1=1 --",
    "') or true or ('",
    "%' or '%'='",
    "\x00",
    "';--",
]
PATTERNS = [
    "lang = '{}'",
    "lang in ('{}', 'b')",
    "lang like '{}'",
    '"{}" = 1',
    "year = {}",
    "{}",
    "lang = 'a' {} year = 1",
]
LARGE = {
    "950 terms joined by or": " or ".join(f"year={n % 10}" for n in range(950)),
    "800 joined by and": " and ".join(f"year!={n % 10}" for n in range(800)),
    "1,000 halves on an int": f"year in ({', '.join(f'{n}.5' for n in range(1000))})",
    "not 1,000 deep": "not " * 1000 + "year = 1",
    "brackets 10,000 deep": "(" * 10_000 + "year = 1" + ")" * 10_000,
    "a number of 10,000 digits": "year = " + "9" * 10_000,
    "45 digits that end in 5": "year = " + "0" * 44 + "5",
    "a name of 10,000 characters": "a" * 10_000 + " = 1",
}


def run(options: argparse.Namespace) -> Verdict:
    """Ask every engine that is installed."""
    verdict = Verdict("filters")
    for title in STORES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                location = ENGINES[title].location(Path(folder))
                store = open_store(location, make_schema(), True)
            except (ImportError, InputError) as error:
                verdict.counts[title] = f"skipped: {error}"
                continue
            verdict.counts[title] = _attack(
                title, store, max(20, round(NUM_TREES * options.scale)), options.seed, verdict
            )
            store.close()
    return verdict


def _attack(title: str, store: Store, number: int, seed: int, verdict: Verdict) -> dict[str, int]:
    schema, random = make_schema(), Random(seed)
    rows = make_rows(NUM_ROWS, schema, seed=3)
    store.add(rows)
    counts = {"random": number, "hostile": 0, "refused": 0}
    for _ in range(number):
        tree = random_tree(random, {**FIELDS, "id": "text", "document_id": "text"})
        expected = sum(matches(tree, as_filter_row(rows, row)) for row in range(NUM_ROWS))
        found = store.count(tree)
        verdict.expect(found == expected, f"{title}: {found} rows instead of {expected} for {tree!r:.200}")
    wheres = [pattern.replace("{}", each) for pattern in PATTERNS for each in INJECTIONS] + [*LARGE.values()]
    for where in wheres:
        counts["hostile"] += 1
        try:
            tree = parse(where, schema.fields)
            found = store.count(tree)
            store.search(make_queries(1), 5, tree)
        except InputError:
            counts["refused"] += 1
            continue
        expected = sum(matches(tree, as_filter_row(rows, row)) for row in range(NUM_ROWS))
        verdict.expect(found == expected, f"{title}: {found} rows instead of {expected} for {where!r:.80}")
    verdict.expect(store.count() == NUM_ROWS, f"{title}: rows are gone")
    return counts
