"""The supply chain: hashes of every pinned version, licences of what is installed."""

import json
from pathlib import Path

import pytest

from attack import supply


def test_files_of_a_version() -> None:
    assert supply.is_of("PyYAML-6.0.3.tar.gz", "pyyaml", "6.0.3")
    assert supply.is_of("typing_extensions-4.16.0-py3-none-any.whl", "typing-extensions", "4.16.0")
    assert not supply.is_of("pyyaml_ft-6.0.3.tar.gz", "pyyaml", "6.0.3")
    assert not supply.is_of("PyYAML-6.0.3.1.tar.gz", "pyyaml", "6.0.3")


def test_licences_are_stated() -> None:
    """Of the core's own packages at least, and none of them asks for more than its notice."""
    found = {supply.canonical(name): stated for name, _, stated in supply.licences()}
    core = ("torch", "numpy", "tokenizers", "safetensors", "huggingface-hub")
    assert all(any(kind in found[name] for kind in ("BSD", "Apache", "MIT")) for name in core), found


@pytest.mark.slow
def test_every_pinned_version_has_hashes() -> None:
    text = supply.HASHES.read_text(encoding="utf-8")
    missing = [f"{n}=={v}" for n, v in supply.pinned() if n not in supply.UNHASHED and f"\n{n}=={v} \\\n" not in text]
    assert not missing, "run make hashes"


@pytest.mark.parametrize(
    ("packages", "number", "shown"),
    [
        ([{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}], 2, "a 1: CVE-1"),
        ([{"name": "a", "version": "1", "vulns": []}], 0, "1 packages looked up, 0 weaknesses known"),
        ([{"name": "a", "skip_reason": "no network"}], 0, "nothing was looked up"),
        (None, 0, "nothing was looked up"),
    ],
)
def test_audit(
    packages: list[dict[str, object]] | None,
    number: int,
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What pip-audit answers is counted; `make audit` fails where something is known."""
    (tmp_path / "answer").write_text("no network" if packages is None else json.dumps({"dependencies": packages}))
    command = tmp_path / "pip-audit"
    command.write_text(f"#!/bin/sh\ncat {tmp_path}/answer\n")
    command.chmod(0o755)
    assert supply.audit(str(command)) == number
    assert shown in capsys.readouterr().out
    assert supply.main("audit", str(command)) == (1 if number else 0)
