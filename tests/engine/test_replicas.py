"""Several devices: the same rows as one of them gives, and none lost when a process dies."""

import gc
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.cli import main
from munjang.engine import replicas
from munjang.engine.devices import pick_device
from munjang.engine.engine import Encoding
from munjang.engine.tokenize import Pairs, Texts
from munjang.errors import InputError, MunjangError, TruncationWarning
from munjang.types import TokenIds
from tests.texts import mixed

WINDOW = 16
TEXTS = mixed(150, longest=20)
MANY = [*TEXTS, *TEXTS[:40], "", TEXTS[3]]
LONG = "fox " * 200
PAIRS = list(zip(TEXTS, mixed(150, seed=1, longest=20), strict=True))
TWO = ["cpu", "cpu"]


@pytest.fixture(scope="module")
def folder(make: Callable[..., Path]) -> Path:
    return make("bert", prompts='{"query": "quick: ", "other": "fox: "}')


@pytest.fixture(scope="module")
def one(folder: Path) -> BiEncoder:
    return BiEncoder.load(folder, "cpu", threads=1)


@pytest.fixture(scope="module")
def two(folder: Path) -> BiEncoder:
    return BiEncoder.load(folder, TWO, threads=1)


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Texts, "window", WINDOW)
    monkeypatch.setattr(Pairs, "window", WINDOW)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each part had that went to a process, noted as it goes."""
    sizes: list[int] = []
    answer = replicas.Replica.answer

    def note(self: replicas.Replica, question: Any = None, stop: Any = None) -> Any:
        sizes.extend([len(question[1])] if question is not None else [])
        return answer(self, question, stop)

    monkeypatch.setattr(replicas.Replica, "answer", note)
    return sizes


def children(model: Any) -> list[int]:
    return [other.process.child.pid for other in model._engine.replicas.others]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def are_gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_running, pids))


# The same rows


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prompt": "brown "},
        {"prompt_name": "query", "normalize": False},
        {"truncate_dim": 8, "normalize": True},
        {"precision": "float16", "batch_tokens": 64},
        {"precision": "ubinary"},
        {"long": "average"},
    ],
    ids=str,
)
def test_as_from_one_device(one: BiEncoder, two: BiEncoder, asked: list[int], options: dict[str, Any]) -> None:
    expected, found = one.encode(MANY, **options), two.encode(MANY, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert asked
    assert sum(asked) < len(set(MANY))  # each text once, some of them here


def test_int8_with_ranges(one: BiEncoder, two: BiEncoder, asked: list[int]) -> None:
    ranges = np.stack([np.full(32, -1, np.float32), np.ones(32, np.float32)])
    expected = one.encode(MANY, precision="int8", ranges=ranges)
    found = two.encode(MANY, precision="int8", ranges=ranges)
    assert found.dtype == np.int8
    assert np.abs(found.astype(int) - expected).max() <= 1  # a last bit may fall on the other side of a step
    assert asked


def test_a_copy_has_its_own_settings_and_processes(folder: Path, two: BiEncoder, asked: list[int]) -> None:
    changed = pickle.loads(pickle.dumps(two))  # the devices are pickled too
    pids = children(changed)
    assert set(pids).isdisjoint(children(two))
    assert changed.info()["device"] == "cpu, cpu"
    changed.prompts["mine"], changed.default_prompt_name = "jumps over ", "mine"
    changed.truncate_dim, changed.max_length = 16, 9
    with pytest.warns(TruncationWarning) as told:
        found = changed.encode(MANY)
    alone = BiEncoder.load(folder, ["cpu"], threads=1)
    assert not alone._engine.replicas.others
    alone.max_length = 9
    with pytest.warns(TruncationWarning) as expected_to_be_told:
        expected = alone.encode(MANY, prompt="jumps over ", truncate_dim=16)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert asked
    assert [str(each.message) for each in told] == [str(each.message) for each in expected_to_be_told]
    assert all(map(is_running, pids))
    del changed
    gc.collect()
    assert are_gone(pids)  # they end with the model
    assert all(map(is_running, children(two)))


def test_what_stays_on_the_first_device(two: BiEncoder, asked: list[int]) -> None:
    few = TEXTS[: 2 * WINDOW - 1]
    assert two.encode(few).shape == (len(few), 32)
    assert two.encode(TEXTS, output="torch").shape == (150, 32)
    assert len(two.encode(TEXTS, output="tokens")) == 150
    assert two.encode(TokenIds([[1, 2]] * 100)).shape == (100, 32)
    assert asked == []


def test_a_stream_keeps_its_chunks(one: BiEncoder, two: BiEncoder, asked: list[int]) -> None:
    expected, found = (list(model.encode(iter(MANY), chunk_rows=7)) for model in (one, two))
    assert list(map(len, found)) == list(map(len, expected))
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), atol=1e-5)
    assert asked


def test_several_threads(one: BiEncoder, two: BiEncoder) -> None:
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(two.encode(MANY))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = one.encode(MANY)
    assert [np.allclose(each, expected, atol=1e-5) for each in found] == [True] * 4


def test_progress_counts_all(two: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.progress.MIN_SHOWN_S", 0.0)
    monkeypatch.setattr("munjang.progress.LOG_INTERVAL_S", 0.0)
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    two.encode(TEXTS, progress=True)
    num_distinct = len(set(TEXTS))
    assert f"encoding: {num_distinct}/{num_distinct} (100%)" in shown.getvalue()


# Warnings and errors


def test_cut_texts_are_counted_once_and_for_all(one: BiEncoder, two: BiEncoder) -> None:
    texts = [text for at, text in enumerate(TEXTS) for text in ([text, f"{at} {LONG}"] if at % 10 == 0 else [text])]
    told = []
    for model in (one, two):
        with pytest.warns(TruncationWarning) as caught:
            model.encode([*texts, *texts[:2]])
        told.append([(str(each.message), each.filename) for each in caught])
    assert told[0] == told[1]
    assert told[1][0][0].startswith("16 of 167 texts are longer")
    assert told[1][0][1] == __file__


def test_the_first_error_is_the_one(one: BiEncoder, two: BiEncoder, asked: list[int]) -> None:
    texts = [*TEXTS[:100], f"first {LONG}", *TEXTS[100:140], f"second {LONG}", *TEXTS[140:]]
    said = []
    for model in (one, two):
        with pytest.raises(InputError) as raised:
            model.encode(texts, long="error")
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "first" in said[1]
    np.testing.assert_allclose(two.encode(TEXTS), one.encode(TEXTS), atol=1e-5)  # and it goes on
    assert asked


def test_ctrl_c_drops_what_is_under_way(
    one: BiEncoder, two: BiEncoder, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of 20,000 texts in batches of one takes each device 20 s and more."""
    monkeypatch.setattr(Texts, "window", 20_000)
    texts = [f"{number} fox" for number in range(40_000)]
    at: list[float] = []

    def press() -> None:
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1, press).start()
    with pytest.raises(KeyboardInterrupt):
        two.encode(texts, batch_tokens=1)
    assert time.monotonic() - at[0] < 8
    assert asked == [20_000]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("munjang-replica")]
    (other,) = two._engine.replicas.others  # still there, and waiting
    found, _ = other.answer((None, TEXTS, Encoding()))
    np.testing.assert_allclose(found, one.encode(TEXTS), atol=1e-5)


