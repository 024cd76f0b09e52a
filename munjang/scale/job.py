"""What an encoding run computes: the same in the driver, in every worker and in the run that goes on after a kill."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from munjang.scale.places import located, shown
from munjang.scale.spans import Choice

CPU_BLOCK, GPU_BLOCK = 8_192, 131_072  # rows: seconds of work on a core or two; a third of a second of an H200

BUNDLED = "the bundled model"


@dataclass(frozen=True, kw_only=True)
class Job:
    """The settings of a run. Addresses may hold keys: `settings` is what may be written down."""

    model: str | None
    output: str
    files: tuple[str, ...]
    first_rows: tuple[int, ...] = ()  # of each file among all; known when all are counted
    choice: Choice = field(default_factory=Choice)
    id_kind: str = "int"  # or text
    block_rows: int = CPU_BLOCK
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
    key: str = ""  # of the settings: a block with another one is another job's


# these change the speed only; what a device computes in is `dtype`, which is known before the first block
HARMLESS = {"batch_tokens", "threads", "output", "first_rows", "key", "model", "device", "files"}


def settings(job: Job, sizes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """What decides the blocks, as plain JSON without secrets; `sizes` are bytes and time of every file."""
    values = {name: value for name, value in asdict(job).items() if name not in HARMLESS}
    return {
        "inputs": [[shown(file), *sizes[file]] for file in job.files],
        "model": shown(job.model or BUNDLED),
        **values,
    }


def key_of(settings: Mapping[str, Any]) -> str:
    """A hash of settings."""
    text = json.dumps({name: value for name, value in settings.items() if name != "model"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def sizes_of(files: Sequence[str]) -> dict[str, list[int]]:
    """Bytes and time of change of files."""
    sizes = {}
    for file in files:
        filesystem, path = located(file)
        found = filesystem.get_file_info(path)
        sizes[file] = [int(found.size or 0), int(found.mtime_ns or 0)]
    return sizes
