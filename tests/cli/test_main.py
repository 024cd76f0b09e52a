"""The command line as a whole: help at once, one line for what went wrong, exit codes that a shell expects."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import munjang
from munjang.cli import VERBS, main

COMMAND = [sys.executable, "-m", "munjang"]


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown and summary in shown for verb, summary in VERBS.items())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"munjang {munjang.__version__}\n"


def test_nothing_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: munjang VERB" in capsys.readouterr().err


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encoed"]) == 2
    assert capsys.readouterr().err == (
        f"munjang: Unknown command 'encoed'; choose from {', '.join(sorted(VERBS))}. Did you mean 'encode'?\n"
    )


def test_wrong_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "x", "--jsno"]) == 2
    assert "unrecognized arguments: --jsno" in capsys.readouterr().err


def test_help_is_quick() -> None:
    """0.3 s is the promise, 0.04 s measured; the best of three, because a shared machine may stall."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([*COMMAND, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3, times


def test_help_loads_nothing_heavy() -> None:
    """In one process, which says after each command what it has loaded so far."""
    commands = [["--help"], *([verb, "--help"] for verb in VERBS)]
    code = (
        "import sys; from munjang.cli import main\n"
        f"for arguments in {commands}: main(arguments); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    heavy = {"torch", "numpy", "tokenizers", "pyarrow"}
    for arguments, modules in zip(commands, done.stderr.splitlines(), strict=True):
        assert heavy & set(modules.split()) == set(), arguments


def test_closed_pipe_is_quiet() -> None:
    with subprocess.Popen([*COMMAND, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # what `| head -0` does, before anything is written
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "munjang: No space left on device\n")


def test_missing_file_is_one_line(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.txt"
    assert main(["encode", str(missing), "-o", str(tmp_path / "a.npy"), "--model", str(tiny_bert)]) == 2
    assert capsys.readouterr().err == f"munjang: {missing}: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []
