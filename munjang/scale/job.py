"""The settings of an encoding job: the same in the driver, in every worker and in a resumed run."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from munjang.scale.addresses import located, shown
from munjang.scale.shards import Choice

CPU_BLOCK_ROWS, GPU_BLOCK_ROWS = 8_192, 131_072  # seconds on a core or two; a third of a second on an H200

BUNDLED_NAME = "the bundled model"


@dataclass(frozen=True, kw_only=True)
class Job:
    """The settings of a run. Addresses may hold keys: write down `settings(job, sizes)`, never the job itself."""

    model: str | None
    output: str
    files: tuple[str, ...]
    first_rows: tuple[int, ...] = ()  # number of each file's first row; known when all files are counted
    choice: Choice = field(default_factory=Choice)
    id_kind: str = "int"  # or text
    block_rows: int = CPU_BLOCK_ROWS
    role: str | None = None  # query or document: the model's own prompt for them
    prompt: str | None = None
    prompt_name: str | None = None
    normalize: bool | None = None
    truncate_dim: int | None = None
    precision: str = "float32"
    long: str = "truncate"
    batch_tokens: int | None = None
    keep_text: bool = False
    text_hash: bool = False
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    fingerprint: str = ""
    key: str = ""  # of the settings: a block with another key belongs to another job


# These don't change a block. What a device computes in is `dtype`, which is known before the first block.
IGNORED_FIELDS = {"batch_tokens", "threads", "output", "first_rows", "key", "model", "device", "files"}


def settings(job: Job, sizes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the settings that determine the blocks, as JSON without secrets; `sizes`: bytes and time of each file."""
    values = {name: value for name, value in asdict(job).items() if name not in IGNORED_FIELDS}
    return {
        "inputs": [[shown(file), *sizes[file]] for file in job.files],
        "model": shown(job.model or BUNDLED_NAME),
        **values,
    }


def key_of(settings: Mapping[str, Any]) -> str:
    """Return a hash of the settings."""
    text = json.dumps({name: value for name, value in settings.items() if name != "model"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def sizes_of(files: Sequence[str]) -> dict[str, list[int]]:
    """Return bytes and modification time of each file."""
    sizes = {}
    for file in files:
        filesystem, path = located(file)
        info = filesystem.get_file_info(path)
        sizes[file] = [int(info.size or 0), int(info.mtime_ns or 0)]
    return sizes
