"""Saving: whole or not at all, over an older model or not, and readable by sentence-transformers."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint.modules import POOLING_KEYS
from munjang.errors import CheckpointError
from tests.checkpoint import folders
from tests.checkpoint.folders import PAIRS, TEXTS, difference, edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]


@pytest.fixture
def model(make: Make) -> BiEncoder:
    return BiEncoder.load(make("bert", dense=24, norm=True))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones and those beside it included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_saved_folder_is_the_model(model: BiEncoder, tmp_path: Path) -> None:
    model.prompts, model.default_prompt_name, model.truncate_dim = {"query": "q: ", "가": ""}, "query", 9
    model.similarity_name, model.max_length = "euclidean", 17
    model.calibrate(TEXTS)
    model.save(tmp_path / "new/deep/folder")
    assert [path.name for path in (tmp_path / "new/deep").iterdir()] == ["folder"]
    again = BiEncoder.load(tmp_path / "new/deep/folder")
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=2e-6)
    assert np.array_equal(again.encode(TEXTS, precision="int8"), model.encode(TEXTS, precision="int8"))
    names = ("prompts", "default_prompt_name", "truncate_dim", "similarity_name", "max_length", "fingerprint")
    assert [getattr(again, name) for name in names] == [getattr(model, name) for name in names]
    theirs = SentenceTransformer(str(tmp_path / "new/deep/folder"), device="cpu")
    assert difference(theirs.encode(TEXTS), model.encode(TEXTS)) < 1e-5
    assert (theirs.similarity_fn_name, theirs.max_seq_length, theirs.truncate_dim) == ("euclidean", 17, 9)


@pytest.mark.parametrize(
    "modes", [(mode,) for mode in POOLING_KEYS.values()] + [("mean", "cls"), ("lasttoken", "max", "cls")]
)
def test_every_pooling(make: Make, tmp_path: Path, modes: tuple[str, ...]) -> None:
    model = BiEncoder.load(make("bert", normalize=False), pooling=modes)
    model.network.includes_prompt = len(modes) % 2 == 0
    model.save(tmp_path / "ours")
    theirs = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    texts = [text for text in TEXTS if text.strip()]
    assert difference(theirs.encode(texts, prompt="a b: "), model.encode(texts, prompt="a b: ")) < 1e-5
    pooling = folders.read(tmp_path / "ours/1_Pooling/config.json")
    assert ("pooling_mode" in pooling) == (
        modes in [("mean", "cls"), ("lasttoken", "max", "cls")]
    )  # older keys if they do


def test_the_oldest_names_are_written(model: BiEncoder, tmp_path: Path) -> None:
    model.save(tmp_path / "ours")
    entries = folders.read(tmp_path / "ours/modules.json")
    kinds = ["Transformer", "Pooling", "Dense", "LayerNorm", "Normalize"]
    assert [entry["type"] for entry in entries] == [f"sentence_transformers.models.{kind}" for kind in kinds]
    assert folders.read(tmp_path / "ours/sentence_bert_config.json").keys() == {"max_seq_length", "do_lower_case"}
    assert "word_embedding_dimension" in folders.read(tmp_path / "ours/1_Pooling/config.json")


def test_a_cross_encoder_carries_both_activation_keys(make: Make, tmp_path: Path) -> None:
    CrossEncoder.load(make("bert", kind="classifier", num_labels=1)).save(tmp_path / "ours")
    config = folders.read(tmp_path / "ours/config.json")
    path = "torch.nn.modules.activation.Sigmoid"
    assert config["sbert_ce_default_activation_function"] == config["sentence_transformers"]["activation_fn"] == path
    assert not (tmp_path / "ours/modules.json").exists()
    assert config["architectures"] == ["BertForSequenceClassification"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_saved_in_float_and_left_as_it_was(make: Make, tmp_path: Path, dtype: str) -> None:
    for family in ("bert", "qwen3"):
        model = BiEncoder.load(make(family), dtype=dtype)
        before = model.encode(TEXTS)
        model.save(tmp_path / family)
        np.testing.assert_allclose(model.encode(TEXTS), before, atol=2e-6)
        stored = folders.load_file(tmp_path / family / "model.safetensors")
        assert {tensor.dtype for tensor in stored.values()} == {torch.float32}
        assert folders.read(tmp_path / family / "config.json")["dtype"] == "float32"


def test_half_precision_weights_load_and_save(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("roberta"), tmp_path / "half")
    folders.change_weights(folder, lambda found: {name: value.half() for name, value in found.items()})
    edit(folder / "config.json", torch_dtype="float16", dtype=...)
    model = BiEncoder.load(folder)
    model.save(tmp_path / "ours")
    assert "torch_dtype" not in folders.read(tmp_path / "ours/config.json")
    theirs = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert difference(theirs.encode(TEXTS), model.encode(TEXTS)) < 1e-5


def test_over_an_older_model(model: BiEncoder, make: Make, tmp_path: Path) -> None:
    target = folders.copy(make("roberta", pooling="cls"), tmp_path / "model")
    folders.as_bin(target)
    (target / "README.md").write_text("mine")
    (target / "notes.txt").write_text("mine")
    folders.write(target / "2024_results/scores.json", {"mine": 1})
    (target / "link").symlink_to("notes.txt")
    target.chmod(0o750)
    model.save(target)
    np.testing.assert_allclose(BiEncoder.load(target).encode(TEXTS), model.encode(TEXTS), atol=2e-6)
    assert not (target / "pytorch_model.bin").exists()  # nothing of the old model is left
    assert folders.read(target / "2024_results/scores.json") == {"mine": 1}
    assert (target / "README.md").read_text() == (target / "notes.txt").read_text() == (target / "link").read_text()
    assert (target / "link").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_into_its_own_folder(make: Make, tmp_path: Path) -> None:
    for family in ("bert", "qwen3"):
        folder = folders.copy(make(family), tmp_path / family)
        model = BiEncoder.load(folder)
        vectors = model.encode(TEXTS)
        for _ in range(2):
            model.save(folder)
            np.testing.assert_allclose(model.encode(TEXTS), vectors, atol=2e-6)
            np.testing.assert_allclose(BiEncoder.load(folder).encode(TEXTS), vectors, atol=2e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bert", "qwen3"]


def test_a_vocab_txt_source_saved_over_itself(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert", kind="plain"), tmp_path / "model")
    vocab = folders.read(folder / "tokenizer.json")["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    folders.write(folder / "tokenizer_config.json", {"do_lower_case": False, "strip_accents": True})
    model = BiEncoder.load(folder)
    vectors = model.encode(TEXTS)
    model.save(folder)
    np.testing.assert_allclose(BiEncoder.load(folder).encode(TEXTS), vectors, atol=2e-6)
    assert difference(SentenceTransformer(str(folder), device="cpu").encode(TEXTS), vectors) < 1e-5


def test_through_a_link(model: BiEncoder, make: Make, tmp_path: Path) -> None:
    folders.copy(make("bert"), tmp_path / "real")
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "real").encode(TEXTS), model.encode(TEXTS), atol=2e-6)


def test_folders_that_are_refused(model: BiEncoder, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one.jpg").write_text("x")
    (tmp_path / "file").write_text("x")
    before = contents(tmp_path)
    for target, match in {
        "photos": "holds other files and no model; save to a new folder",
        "file": "is a file; give a folder",
        "file/below": "can't be written: Not a directory",
        "a\0b": "can't be written",
    }.items():
        with pytest.raises(CheckpointError, match=match):
            model.save(tmp_path / target)
        assert contents(tmp_path) == before
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")  # an empty one is fine
    assert (tmp_path / "empty/modules.json").is_file()


@pytest.mark.parametrize("what", ["first", "over"])
@pytest.mark.parametrize("name", ["fsync", "json", "rename"])
def test_a_full_disk(
    model: BiEncoder, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    target = tmp_path / "model"
    if what == "over":
        folders.copy(make("bert"), target)
        (target / "notes.txt").write_text("mine")
    before = contents(tmp_path)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if name == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif name == "json":
        monkeypatch.setattr("munjang.checkpoint.write.write_json", full)
    else:
        monkeypatch.setattr("munjang.checkpoint.atomic.EXCHANGE_CALLS", {})
        monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(CheckpointError, match=r"No space left on device\. Nothing was changed there"):
        model.save(target)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert target.exists() == (what == "over")
    model.save(target)
    np.testing.assert_allclose(BiEncoder.load(target).encode(TEXTS), model.encode(TEXTS), atol=2e-6)


@pytest.mark.parametrize("limit", [100, 3000, 20_000, 100_000])
def test_a_limit_on_the_size_of_files(make: Make, tmp_path: Path, limit: int) -> None:
    """As a full quota: safetensors, tokenizers and Python each report it in their own way."""
    resource = pytest.importorskip("resource")
    old = folders.copy(make("bert"), tmp_path / "model")
    before = contents(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # else the process is killed
    model = BiEncoder.load(make("roberta"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CheckpointError, match=r"can't be written: .*Nothing was changed there"):
            model.save(old)
        with pytest.raises(CheckpointError, match=r"can't be written: .*Nothing was changed there"):
            model.save(tmp_path / "other")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert contents(tmp_path) == before


def test_where_the_system_has_no_exchange(model: BiEncoder, make: Make, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("munjang.checkpoint.atomic.EXCHANGE_CALLS", {})
    target = folders.copy(make("bert"), tmp_path / "model")
    (target / "notes.txt").write_text("mine")
    model.save(target)
    np.testing.assert_allclose(BiEncoder.load(target).encode(TEXTS), model.encode(TEXTS), atol=2e-6)
    assert (target / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="renames in two steps there")
def test_the_model_is_there_all_the_time(make: Make, tmp_path: Path) -> None:
    """A reader beside a writer never finds half a folder."""
    target = folders.copy(make("bert"), tmp_path / "model")
    models = [BiEncoder.load(make("bert")), BiEncoder.load(make("bert", pooling="cls"))]
    allowed = [model.encode("one text") for model in models]
    stop, gone = threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            if not (target / "modules.json").exists():
                gone.append(time.time())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for turn in range(6):
        models[turn % 2].save(target)
        found = BiEncoder.load(target).encode("one text")
        assert np.array_equal(found, allowed[turn % 2])
    stop.set()
    watcher.join()
    assert not gone


KILLED = """
import sys
from munjang import BiEncoder
models = [BiEncoder.load(path) for path in sys.argv[2:]]
print("ready", flush=True)
turn = 0
while True:
    models[turn % 2].save(sys.argv[1])
    turn += 1
