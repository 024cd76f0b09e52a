"""The rows of each training and measurement, without sentences in common."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.data.reading import drop_overlap
from munjang.errors import InputError
from munjang.evaluation.catalogue import SETS, Folder, drawn, joined
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.suites import read_set
from munjang.paper.config import PaperConfig
from munjang.paper.experiments import AFS_SETS, LANGUAGES, NUM_FOLDS, Line, Table


class Sets:
    """The sets of a language in a folder, for training and for measuring."""

    def __init__(self, data: Path, config: PaperConfig) -> None:
        self.folder, self.config, self.language = Folder(data), config, LANGUAGES[config.language]
        self._read: dict[tuple[str, str], Examples] = {}

    def can_train(self, line: Line) -> bool:
        """Tell whether the rows of all stages of a line are there."""
        needed = {stage.data for stage in line.stages}
        has_nli = any(map(self.folder.has, self.language.nli))
        there = {
            "nli": has_nli,
            "triplets": has_nli,
            "sts": any(map(self.folder.has, self.language.sts)),
            "afs": self.folder.has(*AFS_SETS),
            "sections": self.folder.has("sections-train"),
        }
        return all(there[name] for name in needed)

    def measured(self, table: Table) -> list[str]:
        """Return the sets of a table that are there."""
        return [key for key in table.sets if self._is_there(key)]

    def missing(self, tables: list[Table]) -> list[str]:
        """Say which sets of these tables are not there, and where to get them."""
        return self.folder.missing(self._keys(tables))

    def check(self, tables: list[Table]) -> None:
        """Read the first rows of all sets of these tables."""
        self.folder.check(self._keys(tables))

    def _keys(self, tables: list[Table]) -> list[str]:
        wanted = [*self.language.nli, *self.language.sts, *(key for table in tables for key in table.sets)]
        wanted += ["sections-train"] if "sections-test" in wanted else []
        wanted += [train for key in wanted if key in SETS and (train := SETS[key].train)]
        return [part for key in dict.fromkeys(wanted) for part in (AFS_SETS if key == "afs" else (key,))]

    def train(self, name: str, part: str = "") -> Examples:
        """Return the rows to train on; none shares a sentence with a set that is measured."""
        if (name, part) not in self._read:
            self._read[name, part] = drawn(self._rows(name, part), self.config.max_train_rows)
        return self._read[name, part]

    def test(self, key: str, part: str = "") -> tuple[str, Any]:
        """Return the kind of evaluation of a set, and its data."""
        if key == "afs":
            return "sts", drawn(self._arguments(part)[1], self.config.max_test_rows)
        limits = {"max_rows": self.config.max_test_rows, "max_train_rows": self.config.max_train_rows}
        return SETS[key].kind, read_set(key, self.folder, Settings(**limits))  # type: ignore[arg-type]

    def _rows(self, name: str, part: str) -> Examples:
        if name == "afs":
            return self._arguments(part)[0]  # arguments recur among pairs; the folds are the paper's
        if name == "sections":
            return self.folder.examples("sections-train")
        keys = self.language.sts if name == "sts" else self.language.nli
        there = [key for key in keys if self.folder.has(key)]
        if not there:
            raise InputError("\n".join(self.folder.missing(keys)))
        rows = joined(" and ".join(SETS[key].title for key in there), [self.folder.examples(key) for key in there])
        kept = drop_overlap(rows, self._held_out)
        return triplets_of(kept) if name == "triplets" else kept

    def _arguments(self, part: str) -> tuple[Examples, Examples]:
        """Return what is trained on and what is held out: a tenth of each topic, or a whole topic."""
        topics = {key: self.folder.examples(key) for key in AFS_SETS}
        if part.startswith("without-"):
            topic = part.removeprefix("without-")
            others = [examples for key, examples in topics.items() if key != topic]
            return joined("AFS", others), topics[topic]
        fold, kept, held = int(part.removeprefix("fold")), [], []
        for examples in topics.values():
            shuffled = np.random.default_rng(0).permutation(len(examples))
            is_held = np.arange(len(examples)) % NUM_FOLDS == fold
            kept.append(examples.take(np.sort(shuffled[~is_held])))
            held.append(examples.take(np.sort(shuffled[is_held])))
        return joined("AFS", kept), joined("AFS", held)

    @cached_property
    def _held_out(self) -> list[Examples]:
        keys = {self.language.dev, self.language.test, *self.language.similarity}
        return [self.folder.examples(key) for key in sorted(keys) if self.folder.has(key)]

    def _is_there(self, key: str) -> bool:
        if key == "afs":
            return self.folder.has(*AFS_SETS)
        return self.folder.has(key, *([train] if (train := SETS[key].train) else []))


def is_probe(key: str) -> bool:
    """Tell whether a classifier is trained to measure a set."""
    return key in SETS and SETS[key].kind in ("classification", "nli")
