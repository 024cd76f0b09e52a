"""Paths and object-store addresses of inputs and outputs: open, list, write, and show them without secrets."""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from munjang.data.files import replacing
from munjang.errors import InputError, MissingExtra

TEMPORARY_SUFFIX = ".tmp"
# KEY:SECRET@ with an unescaped / ? or # in the secret; HDFS addresses have a port after the colon
UNESCAPED_SECRET = re.compile(r"(?!hdfs|viewfs)[^:/]+://[^:/?#@]*:[^@]*[/?#].*@")


def absolute(address: str) -> str:
    """Make a path absolute, for processes in other folders; keep an object-store address as it is."""
    return address if "://" in address else os.path.abspath(address)


def shown(address: str) -> str:
    """Return an address for logs and manifests, without user, password, token or other settings.

    Everything before the last @ is removed, as a secret may contain a slash or a question mark.

    >>> shown("s3://AKIA:secret@bucket/in.parquet?region=eu&secret_key=x")
    's3://bucket/in.parquet'
    """
    if "://" not in address:
        return address
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{re.split('[?#]', rest.rpartition('@')[2], maxsplit=1)[0]}"


def without_secrets(text: str) -> str:
    """Replace every address in a message by what `shown` returns."""
    return re.sub(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", lambda found: shown(found[0]), text, flags=re.IGNORECASE)


def located(address: str) -> tuple[Any, str]:
    """Return the filesystem of an address and the path in it."""
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem, LocalFileSystem
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Reading and writing Parquet") from None
    if "://" not in address:
        return LocalFileSystem(), os.path.abspath(address)
    if UNESCAPED_SECRET.match(address):
        raise InputError(
            f"{shown(address)}: a key contains / ? or #; write them as %2F %3F %23, or give keys in environment "
            "variables"
        )
    try:
        filesystem, path = FileSystem.from_uri(address)
    except (ArrowException, ValueError, OSError) as error:
        reason = without_secrets(str(error).replace(address, shown(address)))
        raise InputError(f"{shown(address)} can't be reached: {reason:.200}") from None
    return filesystem, path


def inside(folder: str, name: str) -> str:
    """Return the address of a file in a folder; settings after a question mark stay at the end."""
    path, mark, settings = folder.partition("?") if "://" in folder else (folder, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{settings}"


def sizes_in(folder: str) -> dict[str, int]:
    """Return the files of a folder with their sizes; an empty dict if there is no folder."""
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = located(folder)
    infos = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    return {info.base_name: info.size for info in infos if info.type == FileType.File}


def read_bytes(address: str) -> bytes | None:
    """Read a whole file; return None if there is none."""
    filesystem, path = located(address)
    try:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


def remove(address: str) -> None:
    """Delete a file if it exists."""
    filesystem, path = located(address)
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        return


def make_folder(address: str) -> None:
    """Create a folder and its parents."""
    filesystem, path = located(address)
    filesystem.create_dir(path, recursive=True)


@contextmanager
def writing(address: str) -> Iterator[Any]:
    """Open a file that appears whole or not at all, even if others write the same one."""
    filesystem, path = located(address)
    if filesystem.type_name == "local":
        with replacing(Path(path), Path(f"{path}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")) as file:
            yield file
        return
    with moved(filesystem, path) as file:
        yield file


@contextmanager
def moved(filesystem: Any, path: str) -> Iterator[Any]:
    """Write under a temporary name and move the finished file: closing an S3 stream publishes even a partial one."""
    target = f"{path}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"
    try:
        with filesystem.open_output_stream(target) as file:
            yield file
        filesystem.move(target, path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(target)
        raise
