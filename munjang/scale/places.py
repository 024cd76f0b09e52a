"""Where inputs and outputs lie: paths and addresses of object stores, shown without what opens them."""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from munjang.data.files import replacing
from munjang.errors import InputError, MissingExtra

TEMPORARY = ".tmp"
# KEY:SECRET@ with a raw / ? or # in the secret; a number behind a colon is the port of an HDFS host
TORN = re.compile(r"(?!hdfs|viewfs)[^:/]+://[^:/?#@]*:[^@]*[/?#].*@")


def absolute(address: str) -> str:
    """A path from the root, as another process may stand elsewhere; an address of an object store as it is."""
    return address if "://" in address else os.path.abspath(address)


def shown(address: str) -> str:
    """An address for logs and manifests: no user, password, token or other setting in it.

    All before the last @ goes, as a secret may hold a slash or a question mark.

    >>> shown("s3://AKIA:secret@bucket/in.parquet?region=eu&secret_key=x")
    's3://bucket/in.parquet'
    """
    if "://" not in address:
        return address
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{re.split('[?#]', rest.rpartition('@')[2], maxsplit=1)[0]}"


def without_secrets(text: str) -> str:
    """A message, with every address in it as `shown` gives it."""
    return re.sub(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", lambda found: shown(found[0]), text, flags=re.IGNORECASE)


def located(address: str) -> tuple[Any, str]:
    """The filesystem of an address and the path in it."""
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem, LocalFileSystem
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", "Reading and writing Parquet") from None
    if "://" not in address:
        return LocalFileSystem(), os.path.abspath(address)
    if TORN.match(address):
        raise InputError(
            f"{shown(address)}: a key with / ? or # in it tears the address; write those as %2F %3F %23, or give keys "
            "in the environment"
        )
    try:
        filesystem, path = FileSystem.from_uri(address)
    except (ArrowException, ValueError, OSError) as error:
        reason = without_secrets(str(error).replace(address, shown(address)))
        raise InputError(f"{shown(address)} can't be reached: {reason:.200}") from None
    return filesystem, path


def inside(folder: str, name: str) -> str:
    """The address of something in a folder; settings behind a question mark stay at its end."""
    path, mark, settings = folder.partition("?") if "://" in folder else (folder, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{settings}"


def sizes_in(folder: str) -> dict[str, int]:
    """The files of a folder and their bytes; nothing where there is no folder."""
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = located(folder)
    found = filesystem.get_file_info(FileSelector(path, allow_not_found=True))
    return {each.base_name: each.size for each in found if each.type == FileType.File}


def read_bytes(address: str) -> bytes | None:
    """A whole file; None where there is none."""
    filesystem, path = located(address)
    try:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


def remove(address: str) -> None:
    """A file, if it is there."""
    filesystem, path = located(address)
    try:
        filesystem.delete_file(path)
    except FileNotFoundError:
        return


def make_folder(address: str) -> None:
    """A folder with those above it."""
    filesystem, path = located(address)
    filesystem.create_dir(path, recursive=True)


@contextmanager
def writing(address: str) -> Iterator[Any]:
    """A file that appears whole or not at all, whoever else writes the same one."""
    filesystem, path = located(address)
    if filesystem.type_name == "local":
        with replacing(Path(path), Path(f"{path}.{uuid.uuid4().hex}{TEMPORARY}")) as file:
            yield file
        return
    with moved(filesystem, path) as file:
        yield file


@contextmanager
def moved(filesystem: Any, path: str) -> Iterator[Any]:
    """A file of any filesystem under another name until it is whole; closing a stream of S3 publishes what it has."""
    target = f"{path}.{uuid.uuid4().hex}{TEMPORARY}"
    try:
        with filesystem.open_output_stream(target) as file:
            yield file
        filesystem.move(target, path)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(target)
        raise
