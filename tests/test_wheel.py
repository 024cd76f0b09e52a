"""The wheel works by itself: built from the checkout, installed into an empty environment, the README's program run."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("pyproject.toml", "README.md", "LICENSE")
SHIPPED = ("py.typed", "models/**/*", "server/page/*", "pages/*.*", "tasks/**/*.js", "scale/*.json")
pytestmark = pytest.mark.slow  # packs 56 MB, makes an environment, loads two models: half a minute


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pip wheel .` of a copy, so that no build folder is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    copy.mkdir()
    for name in NEEDED:
        (copy / name).write_bytes((ROOT / name).read_bytes())
    run("cp", "-r", ROOT / "munjang", copy)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", copy, "--no-deps", "-w", folder)
    (found,) = folder.glob("munjang-*.whl")
    return found


def test_everything_that_is_not_python_is_inside(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    for pattern in SHIPPED:
        files = {str(path.relative_to(ROOT)) for path in (ROOT / "munjang").glob(pattern) if path.is_file()}
        assert files, pattern
        assert files <= inside, pattern
    assert not any(name.startswith(("tests/", "docs/", "benchmarks/")) for name in inside)


@pytest.mark.parametrize(
    ("document", "pattern"),
    [("docs/start/install.md", r"[Tt]he wheel is (\d+) MB"), ("docs/start/install.ko.md", r"휠은 (\d+)MB")],
)
def test_documents_state_its_size(wheel: Path, document: str, pattern: str) -> None:
    (stated,) = re.findall(pattern, (ROOT / document).read_text(encoding="utf-8"))
    assert int(stated) == round(wheel.stat().st_size / 1e6)


@pytest.mark.parametrize("document", ["README.md", "README.ko.md"])
def test_the_first_program_runs_without_a_network(wheel: Path, document: str, tmp_path: Path) -> None:
    """torch and the like come from this environment; the package from the wheel alone, the network from nowhere."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env/bin/python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(without_munjang(tmp_path / "others"), encoding="utf-8")
    program = re.findall(
        r"^```python\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )[0]
    code = f"import socket; socket.socket.connect = None\n{program}\nimport munjang; print(munjang.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    similarity, hits, where = run(python, "-c", code, cwd=tmp_path, env=environment).splitlines()
    assert where == str(site / "munjang/__init__.py")
    assert 0.8 < float(similarity) <= 1
    first, second = re.findall(r"score=([\d.]+), index=(\d)", hits)
    assert first[1] == "1", "the passage about the speed of light"
    assert float(first[0]) > 0.5 > float(second[0])


def without_munjang(folder: Path) -> str:
    """A folder with links to every installed package but ours."""
    folder.mkdir()
    for installed in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in Path(installed).iterdir():
            if "munjang" not in path.name and path.suffix != ".pth":
                (folder / path.name).symlink_to(path)
    return str(folder)
