"""Uploads to the Hub: huggingface_hub's own client, against a Hub on a loopback address."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError

from munjang import compat
from munjang.errors import InputError
from tests.compat.hub import Hub, running_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Let huggingface_hub talk to a Hub of the test."""
    with running_hub() as hub:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # whose uploads go to a second service
        yield hub
    huggingface_hub.close_session()


@pytest.fixture
def model(make: Callable[..., Path]) -> compat.SentenceTransformer:
    """Load a tiny model."""
    return compat.SentenceTransformer(str(make("bert")), device="cpu")


def written(files: dict[str, bytes], folder: Path) -> str:
    """Write the files of a repository to a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder)


def test_a_pushed_model_is_the_same_model(hub, model, tmp_path):
    address = model.push_to_hub("tiny", token="hf_mine", private=True, train_datasets=["owner/pairs"])
    assert address == f"{hub.url}/me/tiny/commit/{'a' * 40}"
    assert hub.private == {"me/tiny": True}
    assert hub.tokens == {"Bearer hf_mine"}
    assert [commit["summary"] for commit in hub.commits] == ["Add new SentenceTransformer model"]
    files = hub.files["me/tiny"]["main"]
    card = files["README.md"].decode()
    assert 'SentenceTransformer("me/tiny")' in card
    assert "- owner/pairs" in card
    again = compat.SentenceTransformer(written(files, tmp_path), device="cpu")
    texts = ["a lazy dog", "the quick fox"]
    np.testing.assert_array_equal(again.encode(texts), model.encode(texts))


def test_a_repository_that_is_there_needs_exist_ok_and_keeps_its_card(hub, model):
    hub.files["me/tiny"] = {"main": {"README.md": b"---\n---\nby hand"}}
    with pytest.raises(HfHubHTTPError, match="409"):
        model.push_to_hub("me/tiny")
    model.push_to_hub("me/tiny", exist_ok=True, commit_message="again")
    files = hub.files["me/tiny"]["main"]
    assert files["README.md"] == b"---\n---\nby hand"
    assert "model.safetensors" in files
    assert hub.commits[-1]["summary"] == "again"
    model.push_to_hub("me/tiny", exist_ok=True, replace_model_card=True)
    assert b"by hand" not in files["README.md"]


def test_a_pull_request_leaves_main_and_the_card_as_they_are(hub, model):
    hub.files["owner/tiny"] = {"main": {"README.md": b"---\n---\nby hand"}}
    address = model.push_to_hub("owner/tiny", create_pr=True)
    assert address == f"{hub.url}/owner/tiny/discussions/1"
    branches = hub.files["owner/tiny"]
    assert list(branches["main"]) == ["README.md"]
    assert branches["refs/pr/1"]["README.md"] == b"---\n---\nby hand"
    assert json.loads(branches["refs/pr/1"]["modules.json"])


def test_a_revision_becomes_a_branch(hub, model):
    for _ in range(2):
        model.push_to_hub("me/tiny", revision="v2", exist_ok=True)
    assert hub.files["me/tiny"]["main"] == {}
    assert "modules.json" in hub.files["me/tiny"]["v2"]


def test_save_to_hub_takes_its_older_arguments(hub, model, tmp_path):
    (tmp_path / "notes.txt").write_text("as it is")
    model.save_to_hub("tiny", organization="owner", token="hf_mine", local_model_path=str(tmp_path))
    assert hub.files["owner/tiny"]["main"] == {"notes.txt": b"as it is"}
    assert hub.commits[-1]["summary"] == "Add new model."
    assert hub.tokens == {"Bearer hf_mine"}
    with pytest.raises(InputError, match="organization='other' is not the owner in repo_id='owner/tiny'"):
        model.save_to_hub("owner/tiny", organization="other")


def test_a_pushed_cross_encoder_is_the_same_model(hub, make, tmp_path):
    model = compat.CrossEncoder(str(make("bert", kind="classifier", num_labels=1)), device="cpu")
    model.push_to_hub("owner/scorer")
    assert hub.commits[-1]["summary"] == "Add new CrossEncoder model"
    again = compat.CrossEncoder(written(hub.files["owner/scorer"]["main"], tmp_path), device="cpu")
    pairs = [("a lazy dog", "the quick fox")]
    np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))


def test_a_folder_with_other_files_keeps_them(both: Callable, tmp_path: Path) -> None:
    """SetFit writes its settings first, then has the model saved into the same folder."""
    (tmp_path / "config_setfit.json").write_text("{}")
    ours, _ = both("bert")
    ours.save(tmp_path)
    assert (tmp_path / "config_setfit.json").read_text() == "{}"
    again = compat.SentenceTransformer(str(tmp_path))
    np.testing.assert_allclose(again.encode(["a text"]), ours.encode(["a text"]), atol=1e-6)
    assert not [path for path in tmp_path.parent.iterdir() if path.name.startswith(f".{tmp_path.name}")]
