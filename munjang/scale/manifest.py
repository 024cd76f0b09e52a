"""The manifest of a folder of encoded blocks: committed files, model, inputs. Readers use only what it lists.

OUT/manifest.json          settings, model, counts and the list of committed files; replaced in one step
OUT/blocks/00003-000017.parquet   the eighteenth block of the fourth input
OUT/bad/00003-000017.jsonl        rows of it that have no vector, and why
OUT/plan.json              the shards of the inputs
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from munjang.data.vectors import matrix_of
from munjang.errors import InputError
from munjang.scale.addresses import inside, located, read_bytes, shown, writing
from munjang.scale.shards import numbers_of
from munjang.scale.worker import BlockSummary

if TYPE_CHECKING:
    import pyarrow as pa

DTYPES = {"float32": "float32", "float16": "float16", "int8": "int8", "uint8": "uint8"}
DTYPES |= {"binary": "int8", "ubinary": "uint8"}  # eight dimensions per byte
MANIFEST_FORMAT = "munjang vectors 1"
MANIFEST_NAME = "manifest.json"
Mapper: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]  # map, or one over a cluster


@dataclass(frozen=True)
class Manifest:
    """The content of a folder of vectors."""

    key: str
    settings: Mapping[str, Any]
    fingerprint: str
    dimension: int
    blocks: Mapping[str, BlockSummary] = field(default_factory=dict)
    is_complete: bool = False
    sorted: tuple[str, ...] | None = None  # the files of a global order, instead of the blocks
    sorted_bytes: tuple[int, ...] | None = None  # size of each of those files

    @property
    def precision(self) -> str:
        return str(self.settings["precision"])

    @property
    def num_rows(self) -> int:
        return sum(done.rows for done in self.blocks.values())

    @property
    def num_bad(self) -> int:
        return sum(done.bad for done in self.blocks.values())

    @property
    def num_cut(self) -> int:
        return sum(done.cut for done in self.blocks.values())

    def files(self) -> list[str]:
        """Return the committed files in order, relative to the folder."""
        if self.sorted is not None:
            return list(self.sorted)
        return [f"blocks/{name}.parquet" for name in sorted(self.blocks, key=numbers_of)]

    def write(self, folder: str) -> None:
        """Write the manifest, atomically replacing an existing one."""
        counts = {"num_rows": self.num_rows, "num_bad": self.num_bad, "num_cut": self.num_cut}
        rows = [list(asdict(self.blocks[name]).values()) for name in sorted(self.blocks, key=numbers_of)]
        content = {"format": MANIFEST_FORMAT, **counts, **asdict(replace(self, blocks={})), "blocks": rows}
        with writing(inside(folder, MANIFEST_NAME)) as file:
            file.write(json.dumps(content, ensure_ascii=False).encode())


def read_manifest(folder: str) -> Manifest | None:
    """Read the manifest of a folder; return None if there is none."""
    content = read_bytes(inside(folder, MANIFEST_NAME))
    if content is None:
        return None
    try:
        found = json.loads(content)
        if found["format"] != MANIFEST_FORMAT:
            raise InputError(
                f"{shown(folder)} has the format {found['format']!r}; this Munjang reads {MANIFEST_FORMAT!r}."
            )
        blocks = {row[0]: BlockSummary(*row) for row in found["blocks"]}
        order = None if found["sorted"] is None else tuple(found["sorted"])
        facts = (found["key"], found["settings"], found["fingerprint"], found["dimension"])
        sizes = found.get("sorted_bytes")
        return Manifest(*facts, blocks, found["is_complete"], order, None if sizes is None else tuple(sizes))
    except (ValueError, LookupError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{inside(shown(folder), MANIFEST_NAME)} is damaged; start over with --restart") from None


def complete_manifest(folder: str) -> Manifest:
    """Read the manifest of a finished run; raise InputError if there is none or the run is not finished."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"{shown(folder)} has no {MANIFEST_NAME}: give a folder that `munjang encode --ray` wrote")
    if not manifest.is_complete:
        raise InputError(f"{shown(folder)} is not finished; repeat the command that writes it")
    return manifest


def tables(folder: str, manifest: Manifest, columns: list[str] | None = None) -> Iterator["pa.Table"]:
    """Yield the committed rows, one table per file."""
    return (read_table(inside(folder, name), columns) for name in manifest.files())


def read_table(address: str, columns: list[str] | None = None) -> "pa.Table":
    """Read one committed file."""
    from pyarrow.parquet import read_table as read

    filesystem, path = located(address)
    return read(path, columns=columns, filesystem=filesystem)


def vectors_of(table: "pa.Table", precision: str) -> Any:
    """Return the vectors of a table as a numpy array [N, D] in the manifest's precision."""
    return matrix_of(table, DTYPES[precision])


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the settings in which two jobs differ."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return "; ".join(f"{name} was {old.get(name)!r:.200}, is now {new.get(name)!r:.200}" for name in names)


def missing(expected: Iterable[str], manifest: Manifest) -> list[str]:
    """Return the names of blocks that are not committed."""
    return [name for name in expected if name not in manifest.blocks]
