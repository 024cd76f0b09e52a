"""Find well-known sets in a folder by the names of their files, and read each as its kind of evaluation needs it.

from munjang.evaluation.catalogue import Folder
Folder("data").examples("stsb-test")
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

import numpy as np

from munjang.data.examples import Examples
from munjang.data.files import COMPRESSIONS
from munjang.data.reading import read_examples
from munjang.errors import InputError, unknown

MAX_FILES = 200_000  # of a folder that is searched: more is a disk, not a folder of data
NUM_CHECKED_ROWS = 50  # that tell whether a file can be read
SEMEVAL = "STS Benchmark and SentEval's script get_transfer_data.bash"
SENTEVAL = "github.com/facebookresearch/SentEval, data/downstream/get_transfer_data.bash"
KORNLU = "github.com/kakaobrain/kor-nlu-datasets"
KLUE = "github.com/KLUE-benchmark/KLUE"


@dataclass(frozen=True)
class KnownSet:
    """A published set: what its files are called, and where they are."""

    title: str
    kind: str  # of evaluation
    names: tuple[tuple[str, ...], ...]  # ways to publish it, the first one found is read; * stands for anything
    source: str
    score_range: tuple[float, float] | None = None
    split: str | None = None  # of a file that holds several
    train: str | None = None  # key of the set that a classifier is trained on; none: folds
    is_symmetric: bool = False  # of pairs whose order says nothing

    @property
    def target(self) -> str | None:
        """Return what is read beside the texts."""
        return {"sts": "scores", "triplets": None}.get(self.kind, "labels")

    @property
    def num_texts(self) -> int:
        """Return how many text columns a row has."""
        return {"classification": 1, "triplets": 3}.get(self.kind, 2)


def _sts(title: str, *names: tuple[str, ...], source: str = SEMEVAL, scores: tuple[float, float] = (0, 5)) -> KnownSet:
    return KnownSet(title, "sts", names, source, scores)


def _year(year: int) -> KnownSet:
    files = (f"sts{year}-en-test/sts.input.*.txt",), (f"sts20{year}-en-test/sts.input.*.txt",), (f"sts{year}.tsv",)
    return _sts(f"STS{year}", *files, source=SENTEVAL)


def _classes(title: str, *names: str, train: str | None = None, kind: str = "classification") -> KnownSet:
    return KnownSet(title, kind, tuple((name,) for name in names), SENTEVAL, train=train)


SETS: dict[str, KnownSet] = {
    **{f"sts{year}": _year(year) for year in range(12, 17)},
    **{
        f"stsb-{split}": _sts(f"STSb {split}", (f"sts-{split}.csv",), (f"stsb-en-{split}.csv",), (f"stsb-{split}.tsv",))
        for split in ("train", "dev", "test")
    },
    "sick-test": replace(
        _sts(
            "SICK-R",
            *(("sick_test_annotated.txt",), ("sick.txt",), ("sick-test.tsv",), ("sick-dev.tsv",)),
            source=SENTEVAL,
            scores=(1, 5),
        ),
        split="test",
    ),
    **{
        f"korsts-{split}": _sts(
            f"KorSTS {split}",
            (f"korsts-{split}.tsv",),
            (f"korsts/sts-{split}.tsv",),
            (f"sts-{split}.tsv",),
            source=KORNLU,
        )
        for split in ("train", "dev", "test")
    },
    **{
        f"klue-sts-{split}": _sts(
            f"KLUE-STS {split}", (f"klue-sts*_{split}.json",), (f"klue-sts-{split}.tsv",), source=KLUE
        )
        for split in ("train", "dev")
    },
    "snli-train": KnownSet(
        *("SNLI train", "nli", (("snli_1.0_train.jsonl",), ("snli_1.0_train.txt",), ("snli-train.tsv",))),
        source="nlp.stanford.edu/projects/snli",
    ),
    "mnli-train": KnownSet(
        *("MultiNLI train", "nli"),
        (("multinli_1.0_train.jsonl",), ("multinli_1.0_train.txt",), ("mnli-train.tsv",)),
        source="cims.nyu.edu/~sbowman/multinli",
    ),
    "klue-nli-train": KnownSet(
        "KLUE-NLI train", "nli", (("klue-nli*_train.json",), ("klue-nli-train.tsv",)), source=KLUE
    ),
    "kornli-train": KnownSet(
        "KorNLI train", "nli", (("snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"),), source=KORNLU
    ),
    **{
        f"afs-{topic}": KnownSet(
            *(f"AFS {title}", "sts", ((f"argpairs_{topic}.csv",),)),
            source="nlds.soe.ucsc.edu/node/44 (Argument Facet Similarity)",
            score_range=(0, 5),
        )
        for topic, title in (("gm", "gay marriage"), ("gc", "gun control"), ("dp", "death penalty"))
    },
    **{
        f"sections-{split}": KnownSet(
            *(f"Wikipedia sections {split}", "triplets"),
            ((f"wikipedia-sections*/{split}.csv",), (f"wikipedia-sections-{split}.csv",)),
            source="Wikipedia sections of Ein Dor et al. 2018 (triplets, three files)",
        )
        for split in ("train", "test")
    },
    "mr": _classes("MR", "rt-polarity.pos"),
    "cr": _classes("CR", "custrev.pos"),
    "subj": _classes("SUBJ", "subj.objective"),
    "mpqa": _classes("MPQA", "mpqa.pos"),
    "sst": _classes("SST", "binary/sentiment-test", "sentiment-test", train="sst-train"),
    "sst-train": _classes("SST train", "binary/sentiment-train", "sentiment-train"),
    "trec": _classes("TREC", "trec_10.label", train="trec-train"),
    "trec-train": _classes("TREC train", "train_5500.label"),
    "mrpc": replace(_classes("MRPC", "msr_paraphrase_test.txt", train="mrpc-train", kind="nli"), is_symmetric=True),
    "mrpc-train": _classes("MRPC train", "msr_paraphrase_train.txt", kind="nli"),
    "nsmc": replace(_classes("NSMC", "ratings_test.txt", train="nsmc-train"), source="github.com/e9t/nsmc"),
    "nsmc-train": replace(_classes("NSMC train", "ratings_train.txt"), source="github.com/e9t/nsmc"),
}
STS_SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb-test", "sick-test")
SENTEVAL_SETS = ("mr", "cr", "subj", "mpqa", "sst", "trec", "mrpc")


class Folder:
    """A folder of published files, at any depth, compressed or not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(f"{self.path}: a folder of published files is needed, and this is none.")

    @cached_property
    def _files(self) -> dict[str, Path]:
        """Map the lower-case path of each file, without a suffix of compression, to the file."""
        files: dict[str, Path] = {}
        for parent, folders, names in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(parent) / name
                stem = path.relative_to(self.path).as_posix().lower()
                if path.suffix.lower() in COMPRESSIONS:
                    stem = stem.removesuffix(path.suffix.lower())
                files.setdefault(stem, path)
            if len(files) > MAX_FILES:
                raise InputError(f"{self.path} holds more than {MAX_FILES:,} files; name the folder with the data.")
        return files

    def paths(self, key: str) -> list[Path]:
        """Return the files of a set, in order; none where it is not there."""
        if key not in SETS:
            raise unknown("set", key, SETS)
        for names in SETS[key].names:
            found = [path for name in names for stem, path in self._files.items() if _fits(stem, name)]
            if found:
                return found
        return []

    def has(self, *keys: str) -> bool:
        """Tell whether all these sets are there."""
        return all(self.paths(key) for key in keys)

    def examples(self, key: str, max_rows: int | None = None) -> Examples:
        """Read a set, or so many rows of it drawn by a fixed seed; several files of it are joined."""
        return drawn(joined(SETS[key].title, self._parts(key)), max_rows)

    def check(self, keys: Iterable[str]) -> None:
        """Read the first rows of the sets that are there: a file of another shape is an error before hours of work."""
        for key in keys:
            if self.has(key):
                self._parts(key, NUM_CHECKED_ROWS)

    def _parts(self, key: str, max_rows: int | None = None) -> list[Examples]:
        known, paths = SETS[key], self.paths(key)
        if not paths:
            raise InputError(f"{self.path} has no {known.title}; get it from {known.source}.")
        options = {"target": known.target, "num_texts": (known.num_texts, known.num_texts), "split": known.split}
        return [
            read_examples(path, score_range=known.score_range, max_rows=max_rows, **options)  # type: ignore[arg-type]
            for path in paths
        ]

    def missing(self, keys: Sequence[str]) -> list[str]:
        """Say which sets are not there, and where to get them."""
        return [
            f"{SETS[key].title}: not in {self.path} ({' or '.join(' and '.join(names) for names in SETS[key].names)}); "
            f"get it from {SETS[key].source}"
            for key in keys
            if not self.paths(key)
        ]


def drawn(examples: Examples, max_rows: int | None) -> Examples:
    """Draw rows by a fixed seed, and keep their order: many files are sorted by class."""
    if max_rows is None or max_rows >= len(examples):
        return examples
    rows = np.random.default_rng(0).choice(len(examples), max_rows, replace=False)
    return examples.take(np.sort(rows)).noted(f"{max_rows:,} of {len(examples):,} rows, drawn at random")


def joined(name: str, parts: Sequence[Examples]) -> Examples:
    """Join rows of several sets; their classes are matched by name."""
    if len(parts) == 1:
        return replace(parts[0], name=name)
    columns = tuple([text for part in parts for text in part.texts[place]] for place in range(len(parts[0].texts)))
    names = tuple(sorted({name for part in parts for name in part.label_names}))
    labels = scores = None
    if all(part.labels is not None for part in parts):
        numbers = [np.array([names.index(label) for label in part.label_names], np.int64) for part in parts]
        labels = np.concatenate([to[part.labels] for to, part in zip(numbers, parts, strict=True)])
    if all(part.scores is not None for part in parts):
        scores = np.concatenate([part.scores for part in parts if part.scores is not None])
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Examples(name, columns, parts[0].columns, labels, names if labels is not None else (), scores, notes)


def _fits(stem: str, name: str) -> bool:
    return fnmatchcase(stem, name) or fnmatchcase(stem, f"*/{name}")
