"""Operations that are killed in the middle: each prepares a place, works there, and tells what is wrong afterwards.

`work` runs in a process of its own and notes what is confirmed in a journal, a line each, before it goes on. `check`
compares what is there with the journal. To add one: a class here and a line in OPERATIONS.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.index import Index
from munjang.index.transfer import export_rows, import_rows, reembed
from munjang.training.run import is_begun

NUM_DOCUMENTS, BATCH = 200, 10
QUIET = ("--device", "cpu", "--quiet")


class Operation:
    """A place on an engine or in a folder. `model` and `other` are folders of two models."""

    def __init__(self, folder: Path, address: str, model: Path, other: Path) -> None:
        self.folder, self.address, self.model, self.other = folder, address, model, other
        self.journal = folder / "journal"

    def prepare(self) -> None:
        """Make what `work` finds."""

    def work(self) -> None:
        """Work; a run that was killed is repeated here."""
        raise NotImplementedError

    def check(self, is_whole: bool) -> list[str]:
        """Return what is wrong; `is_whole`: the last run was not killed."""
        raise NotImplementedError

    def confirm(self, *facts: Any) -> None:
        """Note what the caller was told is done."""
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(facts) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def confirmed(self) -> list[list[Any]]:
        """Return what was noted; the last line may be cut."""
        lines = self.journal.read_text(encoding="utf-8").split("\n")[:-1] if self.journal.exists() else []
        return [json.loads(line) for line in lines]

    @contextmanager
    def index(self) -> Iterator[Index]:
        """Open the index of this place."""
        with Index.open(self.address, BiEncoder.load(self.model, "cpu", threads=1), chunk=0) as index:
            yield index

    def fill(self, version: int = 0) -> None:
        """Store all documents."""
        with self.index() as index:
            index.upsert(*documents(range(NUM_DOCUMENTS), version), progress=False)

    def stored(self) -> dict[str, list[int]]:
        """Return the versions of each document that is there."""
        found: dict[str, list[int]] = {}
        with self.index() as index:
            for rows in index.scan():
                for id, values in zip(rows.document_ids, rows.metadata, strict=True):
                    found.setdefault(id, []).append(int(values["version"] or 0))
        return found


def documents(numbers: range, version: int) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """Return texts, ids and metadata."""
    texts = [f"document {number} of version {version}" for number in numbers]
    return texts, [str(number) for number in numbers], [{"version": version}] * len(numbers)


def doubled(found: dict[str, list[int]]) -> list[str]:
    """Return what is wrong where a document is there more than once."""
    twice = [id for id, versions in found.items() if len(versions) != 1]
    return [f"{len(twice)} documents are there more than once, such as {twice[0]}"] if twice else []


def command(*arguments: str) -> None:
    """Run a verb of the command line; one that fails ends the run."""
    if status := main([*arguments]):
        raise RuntimeError(f"munjang {arguments[0]} ended with {status}")


class Ingest(Operation):
    """Documents are added; each batch is there whole or not at all, and those that were confirmed are."""

    def work(self) -> None:
        with self.index() as index:
            for start in range(0, NUM_DOCUMENTS, BATCH):
                index.upsert(*documents(range(start, start + BATCH), 0), progress=False)
                self.confirm(start)

    def check(self, is_whole: bool) -> list[str]:
        found = self.stored()
        sizes = Counter(int(id) // BATCH for id in found)
        wrong = [f"batch {at} has {size} documents" for at, size in sizes.items() if size != BATCH]
        wrong += [f"batch {start} is lost" for [start] in self.confirmed() if str(start) not in found]
        return wrong + doubled(found) + ([] if not is_whole or len(found) == NUM_DOCUMENTS else ["some are missing"])


class Upsert(Operation):
    """Documents are replaced: each is there once, never older than what was confirmed."""

    def prepare(self) -> None:
        self.fill()

    def work(self) -> None:
        version = max((version for _, version in self.confirmed()), default=0) + 1
        with self.index() as index:
            for start in range(0, NUM_DOCUMENTS, BATCH):
                index.upsert(*documents(range(start, start + BATCH), version), progress=False)
                self.confirm(start, version)

    def check(self, is_whole: bool) -> list[str]:
        found, newest = self.stored(), dict[int, int]()
        for start, version in self.confirmed():
            newest[start] = max(version, newest.get(start, 0))
        old = [id for id, versions in found.items() if min(versions) < newest.get(int(id) // BATCH * BATCH, 0)]
        wrong = [f"{len(old)} documents are older than was confirmed"] if old else []
        return wrong + doubled(found) + ([] if len(found) == NUM_DOCUMENTS else [f"{len(found)} documents are left"])


class Delete(Operation):
    """Documents are deleted: what was confirmed is gone, the others are whole."""

    def prepare(self) -> None:
        self.fill()

    def work(self) -> None:
        with self.index() as index:
            for start in range(0, NUM_DOCUMENTS // 2, BATCH):
                index.delete([str(number) for number in range(start, start + BATCH)])
                self.confirm(start)

    def check(self, is_whole: bool) -> list[str]:
        found = self.stored()
        wrong = [f"batch {start} is there again" for [start] in self.confirmed() if str(start) in found]
        kept = sum(int(id) >= NUM_DOCUMENTS // 2 for id in found)
        return wrong + doubled(found) + ([] if kept == NUM_DOCUMENTS // 2 else [f"{kept} of the others are left"])


class Compact(Operation):
    """Tidying up loses nothing."""

    def prepare(self) -> None:
        for version in range(3):
            self.fill(version)

    def work(self) -> None:
        with self.index() as index:
            index.upsert(*documents(range(BATCH), 2), progress=False)
            index.compact()

    def check(self, is_whole: bool) -> list[str]:
        found = self.stored()
        wrong = [] if len(found) == NUM_DOCUMENTS else [f"{len(found)} documents are left"]
        return wrong + doubled(found) + ([] if {2} == {min(each) for each in found.values()} else ["old ones are back"])


class Export(Operation):
    """An export is whole, or not there."""

    def prepare(self) -> None:
        self.fill()

    def work(self) -> None:
        with self.index() as index:
            export_rows(index, self.folder / "rows.jsonl", progress=False)

    def check(self, is_whole: bool) -> list[str]:
        path = self.folder / "rows.jsonl"
        if not path.exists():
            return ["the export is not there"] if is_whole else []
        lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            json.loads(line)
        wrong = [] if len(lines) == NUM_DOCUMENTS + 1 else [f"the export has {len(lines)} lines"]
        return wrong + doubled(self.stored())


class Import(Export):
    """An import that is repeated brings every row once."""

    def prepare(self) -> None:
        self.fill()
        super().work()
        with self.index() as index:
            index.delete([str(number) for number in range(NUM_DOCUMENTS)])

    def work(self) -> None:
        with self.index() as index:
            import_rows(index, self.folder / "rows.jsonl", progress=False)

    def check(self, is_whole: bool) -> list[str]:
        found = self.stored()
        return doubled(found) + ([] if not is_whole or len(found) == NUM_DOCUMENTS else ["rows are missing"])


class Reembed(Operation):
    """Until all vectors are new the old ones serve; a run that is repeated finishes."""

    def prepare(self) -> None:
        self.fill()

    def work(self) -> None:
        other = BiEncoder.load(self.other, "cpu", threads=1)
        if not self.is_done():
            reembed(self.address, other, str(self.other), progress=False)

    def is_done(self) -> bool:
        """Tell whether the index has the other model's vectors."""
        store = Index.open_store(self.address)
        is_new = store.schema.facts["model"] == str(self.other)
        store.close()
        return is_new

    def check(self, is_whole: bool) -> list[str]:
        store = Index.open_store(self.address)
        ids = [id for rows in store.scan(with_vectors=False) for id in rows.ids]
        store.close()
        wrong = [] if len(set(ids)) == len(ids) == NUM_DOCUMENTS else [f"{len(ids)} rows, {len(set(ids))} distinct"]
        return wrong + (["the old model is still there"] if is_whole and not self.is_done() else [])


