"""Options from a file with a table for each verb and from the environment, and printed as such a file."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from munjang.cli import VERBS, main
from munjang.cli.configuration import VERBS as FILES
from munjang.cli.options import parse
from munjang.cli.serve import Options
from munjang.errors import InputError

ROOT = Path(__file__).parents[2]


def parsed(*argv: str) -> Options:
    return parse(Options, [*argv], "munjang serve", "")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "munjang.toml"
    path.write_text('[serve]\nport = 9000\nmodel = ["a=b", "c"]\nmax-queue = 7\nquiet = true\n[encode]\nmodel = "x"\n')
    return path


def test_flags_before_the_environment_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parsed("--config", str(file))
    assert (found.port, found.model, found.max_queue, found.quiet) == (9000, ("a=b", "c"), 7, True)
    monkeypatch.setenv("MUNJANG_CONFIG", str(file))
    monkeypatch.setenv("MUNJANG_SERVE_PORT", "9001")
    monkeypatch.setenv("MUNJANG_SERVE_MODEL", "d, e=f")
    monkeypatch.setenv("MUNJANG_SERVE_QUIET", "off")
    monkeypatch.setenv("MUNJANG_SERVE_DIMENSIONS", "[64, 128]")
    found = parsed("--max-queue", "8")
    assert (found.port, found.model, found.max_queue, found.quiet) == (9001, ("d", "e=f"), 8, False)
    assert found.dimensions == (64, 128)
    assert parsed("--port", "1", "--model", "g").model == ("g",)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "many", "MUNJANG_SERVE_PORT should be of type int, not 'many'"),
        ("QUIET", "perhaps", "MUNJANG_SERVE_QUIET should be of type bool"),
        ("DTYPE", "int4", "Unknown value of MUNJANG_SERVE_DTYPE 'int4'; choose from"),
        ("DIMENSIONS", "[1", "MUNJANG_SERVE_DIMENSIONS should be a list"),
        ("PROT", "1", "Unknown environment variable 'MUNJANG_SERVE_PROT'.* Did you mean 'MUNJANG_SERVE_PORT'?"),
    ],
)
def test_a_wrong_environment(name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"MUNJANG_SERVE_{name}", value)
    with pytest.raises(InputError, match=told):
        parsed()


def test_a_wrong_table(file: Path) -> None:
    file.write_text("[serve]\nport = 1\n[server]\nport = 2\n")
    with pytest.raises(InputError, match=r"Unknown table of .* 'server'; choose from .* Did you mean 'serve'?"):
        parsed("--config", str(file))


def test_tables_are_of_verbs() -> None:
    assert set(VERBS) <= FILES


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_printed_can_be_read(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = import_module(f"munjang.cli.{verb}").Options
    needed = [field for field in options.__dataclass_fields__.values() if repr(field.default).startswith("<datac")]
    positional = [field.name for field in needed if field.metadata["is_positional"]]
    flags = [part for field in needed if field.name not in positional for part in (f"--{field.name}", 'x "\x7f 가\\')]
    hints = get_type_hints(options)
    argv = [get_args(hints[name])[0] if get_origin(hints[name]) is Literal else "a" for name in positional]
    assert main([verb, *argv, *flags, "--print-config"]) == 0
    text = capsys.readouterr().out
    (table,) = tomllib.loads(text).values()
    assert {*table, *re.findall(r"^# (\w+) =$", text, re.MULTILINE)} == set(options.__dataclass_fields__)
    (tmp_path / "again.toml").write_text(text)
    assert main([verb, "--config", str(tmp_path / "again.toml"), "--print-config"]) == 0
    assert capsys.readouterr().out == text


def test_reload(tiny_bert: Path, make: Callable[..., Path], tmp_path: Path) -> None:
    """Models, indexes and limits come and go on SIGHUP, no request is lost, and a bad file changes nothing."""
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("uvicorn")
    config, log = tmp_path / "munjang.toml", tmp_path / "log"
    ranker = make("bert", kind="cross", num_labels=1)
    first = f'[serve]\nport = 0\nmodel = ["tiny={tiny_bert}"]\nindex = ["notes=memory:"]\n'
    config.write_text(first)
    command = [sys.executable, "-m", "munjang", "serve", "--config", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    statuses, stopped = list[int](), threading.Event()
    try:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        assert greeting, log.read_text()
        client = httpx.Client(base_url=greeting.split()[-1], timeout=30)

        def models() -> list[str]:
            return [model["id"] for model in client.get("/v1/models").json()["data"]]

        def ask() -> None:
            with httpx.Client(base_url=greeting.split()[-1], timeout=30) as own:
                while not stopped.is_set():
                    statuses.append(own.post("/search", json={"query": "hello"}).status_code)
                    statuses.append(own.post("/embed", json={"inputs": "hello " * 40}).status_code)

        def until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.05)

        client.post("/documents", json={"documents": [{"id": "d", "text": "hello world"}]}).raise_for_status()
        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        config.write_text(f'{first}reranker = ["ranker={ranker}"]\nmax_texts = 3\n')
        process.send_signal(signal.SIGHUP)
        until(lambda: models() == ["tiny", "ranker"])
        assert client.post("/embed", json={"inputs": ["a"] * 4}).status_code == 413
        assert client.get("/documents/d").status_code == 200  # the index in memory is still the same one
        for broken in (f'{first}reranker = ["ranker={tmp_path}/nothing"]\n', "[serve]\nprot = 1\n"):
            before = log.read_text().count("reload failed")
            config.write_text(broken)
            process.send_signal(signal.SIGHUP)
            until(lambda before=before: log.read_text().count("reload failed") > before)  # type: ignore[misc]
            assert models() == ["tiny", "ranker"]
        config.write_text(first)
        process.send_signal(signal.SIGHUP)
        until(lambda: models() == ["tiny"])
        stopped.set()
        for thread in asking:
            thread.join(30)
        assert set(statuses) == {200}
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        stopped.set()
        process.kill()
    assert "Traceback" not in log.read_text()
