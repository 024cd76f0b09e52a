"""`munjang encode --ray` up to where Ray begins; the runs themselves are in test_cluster.py."""

import sys
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.scale.cluster import Pool
from munjang.scale.command import Request, _message_of, describe, job_of
from munjang.scale.manifest import Manifest
from munjang.scale.shards import Choice
from munjang.scale.worker import BlockSummary


def test_without_ray_it_says_how_to_install_it(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # what an import finds where it is not installed
    (tmp_path / "a.txt").write_text("a\n")
    assert main(["encode", str(tmp_path / "a.txt"), "-o", str(tmp_path / "out"), "-m", str(tiny_bert), "--ray"]) == 2
    assert "needs ray: pip install 'munjang[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "out.npy", "--sort"], "--sort goes with --ray"),
        (["-o", "out.npy", "--block-rows", "5"], "--block-rows goes with --ray"),
        (["-o", "out", "--chunk-rows", "5", "--ray"], "with --ray give --block-rows"),
        (["-o", "out", "--ray", "more.txt"], "--ray more.txt is not an address"),
        (["-o", "out", "--ray", "auto", "more.txt"], "put --ray after the inputs"),
        (["-o", "out", "--ray", "host"], "not an address like auto or HOST:6379"),
    ],
)
def test_flags_that_do_not_go_together(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a\n")
    assert main(["encode", "a.txt", *arguments, "-m", "none"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"output": "out.parquet"}, "the output is a folder"),
        ({"inputs": ["-"]}, "can't read standard input"),
        ({"block_rows": 0}, "--block-rows must be at least 1, not 0"),
        ({"workers": -1}, "--workers must be at least 1"),
        ({"device": "cuda:0,cuda:1"}, "--device takes one name"),
        (
            {"address": "ray://me:hunter2@head:10001"},
            "^ray://head:10001 is .* on a node .*--ray auto or --ray HOST:6379",
        ),
    ],
)
def test_requests_that_are_refused(changed: dict[str, object], said: str) -> None:
    from munjang.scale.command import _check

    with pytest.raises(ValueError, match=said):
        _check(Request(**{"inputs": ["a.txt"], "output": "out", "model": "m", **changed}))


def test_a_client_address_in_the_environment_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from munjang.scale.command import _check

    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    with pytest.raises(ValueError, match="HOST:6379"):
        _check(Request(inputs=["a.txt"], output="out"))
    _check(Request(inputs=["a.txt"], output="out", address="auto"))  # which goes before it


@pytest.mark.parametrize("model", [None, "owner/name", "korean-english"])
def test_workers_are_given_paths_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ("a.txt", "s3://bucket/b.txt", "/c.txt")
    job = job_of(Request(inputs=files, output="out", model=model), files, Choice(), Pool(1, 1))
    assert job.files == (str(tmp_path / "a.txt"), "s3://bucket/b.txt", "/c.txt")
    assert (job.output, job.model) == (str(tmp_path / "out"), model)
    Path("m").mkdir()
    job = job_of(Request(inputs=files, output="s3://bucket/out", model="m"), files, Choice(), Pool(1, 1))
    assert (job.output, job.model) == ("s3://bucket/out", str(tmp_path / "m"))


def test_a_block_is_larger_on_a_gpu() -> None:
    request = Request(inputs=["a.txt"], output="out", model="m", query=True)
    on_gpu = job_of(request, ("a.txt",), Choice(), Pool(8, 1, 1))
    assert (on_gpu.block_rows, on_gpu.device, on_gpu.threads, on_gpu.role) == (131_072, "cuda", None, "query")
    on_cpu = job_of(request, ("a.txt",), Choice(), Pool(2, 4))
    assert (on_cpu.block_rows, on_cpu.device, on_cpu.threads) == (8_192, "cpu", 4)


def test_what_people_are_told() -> None:
    blocks = {"00000-000000": BlockSummary("00000-000000", "k", 1000, 2, 3, 0, 1001)}
    said = describe(Manifest("k", {}, "f", 3, blocks, True), "s3://key:hunter2@bucket/out")
    assert said.startswith("1,000 vectors in 1 files of s3://bucket/out; 2 bad rows: s3://bucket/out/bad; 3 texts")
    report = (
        "UserCodeException\n  File x\nRuntimeError: munjang: The model s3://a:hunter2@b/m on this node is another one\n"
    )
    assert _message_of(RuntimeError(report)) == "The model s3://b/m on this node is another one"
