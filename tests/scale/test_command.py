"""`munjang encode --ray` up to where Ray begins; the runs themselves are in test_cluster.py."""

import sys
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.scale.cluster import Pool
from munjang.scale.command import Request, _told, job_of, told
from munjang.scale.manifest import Manifest
from munjang.scale.spans import Choice
from munjang.scale.worker import Done


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
        (["-o", "out", "--ray", "more.txt"], "--ray more.txt is no address"),
        (["-o", "out", "--ray", "auto", "more.txt"], "put --ray behind the inputs"),
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
    ],
)
def test_requests_that_are_refused(changed: dict[str, object], said: str) -> None:
    from munjang.scale.command import _check

    with pytest.raises(ValueError, match=said):
        _check(Request(**{"inputs": ["a.txt"], "output": "out", "model": "m", **changed}))


def test_a_block_is_larger_on_a_gpu() -> None:
    request = Request(inputs=["a.txt"], output="out", model="m", query=True)
    on_gpu = job_of(request, ("a.txt",), Choice(), Pool(8, 1, 1))
    assert (on_gpu.block_rows, on_gpu.device, on_gpu.threads, on_gpu.role) == (131_072, "cuda", None, "query")
    on_cpu = job_of(request, ("a.txt",), Choice(), Pool(2, 4))
    assert (on_cpu.block_rows, on_cpu.device, on_cpu.threads) == (8_192, "cpu", 4)


def test_what_people_are_told() -> None:
    blocks = {"00000-000000": Done("00000-000000", "k", 1000, 2, 3, 0, 1001)}
    said = told(Manifest("k", {}, "f", 3, blocks, True), "s3://key:hunter2@bucket/out")
    assert said.startswith("1,000 vectors in 1 files of s3://bucket/out; 2 bad rows: s3://bucket/out/bad; 3 texts")
    report = (
        "UserCodeException\n  File x\nRuntimeError: munjang: The model s3://a:hunter2@b/m on this node is another one\n"
    )
    assert _told(RuntimeError(report)) == "The model s3://b/m on this node is another one"
