"""The supply chain: hashes of every pinned version, licences of what is installed."""

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
