"""munjang encode: the vectors of the library in every format, whatever happens to the process on the way."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.data.blocks import Blocks
from munjang.data.vectors import matrix_of

TEXTS = [f"text number {number}, {'long ' * (number % 7)}고양이" for number in range(50)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "texts.txt", TEXTS)


def write_texts(path: Path, texts: list[str]) -> Path:
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def command(source: Path | str, output: Path, model: Path, *more: str) -> list[str]:
    return ["encode", str(source), "-o", str(output), "--model", str(model), "--chunk-rows", "16", *more]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_same_as_the_library(source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    for suffix in ("npy", "jsonl", "parquet"):
        assert main(command(source, tmp_path / f"a.{suffix}", tiny_bert, "--quiet")) == 0
    expected = BiEncoder.load(tiny_bert).encode(TEXTS)
    vectors = np.load(tmp_path / "a.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=2e-6 * np.abs(expected).max())
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == list(range(50))
    np.testing.assert_array_equal(np.array([line["vector"] for line in lines], np.float32), vectors)
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["id", "vector"]
    assert str(table.schema.field("vector").type) == f"fixed_size_list<element: float>[{vectors.shape[1]}]"
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), vectors)
    assert names(tmp_path) == ["a.jsonl", "a.npy", "a.parquet", "texts.txt"]


def test_npy_is_what_numpy_writes(source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    assert main(command(source, tmp_path / "a.npy", tiny_bert)) == 0
    np.save(tmp_path / "b.npy", np.load(tmp_path / "a.npy"))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_keep_text(suffix: str, tmp_path: Path, tiny_bert: Path) -> None:
    source = tmp_path / "texts.jsonl"
    source.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in [*TEXTS, "lone \ud800", ""]), encoding="utf-8"
    )
    output = tmp_path / f"a.{suffix}"
    assert main(command(source, output, tiny_bert, "--keep-text")) == 0
    if suffix == "jsonl":
        texts = [json.loads(line)["text"] for line in output.read_text(encoding="utf-8").splitlines()]
    else:
        texts = pyarrow.parquet.read_table(output)["text"].to_pylist()
    assert texts == [*TEXTS, "lone \ufffd", ""]


@pytest.mark.parametrize("suffix", ["npy", "jsonl", "parquet"])
@pytest.mark.parametrize(("precision", "dtype"), [("float16", np.float16), ("binary", np.int8), ("ubinary", np.uint8)])
def test_precision(precision: str, dtype: type, suffix: str, source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    output = tmp_path / f"a.{suffix}"
    assert main(command(source, output, tiny_bert, "--precision", precision, "--quiet")) == 0
    if suffix == "npy":
        vectors = np.load(output)
    elif suffix == "jsonl":
        lines = output.read_text(encoding="utf-8").splitlines()
        vectors = np.array([json.loads(line)["vector"] for line in lines], dtype)
    else:
        vectors = matrix_of(pyarrow.parquet.read_table(output))
    assert vectors.dtype == dtype
    expected = BiEncoder.load(tiny_bert).encode(TEXTS, precision=precision)
    assert vectors.shape == expected.shape
    assert np.mean(vectors == expected) > 0.99  # rounding may go the other way in another batch


def test_no_texts(tmp_path: Path, tiny_bert: Path) -> None:
    source = write_texts(tmp_path / "none.txt", [])
    for suffix in ("npy", "parquet", "jsonl"):
        assert main(command(source, tmp_path / f"a.{suffix}", tiny_bert)) == 0
    assert np.load(tmp_path / "a.npy").shape == (0, BiEncoder.load(tiny_bert).dimension)
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").num_rows == 0
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_cut_texts_are_counted_once(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_texts(tmp_path / "texts.txt", [*TEXTS, *["word " * 5000] * 3])
    assert main(command(source, tmp_path / "a.npy", tiny_bert, "--chunk-rows", "2")) == 0
    said = capsys.readouterr().err
    assert "munjang: warning: 3 texts were longer than the model reads and were cut; see --long\n" in said
    assert said.count("warning") == 1
    assert main(command(source, tmp_path / "b.npy", tiny_bert, "--long", "error")) == 2
    assert names(tmp_path) == ["a.npy", "texts.txt"]


def test_prompts(source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(source, tmp_path / "a.npy", tiny_bert, "--prompt", "query: ")) == 0
    expected = BiEncoder.load(tiny_bert).encode(TEXTS, prompt="query: ")
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, atol=2e-6 * np.abs(expected).max())
    assert main(command(source, tmp_path / "b.npy", tiny_bert, "--prompt-name", "nonsense")) == 2
    assert "Unknown prompt 'nonsense'" in capsys.readouterr().err
    for role in ("--query", "--document"):
        assert main(command(source, tmp_path / f"a{role}.npy", tiny_bert, role)) == 0
    assert names(tmp_path) == ["a--document.npy", "a--query.npy", "a.npy", "texts.txt"]


def test_several_inputs(source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("title,text\nx,one more\n", encoding="utf-8")
    assert main(command(source, tmp_path / "a.npy", tiny_bert, str(more))) == 0
    last = BiEncoder.load(tiny_bert).encode("one more")
    np.testing.assert_allclose(np.load(tmp_path / "a.npy")[50], last, atol=2e-6 * np.abs(last).max())


def start(arguments: list[str]) -> "subprocess.Popen[str]":
    """The same command as a process of its own."""
    command = [sys.executable, "-m", "munjang", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, f"ended too early: {process.stderr and process.stderr.read()}"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_interrupted_killed_and_run_again(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_texts(tmp_path / "texts.txt", [f"{text} {copy}" for copy in range(80) for text in TEXTS])
    assert main(command(source, tmp_path / "whole.parquet", tiny_bert, "--keep-text")) == 0
    output, parts = tmp_path / "killed.parquet", tmp_path / "killed.parquet.parts"
    arguments = command(source, output, tiny_bert, "--keep-text")
    with start(arguments) as process:
        wait_for(parts / "00002.npy", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    assert "repeat the command to resume" in said
    assert "Traceback" not in said
    assert not output.exists()
    with start(arguments) as process:
        wait_for(parts / "00020.npy", process)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not output.exists()
    num_done = len(list(parts.glob("*.npy")))
    assert 20 < num_done < 250
    capsys.readouterr()
    assert main(arguments) == 0
    assert f"resuming: {num_done} blocks of 16 texts are already done" in capsys.readouterr().err
    assert output.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert names(tmp_path) == ["killed.parquet", "texts.txt", "whole.parquet"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The full disk that a test can have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def stop_early(source: Path, output: Path, model: Path) -> None:
    """Leave an unfinished run: all four blocks fit on the disk, but not all in one file."""
    with files_of_at_most(2 * (16 * 4 * BiEncoder.load(model).dimension + 128)):
        assert main(command(source, output, model)) == 2


def test_full_disk(source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, parts = tmp_path / "a.npy", tmp_path / "a.npy.parts"
    stop_early(source, output, tiny_bert)
    assert capsys.readouterr().err == f"munjang: {output}: File too large\n"
    assert not output.exists()
    assert names(parts) == ["00000.npy", "00001.npy", "00002.npy", "00003.npy", "job.json", "lock"]
    (parts / "00002.npy").unlink()
    (parts / "00003.npy").unlink()
    finished = (parts / "00000.npy").stat()
    with files_of_at_most(200):
        assert main(command(source, output, tiny_bert)) == 2
    assert capsys.readouterr().err.endswith(f"munjang: {parts / '00002.npy'}: File too large\n")
    assert (parts / "00000.npy").stat() == finished
    assert names(parts) == ["00000.npy", "00001.npy", "job.json", "lock"]
    assert main(command(source, output, tiny_bert)) == 0
    assert len(np.load(output)) == 50
    assert names(tmp_path) == ["a.npy", "texts.txt"]


def test_killed_while_tidying_up(source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    """The output is in place, its parts are still there: the same command ends the same way."""
    output = tmp_path / "a.npy"
    assert main(command(source, tmp_path / "whole.npy", tiny_bert)) == 0
    stop_early(source, output, tiny_bert)
    output.write_bytes((tmp_path / "whole.npy").read_bytes())
    assert main(command(source, output, tiny_bert)) == 0
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert names(tmp_path) == ["a.npy", "texts.txt", "whole.npy"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--normalize"], "normalize was None, is now True"),
        (["--chunk-rows", "8"], "chunk_rows was 16, is now 8"),
        (["--prompt", "query: "], "prompt was None, is now 'query: '"),
    ],
)
def test_other_settings_are_refused(
    more: list[str], told: str, source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "a.npy"
    stop_early(source, output, tiny_bert)
    assert main(command(source, output, tiny_bert, *more)) == 2
    said = capsys.readouterr().err
    assert f"holds an unfinished run with other settings: {told}. Repeat" in said
    assert "--restart" in said
    assert main(command(source, output, tiny_bert, *more, "--restart")) == 0
    assert len(np.load(output)) == 50
    assert names(tmp_path) == ["a.npy", "texts.txt"]


def test_changed_input_is_refused(
    source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_early(source, tmp_path / "a.npy", tiny_bert)
    write_texts(source, [*TEXTS, "one more"])
    assert main(command(source, tmp_path / "a.npy", tiny_bert)) == 2
    assert f"other settings: size and time of {source} was [" in capsys.readouterr().err


def test_damaged_job(source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop_early(source, tmp_path / "a.npy", tiny_bert)
    (tmp_path / "a.npy.parts" / "job.json").write_text("{")
    assert main(command(source, tmp_path / "a.npy", tiny_bert)) == 2
    assert "job.json is damaged; begin anew with --restart" in capsys.readouterr().err
    assert main(command(source, tmp_path / "a.npy", tiny_bert, "--restart")) == 0


def test_finished_output_is_kept(
    source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "a.npy"
    output.write_text("precious")
    assert main(command(source, output, tiny_bert)) == 2
    assert "is already there; choose another name, or replace it with --restart" in capsys.readouterr().err
    assert output.read_text() == "precious"
    assert main(command(source, output, tiny_bert, "--restart")) == 0
    assert len(np.load(output)) == 50


def test_one_run_at_a_time(source: Path, tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Blocks(tmp_path / "a.npy"):
        assert main(command(source, tmp_path / "a.npy", tiny_bert)) == 2
    assert f"is being written by another process {os.getpid()}; wait for it or stop it" in capsys.readouterr().err
    assert names(tmp_path) == ["texts.txt"]


def test_foreign_files_stay(source: Path, tmp_path: Path, tiny_bert: Path) -> None:
    mine = tmp_path / "a.npy.parts" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert main(command(source, tmp_path / "a.npy", tiny_bert, "--restart")) == 0
    assert mine.read_text() == "mine"


def test_bad_row_leaves_nothing(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "x"}\n' * 40 + '{"text": null}\n', encoding="utf-8")
    assert main(command(source, tmp_path / "a.npy", tiny_bert)) == 2
    assert capsys.readouterr().err.startswith(f"munjang: {source}, line 41: 'text' is null, not a text")
    assert names(tmp_path) == ["a.jsonl"]


def test_stdin(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    arguments = command("-", tmp_path / "a.npy", tiny_bert, "--format", "jsonl")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{rows}{{".encode())))
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "standard input or a pipe can't be read twice" in said
    assert "munjang: standard input, line 51: not JSON" in said
    assert names(tmp_path) == []
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert main(arguments) == 0
    assert len(np.load(tmp_path / "a.npy")) == 50


def test_pipe(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a shell makes of <(zcat texts.gz): read once, not counted before."""
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_texts, args=(pipe, TEXTS))
    writer.start()
    assert main(command(pipe, tmp_path / "a.npy", tiny_bert)) == 0
    writer.join()
    assert "can't be read twice" in capsys.readouterr().err
    assert len(np.load(tmp_path / "a.npy")) == 50


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["-o", "a.csv"], "Unknown suffix of the output '.csv'; choose from .jsonl, .npy, .parquet."),
        (["-o", "none/a.npy"], "The folder none doesn't exist; create it first"),
        (["-o", "."], "Unknown suffix of the output ''"),
        (["-o", "a.npy", "--keep-text"], "--keep-text: a .npy file has no place for texts"),
        (["-o", "a.npy", "--chunk-rows", "0"], "--chunk-rows must be at least 1, not 0"),
        (
            ["-o", "a.npy", "--query", "--document"],
            "argument --document/--no-document: not allowed with argument --query/--no-query",
        ),
        (["-o", "a.npy", "--format", "parquet", "-"], "Parquet can't be read from standard input"),
        (["-o", "a.npy", "-", "-"], "Standard input (-) can be read only once"),
        (["-o", "texts.jsonl", "texts.jsonl"], "texts.jsonl is both input and output"),
        (["-o", "a.npy", "texts.doc"], "texts.doc: the name doesn't tell the format"),
        (["-o", "a.npy", "--model", "none"], "none"),
    ],
)
def test_refused_at_once(
    more: list[str],
    told: str,
    source: Path,
    tmp_path: Path,
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.jsonl").write_text("")
    assert main(["encode", "texts.txt", "--model", str(tiny_bert), *more]) == 2
    assert told in capsys.readouterr().err
    assert names(tmp_path) == ["texts.jsonl", "texts.txt"]


@pytest.mark.parametrize(("redirect", "message"), [("<&-", "Standard input is closed"), (">&- </dev/null", "")])
def test_closed_streams(tiny_bert: Path, tmp_path: Path, redirect: str, message: str) -> None:
    line = f'"{sys.executable}" -m munjang encode - -o {tmp_path / "v.npy"} --model {tiny_bert} {redirect}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert message in done.stderr
    assert done.returncode == (2 if message else 0)


def test_a_pipe_by_its_name(tiny_bert: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    line = f'printf "one\\ntwo\\n" | "{sys.executable}" -m munjang encode /dev/stdin --format txt -o {output}'
    done = subprocess.run(["bash", "-c", f"{line} --model {tiny_bert}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(np.load(output)) == 2
