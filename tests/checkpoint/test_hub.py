"""Names on the Hub, against a small Hub of our own on this machine: what is fetched, what is kept, what is refused.

huggingface_hub reads its settings when it is imported, so there is one process for each set of settings. All tests
share it and its cache, so every test names repositories of its own.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint.export import export_onnx
from tests.checkpoint import folders

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub(ThreadingHTTPServer):
    """Serves the folders in `repositories` as the Hub does, and remembers which files were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.fetched: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """/api/models/REPO[/revision/...] and .../tree/... list files, /REPO/resolve/REVISION/FILE gives one."""

    server: FakeHub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        if path.startswith("api/models/"):
            name, _, tree = path.removeprefix("api/models/").partition("/revision/")[0].partition("/tree/")
            self._list(name, bool(tree))
        else:
            name, _, rest = path.partition("/resolve/")
            self._give(name, rest.partition("/")[2])

    def _list(self, name: str, is_tree: bool) -> None:
        folder = self.server.repositories.get(name)
        if name in self.server.gated:
            return self._missing("GatedRepo", 403)
        if folder is None:
            return self._missing("RepoNotFound")
        files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        tree = [
            {
                "type": "file",
                "path": file,
                "size": path.stat().st_size,
                "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
            }
            for file, path in files.items()
        ]
        facts = {"_id": "1", "id": name, "modelId": name, "sha": COMMIT, "private": False, "tags": [], "downloads": 0}
        body = tree if is_tree else {**facts, "likes": 0, "siblings": [{"rfilename": file} for file in files]}
        self._answer(json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _give(self, name: str, file: str) -> None:
        folder = self.server.repositories.get(name)
        if folder is None:
            return self._missing("RepoNotFound")
        if not (folder / file).is_file():
            return self._missing("EntryNotFound")
        data = (folder / file).read_bytes()
        if self.command == "GET":
            self.server.fetched.append(f"{name}/{file}")
        tag = hashlib.sha256(data).hexdigest()
        self._answer(data, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"})

    def _missing(self, code: str, status: int = 404) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", f"{code}: not here")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeHub]:
    server = FakeHub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hub(server: FakeHub) -> FakeHub:
    """A Hub that holds nothing and was asked for nothing."""
    server.repositories.clear()
    server.gated.clear()
    server.fetched.clear()
    return server


PROGRAM = """
import json, os, sys
import munjang
from munjang import checkpoint
from munjang.errors import MunjangError
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever else prints is no answer
def look(kind, name):
    if kind == "kind":
        return {"kind": checkpoint.kind(name)}
    model = getattr(munjang, kind).load(name)
    if kind == "BiEncoder":
        vector = model.encode("one text 하나").tolist()
    else:
        vector = model.predict([("one text", "하나")]).tolist()
    return {"vector": vector, "folder": str(model.model.folder)}
for line in sys.stdin:
    kind, names = json.loads(line)
    results = []
    for name in names:
        try:
            results.append(look(kind, name))
        except MunjangError as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(results), file=answers, flush=True)
"""


class Loader:
    """A process that loads models by name, with a cache of the Hub and settings of its own."""

    def __init__(self, cache: Path, log: IO[str], **settings: str) -> None:
        alien = ("HF_", "HUGGING", "TRANSFORMERS_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(alien)}
        paths = {"HF_HUB_CACHE": str(cache), "HF_HOME": str(cache / "home")}
        quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1"}
        self.cache, self.log = cache, log
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**kept, **paths, **quiet, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    def __call__(self, *names: str, kind: str = "BiEncoder") -> list[dict[str, Any]]:
        """What BiEncoder.load, CrossEncoder.load or checkpoint.kind gives for names."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([kind, names]), file=self.process.stdin, flush=True)
        too_late = threading.Timer(120, self.process.kill)
        too_late.start()
        answer = self.process.stdout.readline()
        too_late.cancel()
        assert answer, self.said()
        return list(json.loads(answer))

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def close(self) -> None:
        self.process.communicate(timeout=60)


@contextmanager
def loading(cache: Path, **settings: str) -> Iterator[Loader]:
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryFile("w+") as log:
        loader = Loader(cache, log, **settings)
        try:
            yield loader
        finally:
            loader.close()


@pytest.fixture(scope="module")
def load(server: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    """Loads models from the Hub, as a user without any settings does."""
    with loading(tmp_path_factory.mktemp("cache"), HF_ENDPOINT=server.address) as loader:
        yield loader


def publish(hub: FakeHub, name: str, folder: Path) -> Path:
    """A folder as a repository, with the exports and left-overs that real ones have."""
    hub.repositories[name] = folder
    for extra in (
        *(
            "onnx/model.onnx",
            "onnx/config.json",
            "openvino/openvino_model.bin",
            "tf_model.h5",
            "model.onnx",
            "README.md",
        ),
        *("checkpoint-500/model.safetensors", "checkpoint-500/config.json", "rust_model.ot", "train.txt", "big.gguf"),
        *("flax_model.msgpack", "training_args.bin", "optimizer.pt", "colbert_linear.pt", "model.fp16.safetensors"),
    ):
        (folder / extra).parent.mkdir(exist_ok=True)
        (folder / extra).write_text("large, and not needed")
    return folder


def test_once_online_then_offline(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    source = publish(hub, "someone/model", folders.copy(make("bert", dense=24), tmp_path / "source"))
    folders.torch.save({"not": folders.torch.zeros(1)}, source / "pytorch_model.bin")
    expected = BiEncoder.load(source).encode("one text 하나")
    (first,) = load("someone/model")
    assert np.allclose(first["vector"], expected, atol=1e-6)
    needed = {path.relative_to(source).as_posix() for path in source.rglob("*.json") if "Normalize" not in str(path)}
    needed -= {"onnx/config.json", "checkpoint-500/config.json"}
    needed |= {"model.safetensors", "2_Dense/model.safetensors"}
    fetched = {name.removeprefix("someone/model/") for name in hub.fetched}
    assert needed <= fetched <= needed | {"3_Normalize/config.json"}  # and no bin beside safetensors, no export
    assert len(hub.fetched) == len(fetched)  # each once
    hub.fetched.clear()
    with loading(load.cache, HF_ENDPOINT=hub.address) as another:
        (again,) = another("someone/model")
    assert hub.fetched == []  # a second time nothing is fetched
    hub.repositories.clear()
    with loading(load.cache, HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="1") as another:
        offline, absent = another("someone/model", "someone/other")
    assert first == again == offline
    assert COMMIT in offline["folder"]
    assert_no_copy(absent, "someone/other")


def assert_no_copy(result: dict[str, Any], name: str) -> None:
    assert f"There is no folder '{name}', no copy in the Hub's cache" in result["error"]
    assert "Give a folder, or fetch the model once while online" in result["error"]


def test_without_a_network(hub: FakeHub, tmp_path: Path) -> None:
    with loading(tmp_path / "cache", HF_ENDPOINT="http://127.0.0.1:9") as load:
        assert_no_copy(*load("someone/model"), "someone/model")
    assert hub.fetched == []


def test_an_onnx_export(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert"), device="cpu")
    export_onnx(model.model, tmp_path / "source")
    hub.repositories["someone/export"] = tmp_path / "source"
    (found,) = load("someone/export")
    assert np.allclose(found["vector"], model.encode("one text 하나"), atol=1e-5)
    fetched = sorted(name.removeprefix("someone/export/") for name in hub.fetched)
    assert fetched == sorted(path.name for path in (tmp_path / "source").iterdir())


def test_the_compact_format(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    BiEncoder.load(make("bert", dense=24), device="cpu").save(tmp_path / "source", format="munjang-int8")
    publish(hub, "someone/compact", tmp_path / "source")
    both = folders.copy(tmp_path / "source", tmp_path / "both")
    (both / "model.safetensors").write_bytes((make("bert", dense=24) / "model.safetensors").read_bytes())
    hub.repositories["someone/both"] = both
    small, exact = load("someone/compact", "someone/both")
    assert np.allclose(small["vector"], BiEncoder.load(tmp_path / "source").encode("one text 하나"), atol=1e-6)
    assert np.allclose(exact["vector"], BiEncoder.load(make("bert", dense=24)).encode("one text 하나"), atol=1e-6)
    weights = sorted(name for name in hub.fetched if name.endswith("safetensors"))
    dense = "2_Dense/model.safetensors"
    assert weights == [
        *(f"someone/both/{dense}", "someone/both/model.safetensors"),  # the exact ones, where there are both
        *(f"someone/compact/{dense}", "someone/compact/munjang_int8.safetensors"),
    ]


def test_bins_only_where_there_are_no_safetensors(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    mixed = publish(hub, "someone/mixed", folders.copy(make("bert", dense=24), tmp_path / "mixed"))
    folders.as_bin(mixed / "2_Dense")  # the encoder as safetensors, its dense layer as before 2023
    old = folders.copy(make("bert", dense=24), tmp_path / "old")
    folders.old_layout(old, "0_Transformer")
    folders.as_bin(old)
    publish(hub, "someone/old", old)
    split = folders.copy(make("roberta", kind="plain"), tmp_path / "split")
    folders.split(split, "pytorch_model.bin")
    publish(hub, "someone/split", split)
    names = ["someone/mixed", "someone/old", "someone/split"]
    for name, folder, result in zip(names, (mixed, old, split), load(*names), strict=True):
        assert "error" not in result, (name, result)
        assert np.allclose(result["vector"], BiEncoder.load(folder).encode("one text 하나"), atol=1e-6)
    bins = {name for name in hub.fetched if name.endswith(".bin")}
    parts = {f"someone/split/pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)}
    assert bins == {
        *("someone/mixed/2_Dense/pytorch_model.bin", "someone/old/0_Transformer/pytorch_model.bin"),
        *("someone/old/2_Dense/pytorch_model.bin", *parts),
    }


def test_bare_names(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    """Models of sentence-transformers are known by them, and some of transformers' oldest."""
    hub.repositories["sentence-transformers/all-tiny"] = make("bert")
    hub.repositories["roberta-tiny"] = make("roberta")
    results = load("all-tiny", "roberta-tiny", "none-such")
    assert np.allclose(results[0]["vector"], BiEncoder.load(make("bert")).encode("one text 하나"), atol=1e-6)
    assert np.allclose(results[1]["vector"], BiEncoder.load(make("roberta")).encode("one text 하나"), atol=1e-6)
    assert "'none-such' is neither a folder here nor a bundled model (ko-en-small, ko-en-rer" in results[2]["error"]
    assert "'sentence-transformers/none-such' is not a folder here, and the Hub knows no such" in results[2]["error"]


def test_bare_names_of_cross_encoders(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    tiny, bare = make("bert", kind="classifier", num_labels=1), make("roberta", kind="classifier", num_labels=1)
    hub.repositories["cross-encoder/ms-tiny"] = tiny
    hub.repositories["sentence-transformers/ms-tiny"] = make("bert")  # another model, not meant here
    hub.repositories["roberta-tiny-mnli"] = bare
    results = load("ms-tiny", "roberta-tiny-mnli", "none-such", kind="CrossEncoder")
    for folder, result in zip((tiny, bare), results, strict=False):
        assert "error" not in result, result
        assert np.allclose(result["vector"], CrossEncoder.load(folder).predict([("one text", "하나")]), atol=1e-6)
    assert "'cross-encoder/none-such' is not a folder here, and the Hub knows no such" in results[2]["error"]


def test_kinds_of_bare_names(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    """`munjang info` and `export` are given either."""
    hub.repositories["sentence-transformers/all-small"] = make("bert")
    hub.repositories["cross-encoder/ms-small"] = make("bert", kind="classifier", num_labels=1)
    results = load("all-small", "ms-small", "none-such", "someone/none-such", kind="kind")
    assert [result.get("kind") for result in results] == ["bi", "cross", None, None]
    assert "'sentence-transformers/none-such' is not a folder here" in results[2]["error"]
    assert "'someone/none-such' is not a folder here" in results[3]["error"]


def test_what_is_not_there(hub: FakeHub, load: Loader, make: Make, tmp_path: Path) -> None:
    trap = folders.copy(make("bert"), tmp_path / "trap")
    entries = folders.read(trap / "modules.json")
    entries[1]["path"] = "../../../outside"
    folders.write(trap / "modules.json", entries)
    hub.repositories["someone/trap"] = trap
    (tmp_path / "empty").mkdir()
    hub.repositories["someone/empty"] = tmp_path / "empty"
    hub.gated.add("someone/gated")
    names = ["someone/unknown", "no such/name", "a b", "someone/trap", "someone/empty", "someone/gated"]
    errors = [result["error"] for result in load(*names)]
    assert "'someone/unknown' is not a folder here, and the Hub knows no such model" in errors[0]
    assert "neither a folder here nor a name on the Hub" in errors[1]
    assert "neither a folder here nor a name on the Hub" in errors[2]
    assert "leaves the model folder" in errors[3]
    assert "neither modules.json nor config.json" in errors[4]
    assert "'someone/gated' is gated: ask for access on its page" in errors[5]
    assert all(error.startswith("CheckpointError: ") for error in errors)


def test_offline_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some versions of huggingface_hub list a commit's files on the Hub even then, unless only local ones will do."""
    import huggingface_hub

    from munjang.checkpoint.hub import Hub, _fetch

    asked: list[bool] = []

    def download(name: str, *, local_files_only: bool, **options: Any) -> str:
        asked.append(local_files_only)
        return "."

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    for is_offline in (False, True):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", is_offline)
        _fetch("a/b", Hub(), None, [])
    assert asked == [False, True]
