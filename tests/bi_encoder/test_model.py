"""The model as a thing: pickled, loaded, refused, described."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import CheckpointError, InputError, MunjangError
from tests.bi_encoder.given import TEXTS


def test_a_model_pickles_as_its_path_and_settings(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_bert.parent)
    model = BiEncoder.load(tiny_bert.name, threads=1)
    model.max_length, model.truncate_dim, model.prompts = 50, 8, {"query": "q: "}
    model.calibrate(["a", "b"])
    data = pickle.dumps(model)
    assert len(data) < 4000
    monkeypatch.chdir("/")  # another process may stand elsewhere
    again = pickle.loads(data)
    assert (again.max_length, again.truncate_dim, again.prompts) == (50, 8, {"query": "q: "})
    assert again.fingerprint == model.fingerprint
    assert np.array_equal(again.encode(TEXTS, precision="int8"), model.encode(TEXTS, precision="int8"))


def test_a_model_that_was_never_saved_does_not_pickle(tiny_bert: Path) -> None:
    loaded = BiEncoder.load(tiny_bert)
    fresh = BiEncoder(loaded.model, loaded.device, loaded.dtype)
    with pytest.raises(MunjangError, match="save it and load it from there"):
        pickle.dumps(fresh)


def test_load_refuses(tiny_bert: Path, unbundled: Path) -> None:
    for options, message in (
        ({"dtype": "float64"}, "Unknown dtype 'float64'; choose from bfloat16, float16, float32"),
        ({"device": "tpu"}, "Unknown device 'tpu'"),
        ({"device": "meta"}, "Unknown device 'meta'"),
        ({"device": "cuda:99"}, "cuda:99 is not here"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
        ({"pooling": "avg"}, "Unknown pooling 'avg'"),
    ):
        with pytest.raises(InputError, match=message):
            BiEncoder.load(tiny_bert, **options)
    with pytest.raises(CheckpointError, match="No model is bundled"):
        BiEncoder.load()


def test_info(model: BiEncoder) -> None:
    facts = model.info()
    assert facts["dimension"] == 32
    assert facts["tokenizer"] == "look-up (wordpiece)"
    assert facts["engine"] == "munjang (packed)"
    assert (facts["device"], facts["dtype"]) == ("cpu", "float32")