class Save(Operation):
    """A model folder holds one of two models whole, and the next save leaves nothing else behind."""

    def work(self) -> None:
        target = self.folder / "saved"
        for source in (self.model, self.other, self.model):
            BiEncoder.load(source, "cpu", threads=1).save(target)

    def check(self, is_whole: bool) -> list[str]:
        target = self.folder / "saved"
        if target.exists():
            prints = {BiEncoder.load(each, "cpu", threads=1).fingerprint for each in (self.model, self.other)}
            if BiEncoder.load(target, "cpu", threads=1).fingerprint not in prints:
                return ["the folder holds neither model"]
        left = [path.name for path in self.folder.iterdir() if path.name not in ("saved", "journal")]
        return [f"{left[0]} was left behind"] if is_whole and left else []


class Encode(Operation):
    """A run that is repeated gives the vectors of one that was not killed."""

    def prepare(self) -> None:
        lines = [f"text {number} {'word ' * (number % 30)}" for number in range(2000)]
        (self.folder / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
        self._run("whole.npy")

    def _run(self, name: str) -> None:
        source, target = str(self.folder / "texts.txt"), str(self.folder / name)
        command("encode", source, "-o", target, "-m", str(self.model), "--chunk-rows", "100", *QUIET)

    def work(self) -> None:
        if not (self.folder / "vectors.npy").exists():
            self._run("vectors.npy")

    def check(self, is_whole: bool) -> list[str]:
        path = self.folder / "vectors.npy"
        if not path.exists():
            return ["no vectors"] if is_whole else []
        is_equal = np.array_equal(np.load(path), np.load(self.folder / "whole.npy"))
        return [] if is_equal else ["the vectors are others"]


class Train(Operation):
    """A run that is repeated goes on, and its model is that of one that was not killed."""

    def prepare(self) -> None:
        rows = [f"sentence {number}\tsentence {number + number % 3}\t{number % 5}" for number in range(200)]
        (self.folder / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows), encoding="utf-8")
        self._run("whole")

    def _run(self, name: str) -> None:
        data, target = str(self.folder / "pairs.tsv"), str(self.folder / name)
        size = ["--epochs", "1", "--batch-size", "8", "--save-every", "5"]
        if is_begun(Path(target)):
            size.append("--resume")
        before = torch.get_num_threads()
        torch.set_num_threads(1)  # as in every process of ours: sums over more threads differ in their last bits
        try:
            command("train", str(self.model), data, "-o", target, "--objective", "cosent", *size, *QUIET)
        finally:
            torch.set_num_threads(before)

    def work(self) -> None:
        if not (self.folder / "run").exists():
            self._run("run")

    def check(self, is_whole: bool) -> list[str]:
        if not is_whole:
            return []
        run, whole = (BiEncoder.load(self.folder / name, "cpu", threads=1) for name in ("run", "whole"))
        return [] if run.fingerprint == whole.fingerprint else ["the model is another"]


OPERATIONS: dict[str, type[Operation]] = {
    "ingest": Ingest,
    "upsert": Upsert,
    "delete": Delete,
    "compact": Compact,
    "export": Export,
    "import": Import,
    "reembed": Reembed,
    "save": Save,
    "encode": Encode,
    "train": Train,
}
ON_ENGINES = ("ingest", "upsert", "delete", "compact", "export", "import", "reembed")
