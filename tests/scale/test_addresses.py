from pathlib import Path

import pytest
from pyarrow.fs import FileSelector, LocalFileSystem, SubTreeFileSystem, _MockFileSystem

from munjang.errors import InputError
from munjang.scale.addresses import (
    UNESCAPED_SECRET,
    inside,
    located,
    moved,
    read_bytes,
    shown,
    sizes_in,
    without_secrets,
    writing,
)
from munjang.scale.shards import files_of

SECRET = "s3://AKIAXYZ:hunter2@bucket/in.parquet?region=eu&secret_key=hunter2"


def test_what_opens_an_address_is_never_shown() -> None:
    assert shown(SECRET) == "s3://bucket/in.parquet"
    assert shown("ray://user:token@head:10001?token=hunter2#x") == "ray://head:10001"
    assert shown("/data/a@b?c.txt") == "/data/a@b?c.txt"  # a path is no address
    assert without_secrets(f"can't open '{SECRET}' twice: {SECRET}") == (
        "can't open 's3://bucket/in.parquet' twice: s3://bucket/in.parquet"
    )


def test_an_address_that_nobody_knows_is_refused_without_its_password() -> None:
    with pytest.raises(InputError) as refused:
        located("gopher://me:hunter2@host/a.parquet?key=hunter2")
    assert "hunter2" not in str(refused.value)
    assert "gopher://host/a.parquet" in str(refused.value)


@pytest.mark.parametrize("mark", ["/", "?", "#", "/a?b#", "@"])
@pytest.mark.parametrize("start", ["ab", "12"])  # 12 looks like a port
def test_a_secret_with_marks_of_addresses_in_it_is_not_shown_either(mark: str, start: str) -> None:
    address = f"s3://AKIA:{start}{mark}SECRET@bucket/x.parquet?a=SECRET"
    assert shown(address) == "s3://bucket/x.parquet"
    assert without_secrets(f"no {address} here") == "no s3://bucket/x.parquet here"
    if mark != "@":
        with pytest.raises(InputError, match="%2F %3F %23") as refused:
            files_of([address], None)
        assert "SECRET" not in str(refused.value)
    assert not UNESCAPED_SECRET.match("hdfs://host:8020/a@b.txt")
    assert not UNESCAPED_SECRET.match("s3://bucket/a:b@c.txt")


def test_names_in_a_folder_come_before_its_settings() -> None:
    assert inside("s3://bucket/out/?region=eu", "manifest.json") == "s3://bucket/out/manifest.json?region=eu"
    assert inside("a?b/", "c") == "a?b/c"


@pytest.mark.parametrize("kind", ["{}", "file://{}"])
def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, kind: str) -> None:
    address = kind.format(tmp_path / "a.txt")
    assert read_bytes(address) is None
    with pytest.raises(ZeroDivisionError), writing(address) as file:
        file.write(b"%d" % (1 // 0))
    assert sizes_in(kind.format(tmp_path)) == {}
    with writing(address) as file:
        file.write(b"whole")
    assert read_bytes(address) == b"whole"
    assert sizes_in(kind.format(tmp_path)) == {"a.txt": 5}
    assert sizes_in(kind.format(tmp_path / "none")) == {}


@pytest.mark.parametrize("kind", ["mock", "subtree"])
def test_a_file_of_another_filesystem_appears_whole_or_not_at_all(tmp_path: Path, kind: str) -> None:
    filesystem = _MockFileSystem() if kind == "mock" else SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    filesystem.create_dir("out")
    with pytest.raises(ZeroDivisionError), moved(filesystem, "out/a.txt") as file:
        file.write(b"half" * (1 // file.tell()))  # nothing is there yet: a division by zero
    assert filesystem.get_file_info(FileSelector("out")) == []
    with moved(filesystem, "out/a.txt") as file:
        file.write(b"whole")
    assert [each.path for each in filesystem.get_file_info(FileSelector("out"))] == ["out/a.txt"]
    assert filesystem.open_input_file("out/a.txt").read() == b"whole"
