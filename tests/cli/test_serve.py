"""munjang serve: from the command to an answer, and to an orderly end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.cli.serve import CPU_BATCH_TOKENS, KEY_VARIABLE, WAIT_POLICY, Options, keys_of, limits_of, load
from munjang.errors import InputError

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
import httpx

from munjang.server.loading import Loader, named

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command sets for its process stays within the test."""
    monkeypatch.setenv(*WAIT_POLICY)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    return capsys.readouterr().err


def test_names() -> None:
    assert named("small=models/ko-en") == ("small", "models/ko-en")
    assert named("models/ko-en/") == ("ko-en", "models/ko-en/")
    assert named("/a=b/c") == ("c", "/a=b/c")


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    file.write_text("one\ntwo\n")
    assert keys_of(Options()) == ()
    assert keys_of(Options(host="0.0.0.0", api_key_file=str(file))) == ("one", "two")
    monkeypatch.setenv(KEY_VARIABLE, "three")
    assert keys_of(Options()) == ("three",)
    assert keys_of(Options(host="0.0.0.0", no_auth=True)) == ()


def test_hosts() -> None:
    options = Options(host="10.0.0.7", no_auth=True, allowed_host=("Search.Example",))
    assert {"10.0.0.7", "search.example", "localhost"} <= set(limits_of(options).access.hosts)
    assert limits_of(Options(allowed_host=("*",))).access.hosts == ()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "some.name"])
def test_others_need_a_key(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"who reaches {host} could use this server" in failed(capsys, "--host", host, "--model", "x=y")


def test_what_can_be_wrong(
    tmp_path: Path, tiny_bert: Path, unbundled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").write_text("\n")
    model = ("--port", "0", "--model")
    assert "No model is bundled here" in failed(capsys, "--port", "0")
    assert "contains no key" in failed(capsys, "--api-key-file", str(tmp_path / "empty"), *model, "x=y")
    assert "no folder" in failed(capsys, *model, f"x={tmp_path}/nothing")
    assert "NAME=PLACE" in failed(capsys, *model, "x=")
    assert "Two models are called 'x'" in failed(capsys, *model, f"x={tiny_bert}", f"x={tiny_bert}")
    assert "max_queue must be at least 1" in failed(capsys, *model, f"x={tiny_bert}", "--max-queue", "0")
    assert "can't be cut to 1000" in failed(capsys, *model, f"x={tiny_bert}", "--dimensions", "1000")


def test_without_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # as if it were not installed
    assert "pip install 'munjang[server]'" in failed(capsys, "--model", "x=y")


def test_threads_do_not_spin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = WAIT_POLICY
    monkeypatch.delenv(name)
    failed(capsys, "--model", "x=")
    assert os.environ[name] == value
    monkeypatch.setenv(name, "active")  # who sets it means it
    failed(capsys, "--model", "x=")
    assert os.environ[name] == "active"


def test_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert f"Port {port} of 127.0.0.1 is in use" in failed(capsys, "--port", port, "--model", "x=y")
    assert "Can't listen" in failed(capsys, "--port", "99999", "--model", "x=y")


def test_loading(tiny_bert: Path, tmp_path: Path) -> None:
    """An index takes the first model; an index alone brings its own, by the name of its folder."""
    where = {"device": "cpu", "threads": 1}
    both = (f"one={tiny_bert}", f"two={tiny_bert}")
    options = Options(model=both, index=("memory:",), dimensions=(8,), max_queue=3, **where)
    service = load(options, Loader(), limits_of(options))
    assert list(service.batcher.queues) == ["one", "two"]
    assert service.indexes[0].index.model is service.embedders[0].model
    assert service.embedders[1].dimensions == (8,)
    assert (service.queue_limits.max_batch_tokens, service.queue_limits.max_queue) == (CPU_BATCH_TOKENS, 3)
    pytest.importorskip("lancedb")
    from munjang.index import Index

    with Index.open(tmp_path / "notes", tiny_bert, device="cpu") as index:
        index.add(["hello world"])
    options = Options(index=(str(tmp_path / "notes"),), **where)
    alone = load(options, Loader(), limits_of(options))
    assert list(alone.batcher.queues) == [tiny_bert.name]
    assert (alone.indexes[0].name, alone.indexes[0].index.count()) == ("notes", 1)


def test_sigterm_during_work(tiny_bert: Path, make: Callable[..., Path], tmp_path: Path) -> None:
    """What was asked before is answered, the process ends with success, and its log is JSON without texts."""
    ranker = make("bert", kind="cross", num_labels=1)
    models = ["--model", f"tiny={tiny_bert}", "--reranker", f"ranker={ranker}"]
    # batches so small that the work takes far longer than the signal
    command = [sys.executable, "-m", "munjang", "serve", "--port", "0", *models, "--max-batch-tokens", "100"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", KEY_VARIABLE: "the-key"}
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        assert greeting.startswith("Munjang serves tiny, ranker at http://127.0.0.1:"), log.read_text()
        url, statuses = greeting.split()[-1], list[int]()
        headers = {"authorization": "Bearer the-key"}

        def ask() -> None:
            texts = [f"secret {n} " * 40 for n in range(500)]
            answer = httpx.post(f"{url}/embed", json={"inputs": texts}, headers=headers, timeout=30)
            statuses.append(answer.status_code)

        assert httpx.post(f"{url}/embed", json={"inputs": "a"}).status_code == 401
        asking = threading.Thread(target=ask)
        asking.start()
        while 'te_queue_size{model="tiny"} 1' not in httpx.get(f"{url}/metrics", headers=headers).text:
            assert asking.is_alive()
        process.send_signal(signal.SIGTERM)
        asking.join(30)
        assert statuses == [200]
        assert process.wait(20) == 0
    finally:
        process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (lines[-1]["path"], lines[-1]["status"], lines[-1]["texts"]) == ("/embed", 200, 500)
    assert "secret" not in log.read_text()


def test_a_key_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"\xff\xfe\x00key")
    with pytest.raises(InputError, match="not a text file of API keys"):
        keys_of(Options(host="0.0.0.0", api_key_file=str(tmp_path / "keys")))


def test_limits_by_name() -> None:
    options = Options(max_queue=7, limit=("deadline_s=2.5", "max_connections=50", "max_tokens=9", "max_queue=8"))
    limits = limits_of(options)
    assert (limits.queues.deadline_s, limits.connections.max_connections, limits.requests.max_tokens) == (2.5, 50, 9)
    assert limits.queues.max_queue == 8
    assert limits_of(Options(max_queue=7)).queues.max_queue == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("deadline=2", "Unknown limit 'deadline'; choose from .*Did you mean 'deadline_s'"),
        ("max_queue=2.5", r"--limit max_queue takes a whole number, not '2\.5'"),
        ("deadline_s", "--limit deadline_s takes a number, not ''"),
        ("deadline_s=nan", "--limit deadline_s must be above 0, not nan"),
        ("max_texts=0", "--limit max_texts must be above 0, not 0"),
        ("keyring=a", "Unknown limit 'keyring'"),
    ],
)
def test_wrong_limits(given: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        limits_of(Options(limit=(given,)))