"""


@pytest.mark.slow
def test_killed_while_saving(make: Make, tmp_path: Path) -> None:
    sources = [make("bert"), make("bert", pooling="cls")]
    allowed = [BiEncoder.load(source).encode(TEXTS) for source in sources]
    random = np.random.default_rng(0)
    target = folders.copy(sources[0], tmp_path / "model")
    for _ in range(8):
        command = [sys.executable, "-c", KILLED, str(target), *map(str, sources)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(float(random.uniform(0, 0.2)))
            child.kill()
        found = BiEncoder.load(target).encode(TEXTS)
        assert any(np.array_equal(found, vectors) for vectors in allowed)
    for path in tmp_path.iterdir():  # what a killed process can't clean up is hidden and says what it is
        assert path.name == "model" or path.name.startswith(".model.saving-")


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_korean_albert(real_models: Path, tmp_path: Path, pooling: str) -> None:
    """WordPiece from vocab.txt on an ALBERT, which transformers does not guess: what we save, both load the same."""
    model = BiEncoder.load(real_models / "albert-kor", pooling=pooling)
    vectors = model.encode(TEXTS)
    model.save(tmp_path / "ours")
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "ours").encode(TEXTS), vectors, atol=2e-6)
    assert difference(SentenceTransformer(str(tmp_path / "ours"), device="cpu").encode(TEXTS), vectors) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm-l6", "mpnet-base", "e5-small"])
def test_real_models(real_models: Path, tmp_path: Path, name: str) -> None:
    in_float = {"dtype": torch.float32}  # e5 is stored in half precision
    theirs = SentenceTransformer(str(real_models / name), device="cpu", model_kwargs=in_float).encode(TEXTS)
    model = BiEncoder.load(real_models / name)
    model.save(tmp_path / "ours")
    saved = SentenceTransformer(str(tmp_path / "ours"), device="cpu").encode(TEXTS)
    assert difference(saved, theirs) < 1e-5
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "ours").encode(TEXTS), model.encode(TEXTS), atol=2e-6)


def test_a_scorer_of_our_own_over_another(make: Make, tmp_path: Path) -> None:
    target = tmp_path / "scorer"
    CrossEncoder.load(make("bert", kind="classifier", num_labels=1)).save(target)
    scorer = CrossEncoder.create(make("bert"), num_labels=2)
    scorer.save(target)
    np.testing.assert_allclose(CrossEncoder.load(target).predict(PAIRS), scorer.predict(PAIRS), atol=2e-6)
    CrossEncoder.load(make("bert", kind="classifier", num_labels=1)).save(target)
    assert not (target / "modules.json").exists()  # else it would be read as the other one
    assert CrossEncoder.load(target).num_labels == 1