def test_an_error_that_does_not_pickle_is_told() -> None:
    class Local(Exception):
        pass

    assert repr(replicas._sendable(Local("why"))) == repr(MunjangError("Local: why"))
    assert repr(replicas._sendable(InputError("why"))) == repr(InputError("why"))


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([], "empty list"),
        (["cuda:0", "cuda:0"], "cuda:0 is twice"),
        (["cuda", "cuda:0"], "cuda:0 is twice"),
        (["cpu", "tpu9"], "Unknown device"),
        (["cpu", "cuda:99"], "not here"),
    ],
)
def test_refused_devices(folder: Path, devices: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BiEncoder.load(folder, devices)
    with pytest.raises(InputError, match=message):
        CrossEncoder.load(folder, devices)


def test_a_process_that_cannot_load_fails_the_loading() -> None:
    devices = [pick_device("cpu")] * 2
    with pytest.raises(InputError, match="Unknown device"), replicas.Replicas(_broken, devices, ()) as found:
        started = found
    assert are_gone([started.others[0].process.child.pid])


def _broken(device: str) -> Any:
    return pick_device(f"no {device}")


# Processes that die, and their end


def test_one_that_dies_costs_no_text(folder: Path, one: BiEncoder, asked: list[int]) -> None:
    model = BiEncoder.load(folder, ["cpu"] * 3, threads=1)
    expected = one.encode(MANY)
    os.kill(children(model)[0], signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match=r"The process for cpu ended \(exit code -9\)") as caught:
        np.testing.assert_allclose(model.encode(MANY), expected, atol=1e-5)
    assert [each.filename for each in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.encode(MANY), expected, atol=1e-5)
    os.kill(children(model)[1], signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="ended"):
        np.testing.assert_allclose(model.encode(MANY), expected, atol=1e-5)
    asked.clear()
    np.testing.assert_allclose(model.encode(MANY), expected, atol=1e-5)  # alone
    assert asked == []


@pytest.mark.parametrize("kind", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_they_end_with_the_process(folder: Path, kind: signal.Signals) -> None:
    code = (
        "import warnings; from munjang.engine.tokenize import Texts; from munjang import BiEncoder; Texts.window = 16\n"
        f"model = BiEncoder.load({str(folder)!r}, ['cpu', 'cpu'], threads=1)\n"
        "print(model._engine.replicas.others[0].process.child.pid, flush=True)\n"
        "texts = [f'fox {n}' for n in range(1000)]\n"
        "try:\n"
        "    while True: model.encode(texts)\n"
        "except KeyboardInterrupt:\n"
        "    warnings.simplefilter('error')\n"
        "    assert model.encode(texts).shape == (1000, 32)\n"  # it is as good as before
        "    raise"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout is not None
    try:
        pid = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.send_signal(kind)
        _, said = parent.communicate(timeout=30)
    finally:
        parent.kill()
    assert are_gone([pid])
    assert said.count(b"Traceback") == (kind == signal.SIGINT)  # the caller's own, and no other


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_them_alone(one: BiEncoder, two: BiEncoder) -> None:
    expected = one.encode(MANY)
    child = os.fork()
    if not child:
        is_shared = two._engine.replicas.are_worth(len(MANY), Encoding())
        os._exit(0 if not is_shared and np.allclose(two.encode(MANY), expected, atol=1e-5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_allclose(two.encode(MANY), expected, atol=1e-5)


# Cross-encoders and the command line


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.slow), 3])
def scorers(make: Callable[..., Path], request: pytest.FixtureRequest) -> tuple[CrossEncoder, CrossEncoder]:
    path = make("bert", kind="classifier", num_labels=request.param)
    return CrossEncoder.load(path, "cpu", threads=1), CrossEncoder.load(path, TWO, threads=1)


def test_pairs(scorers: tuple[CrossEncoder, CrossEncoder], asked: list[int]) -> None:
    alone, several = scorers
    given = [*PAIRS, *PAIRS[:20], (LONG, "a"), (LONG, "a")]
    found, told = [], []
    for scorer in scorers:
        with pytest.warns(TruncationWarning, match="of 172 pairs") as caught:
            found.append(scorer.predict(given, prompt="quick "))
        told.append([str(each.message) for each in caught])
    assert told[0] == told[1]
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
    assert asked
    if alone.num_labels > 1:  # one copy is enough, as it starts a process
        copy = pickle.loads(pickle.dumps(several))
        assert copy.info()["device"] == "cpu, cpu"
        copy.max_length = alone.max_length = 12
        with pytest.warns(TruncationWarning):
            np.testing.assert_allclose(copy.predict(PAIRS), alone.predict(PAIRS), atol=1e-5)
        alone.max_length = several.max_length


def test_the_command_line_takes_several(folder: Path, tmp_path: Path, one: BiEncoder, asked: list[int]) -> None:
    lines = [f"fox {n}" for n in range(100)]
    (tmp_path / "in.txt").write_text("\n".join(lines), encoding="utf-8")
    output = tmp_path / "out.npy"
    given = ["encode", str(tmp_path / "in.txt"), "-o", str(output), "-m", str(folder), "--device", "cpu, cpu"]
    assert main([*given, "--threads", "1", "--quiet", "--chunk-rows", "10"]) == 0
    np.testing.assert_allclose(np.load(output), one.encode(lines), atol=1e-5)
    assert asked
