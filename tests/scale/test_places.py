from pathlib import Path

import pytest

from munjang.errors import InputError
from munjang.scale.places import inside, located, read_bytes, shown, sizes_in, without_secrets, writing

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
