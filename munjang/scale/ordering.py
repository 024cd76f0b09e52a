"""Sort encoded rows globally: split the ids into ranges and write each range, cut out of the blocks, as one file.

Rows numbered by position are already in order. Ids of a column are sampled from every block and split into ranges of
about equal size; each range is one file, named by its number and written atomically, so a killed run can be resumed.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from munjang.errors import InputError
from munjang.scale.addresses import inside, located, make_folder, read_bytes, remove, shown, sizes_in, writing
from munjang.scale.manifest import Manifest, Mapper, read_table

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLES_PER_BLOCK = 64  # ids


@dataclass(frozen=True)
class Range:
    """Ids from `low` to below `high`; None means unbounded. `files` are the blocks that may hold some of them."""

    number: int
    low: Any
    high: Any
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"sorted/{self.number:06d}.parquet"


def sort_all(folder: str, manifest: Manifest, mapper: Mapper = map) -> Manifest:
    """Write the rows of a complete manifest sorted by id; return the manifest that lists the sorted files."""
    if manifest.settings["choice"]["id_column"] is None:
        ordered = replace(manifest, sorted=tuple(replace(manifest, sorted=None).files()))
        ordered.write(folder)
        return ordered
    manifest = replace(manifest, sorted=None, sorted_bytes=None)
    make_folder(inside(folder, "sorted"))
    ranges = _planned(folder, manifest, mapper)
    there = sizes_in(inside(folder, "sorted"))
    left = [one for one in ranges if one.name.removeprefix("sorted/") not in there]
    for _ in mapper(RangeWriter(folder), left):
        pass
    there = sizes_in(inside(folder, "sorted"))
    sizes = tuple(there[one.name.removeprefix("sorted/")] for one in ranges)
    ordered = replace(manifest, sorted=tuple(one.name for one in ranges), sorted_bytes=sizes)
    _check_once(folder, ordered, mapper)
    ordered.write(folder)
    return ordered


def _planned(folder: str, manifest: Manifest, mapper: Mapper) -> list[Range]:
    """Return the ranges. They are saved before the first is written, so a resumed run has the same ones."""
    address = inside(folder, "sorted/ranges.json")
    content = read_bytes(address)
    if content is not None and (saved := json.loads(content))["key"] == manifest.key:
        return [Range(**{**one, "files": tuple(one["files"])}) for one in saved["ranges"]]
    for name in sizes_in(inside(folder, "sorted")):
        remove(inside(folder, f"sorted/{name}"))
    samples = [row_id for ids in mapper(IdSampler(folder), manifest.files()) for row_id in ids]
    ranges = cut_ranges(samples, len(manifest.blocks), manifest)
    with writing(address) as file:
        file.write(json.dumps({"key": manifest.key, "ranges": [one.__dict__ for one in ranges]}).encode())
    return ranges


def cut_ranges(samples: Sequence[Any], count: int, manifest: Manifest) -> list[Range]:
    """Split the ids into about `count` ranges with equally many samples; list the blocks that overlap each."""
    ordered = sorted(samples)
    cuts = [ordered[number * len(ordered) // count] for number in range(1, count)] if ordered else []
    bounds = [None, *sorted(set(cuts)), None]
    blocks = [block for block in manifest.blocks.values() if block.rows]
    ranges: list[Range] = []
    for low, high in pairwise(bounds):
        inner = [
            block for block in blocks if (high is None or block.first < high) and (low is None or block.last >= low)
        ]
        if inner:
            files = tuple(sorted(f"blocks/{block.name}.parquet" for block in inner))
            ranges.append(Range(len(ranges), low, high, files))
    return ranges


@dataclass(frozen=True)
class IdSampler:
    """Sample ids of a block, evenly spaced."""

    folder: str

    def __call__(self, name: str) -> list[Any]:
        ids = read_table(inside(self.folder, name), ["id"]).column("id")
        count = min(SAMPLES_PER_BLOCK, len(ids))
        return [ids[number * len(ids) // count].as_py() for number in range(count)]


@dataclass(frozen=True)
class RangeWriter:
    """Write one range, cut out of the blocks that overlap it."""

    folder: str

    def __call__(self, one: Range) -> int:
        import pyarrow as pa
        from pyarrow import parquet

        tables = [rows_between(inside(self.folder, name), one.low, one.high) for name in one.files]
        rows = pa.concat_tables(tables).sort_by("id")
        with writing(inside(self.folder, one.name)) as file:
            parquet.write_table(rows, file, use_dictionary=False, compression="none", write_statistics=["id"])
        return int(rows.num_rows)


def rows_between(address: str, low: Any, high: Any) -> "pa.Table":
    """Read the rows of a file with ids from `low` to below `high`, from the row groups that may hold some.

    The rows are copied: a slice would keep everything that was read in memory, once per file of the range.
    """
    from pyarrow import compute, parquet

    rows = compute.scalar(True)
    if low is not None:
        rows &= compute.field("id") >= low
    if high is not None:
        rows &= compute.field("id") < high
    filesystem, path = located(address)
    return parquet.read_table(path, filesystem=filesystem, filters=rows).replace_schema_metadata(None)


@dataclass(frozen=True)
class DuplicateFinder:
    """Find the first id that occurs twice in a sorted file."""

    folder: str

    def __call__(self, name: str) -> Any:
        ids = read_table(inside(self.folder, name), ["id"]).column("id").to_pylist()
        return next((first for first, second in pairwise(ids) if first == second), None)


def _check_once(folder: str, manifest: Manifest, mapper: Mapper) -> None:
    """Raise InputError if an id occurs twice. Equal ids share a range, so each file can be checked alone."""
    repeated: Iterator[Any] = (
        row_id for row_id in mapper(DuplicateFinder(folder), manifest.files()) if row_id is not None
    )
    first = next(repeated, None)
    if first is not None:
        raise InputError(
            f"The id {first!r:.80} occurs twice in the inputs of {shown(folder)}. The blocks are written, but not "
            "sorted; make the ids unique, or leave --id-column out"
        )
