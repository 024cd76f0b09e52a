"""A global order of encoded rows: ranges of ids, each cut out of the sorted blocks and written as one file.

Rows that are numbered by their place are in order already. Ids of a column are sampled from every block, cut into
ranges of about equal size, and each range is one file, named by its number and written by rename: a killed run goes on.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from munjang.errors import InputError
from munjang.scale.manifest import Each, Manifest, read_table
from munjang.scale.places import inside, located, make_folder, read_bytes, remove, shown, sizes_in, writing

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLES = 64  # ids of a block


@dataclass(frozen=True)
class Range:
    """Ids from `low` to below `high`; None is open. `files` are those that may hold some of them."""

    number: int
    low: Any
    high: Any
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"sorted/{self.number:06d}.parquet"


def sort_all(folder: str, manifest: Manifest, each: Each = map) -> Manifest:
    """Write the rows of a complete manifest in the order of their ids; gives the manifest that lists those files."""
    if manifest.settings["choice"]["id_column"] is None:
        ordered = replace(manifest, sorted=tuple(replace(manifest, sorted=None).files()))
        ordered.write(folder)
        return ordered
    manifest = replace(manifest, sorted=None, sorted_bytes=None)
    make_folder(inside(folder, "sorted"))
    ranges = _planned(folder, manifest, each)
    there = sizes_in(inside(folder, "sorted"))
    left = [one for one in ranges if one.name.removeprefix("sorted/") not in there]
    for _ in each(Cut(folder), left):
        pass
    there = sizes_in(inside(folder, "sorted"))
    sizes = tuple(there[one.name.removeprefix("sorted/")] for one in ranges)
    ordered = replace(manifest, sorted=tuple(one.name for one in ranges), sorted_bytes=sizes)
    _check_once(folder, ordered, each)
    ordered.write(folder)
    return ordered


def _planned(folder: str, manifest: Manifest, each: Each) -> list[Range]:
    """The ranges, the same ones after a kill: they are written down before the first is cut."""
    address = inside(folder, "sorted/ranges.json")
    content = read_bytes(address)
    if content is not None and (found := json.loads(content))["key"] == manifest.key:
        return [Range(**{**one, "files": tuple(one["files"])}) for one in found["ranges"]]
    for name in sizes_in(inside(folder, "sorted")):
        remove(inside(folder, f"sorted/{name}"))
    samples = [sample for some in each(Sampled(folder), manifest.files()) for sample in some]
    ranges = cut_ranges(samples, len(manifest.blocks), manifest)
    with writing(address) as file:
        file.write(json.dumps({"key": manifest.key, "ranges": [one.__dict__ for one in ranges]}).encode())
    return ranges


def cut_ranges(samples: Sequence[Any], count: int, manifest: Manifest) -> list[Range]:
    """About `count` ranges with as many samples each, and the blocks that reach into each."""
    ordered = sorted(samples)
    at = [ordered[place * len(ordered) // count] for place in range(1, count)] if ordered else []
    bounds = [None, *sorted(set(at)), None]
    spans = [(done.first, done.last, f"blocks/{done.name}.parquet") for done in manifest.blocks.values() if done.rows]
    ranges: list[Range] = []
    for low, high in pairwise(bounds):
        inner = [each for each in spans if (high is None or each[0] < high) and (low is None or each[1] >= low)]
        if inner:
            ranges.append(Range(len(ranges), low, high, tuple(sorted(name for _, _, name in inner))))
    return ranges


@dataclass(frozen=True)
class Sampled:
    """Some ids of a block, evenly from its order."""

    folder: str

    def __call__(self, name: str) -> list[Any]:
        ids = read_table(inside(self.folder, name), ["id"]).column("id")
        count = min(SAMPLES, len(ids))
        return [ids[place * len(ids) // count].as_py() for place in range(count)]


@dataclass(frozen=True)
class Cut:
    """One range out of all blocks, written."""

    folder: str

    def __call__(self, one: Range) -> int:
        import pyarrow as pa
        from pyarrow import parquet

        parts = [rows_between(inside(self.folder, name), one.low, one.high) for name in one.files]
        found = pa.concat_tables(parts).sort_by("id")
        with writing(inside(self.folder, one.name)) as file:
            parquet.write_table(found, file, use_dictionary=False, compression="none", write_statistics=["id"])
        return int(found.num_rows)


def rows_between(address: str, low: Any, high: Any) -> "pa.Table":
    """The rows of a file with ids from `low` to below `high`, read from the row groups that may hold some.

    They are a copy: a slice would hold all that was read, and a range takes one from every file.
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
class Repeated:
    """The first id that stands twice in a file of the order."""

    folder: str

    def __call__(self, name: str) -> Any:
        ids = read_table(inside(self.folder, name), ["id"]).column("id").to_pylist()
        return next((first for first, second in pairwise(ids) if first == second), None)


def _check_once(folder: str, manifest: Manifest, each: Each) -> None:
    """Equal ids are in one range, so each file tells."""
    twice: Iterator[Any] = (found for found in each(Repeated(folder), manifest.files()) if found is not None)
    found = next(twice, None)
    if found is not None:
        raise InputError(
            f"The id {found!r:.80} stands twice in {shown(folder)}: its inputs hold two rows with it. The blocks are "
            "written, a global order is not; make ids different, or leave --id-column out"
        )
