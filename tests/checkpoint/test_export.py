"""ONNX exports beside the network they were made of: every family, pooling and head, through the same facade."""

import multiprocessing
import pickle
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder, TokenIds
from munjang.checkpoint.export import Agreement, export_onnx
from munjang.errors import CheckpointError, InputError, UnsupportedModel
from munjang.nn.onnx.session import open_session
from tests.checkpoint.folders import change_weights, copy
from tests.models import NATIVE
from tests.texts import mixed

TEXTS = [*mixed(40), "", " ", "one", "하나", "<pad> spelled <pad> out"]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))
POOLINGS = ["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def exported(folder: Path, target: Path, dtype: str = "float32") -> tuple[BiEncoder, BiEncoder]:
    """A model, and the same through its export."""
    model = BiEncoder.load(folder, device="cpu")
    export_onnx(model.model, target, dtype)
    return model, BiEncoder.load(target)


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal up to the rounding of sums in another order."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max(initial=0) <= 2e-5 * max(np.abs(theirs).max(initial=0), 1e-9)


@pytest.mark.parametrize("family", NATIVE)
def test_families(make: Callable[..., Path], family: str, tmp_path: Path) -> None:
    model, graph = exported(make(family), tmp_path / "onnx")
    assert graph.info()["engine"] == "onnxruntime (padded)"
    assert_same(graph.encode(TEXTS), model.encode(TEXTS))
    for mine, other in zip(graph.encode(TEXTS, output="tokens"), model.encode(TEXTS, output="tokens"), strict=True):
        assert_same(mine, other)
    assert graph.fingerprint == model.fingerprint


@pytest.mark.parametrize("pooling", [*POOLINGS, ("cls", "max"), ("mean", "cls"), ("lasttoken", "weightedmean", "mean")])
def test_poolings(make: Callable[..., Path], pooling: Any, tmp_path: Path) -> None:
    model, graph = exported(make("bert", pooling=pooling, normalize=False), tmp_path / "onnx")
    assert_same(graph.encode(TEXTS), model.encode(TEXTS))
    lengths = TokenIds([[5 + place % 40 for place in range(length)] for length in range(101)])  # 0 to the limit
    assert_same(graph.encode(lengths), model.encode(lengths))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings_where_padding_has_no_position(make: Callable[..., Path], pooling: str, tmp_path: Path) -> None:
    model, graph = exported(make("roberta", pooling=pooling, normalize=False), tmp_path / "onnx")
    assert_same(graph.encode(TEXTS), model.encode(TEXTS))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_prompts_in_and_out_of_pooling(make: Callable[..., Path], pooling: str, tmp_path: Path) -> None:
    for include in (True, False) if pooling == "mean" else (False,):  # with them, it pools longer texts
        folder = make(
            "bert", pooling=pooling, normalize=False, include_prompt=include, prompts='{"query": "search for: "}'
        )
        model, graph = exported(folder, tmp_path / str(include))
        assert graph.prompts == model.prompts
        assert_same(graph.encode_query(TEXTS), model.encode_query(TEXTS))
        assert_same(graph.encode(TEXTS, prompt="a: "), model.encode(TEXTS, prompt="a: "))
        assert_same(graph.encode(TEXTS), model.encode(TEXTS))


def test_options_of_encode(make: Callable[..., Path], tmp_path: Path) -> None:
    folder = make("bert", dense=24, norm=True)
    model = BiEncoder.load(folder, device="cpu")
    model.truncate_dim, model.similarity_name, model.prompts = 16, "dot", {"query": "q: ", "document": "d: "}
    model.calibrate(TEXTS)
    model.save(tmp_path / "saved")
    model, graph = exported(tmp_path / "saved", tmp_path / "onnx")
    facts, others = graph.info(), model.info()
    assert set(others) - set(facts) == {"layers", "width", "heads"}
    own = {"folder", "layout", "format", "engine", "padding"}
    assert {name: facts[name] for name in set(facts) - own} == {name: others[name] for name in set(facts) - own}
    for options in (
        {},
        {"normalize": False},
        {"normalize": True},
        {"truncate_dim": 8, "normalize": True},
        {"prompt_name": "document"},
        {"batch_tokens": 64},
    ):
        assert_same(graph.encode(TEXTS, **options), model.encode(TEXTS, **options))
    long = [" ".join(TEXTS), *TEXTS]
    assert_same(graph.encode(long, long="average"), model.encode(long, long="average"))
    assert graph.similarity("a", "b") == pytest.approx(model.similarity("a", "b"), abs=1e-4)
    assert np.abs(graph.ranges - model.ranges).max() == 0
    assert isinstance(graph.encode(TEXTS, output="torch"), torch.Tensor)


def test_odd_input(make: Callable[..., Path], tmp_path: Path) -> None:
    model, graph = exported(make("modernbert"), tmp_path / "onnx")
    assert graph.encode([]).shape == (0, 32)
    assert graph.encode("").shape == (32,)
    for texts in ([""], ["one"], ["", "", ""], "하나", TEXTS[:2] * 3):
        assert_same(graph.encode(texts), model.encode(texts))
    assert_same(np.concatenate(list(graph.encode(iter(TEXTS), chunk_rows=7))), model.encode(TEXTS))
    for lengths in ([0], [0, 0], [1], [0, 100, 1], [100]):
        ids = TokenIds([[7] * length for length in lengths])
        assert_same(graph.encode(ids), model.encode(ids))
    with pytest.raises(InputError, match="Token ids must lie between"):
        graph.encode(TokenIds([[10_000]]))
    with pytest.raises(InputError, match="at most 128"):
        graph.max_length = 129
    graph.max_length = model.max_length = 9
    assert_same(graph.encode(TEXTS), model.encode(TEXTS))


@pytest.mark.parametrize(("family", "num_labels"), [*((family, 1) for family in NATIVE), ("bert", 3), ("roberta", 3)])
def test_cross_encoders(make: Callable[..., Path], family: str, num_labels: int, tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make(family, kind="classifier", num_labels=num_labels), device="cpu")
    export_onnx(scorer.model, tmp_path / "onnx", activation=scorer.activation)
    graph = CrossEncoder.load(tmp_path / "onnx")
    assert graph.num_labels == num_labels
    assert_same(graph.predict(PAIRS, activation="Identity"), scorer.predict(PAIRS, activation="Identity"))
    assert_same(graph.predict(PAIRS), scorer.predict(PAIRS))
    assert graph.fingerprint == scorer.fingerprint
    assert graph.info()["padding"].endswith("of what was computed so far")


def test_own_head(make: Callable[..., Path], tmp_path: Path) -> None:
    scorer = CrossEncoder.create(make("roberta"), num_labels=1, device="cpu")
    export_onnx(scorer.model, tmp_path / "onnx", activation=scorer.activation)
    assert_same(CrossEncoder.load(tmp_path / "onnx").predict(PAIRS), scorer.predict(PAIRS))


def test_static_embeddings(make: Callable[..., Path], tmp_path: Path) -> None:
    from model2vec import StaticModel

    source = BiEncoder.load(make("bert"), device="cpu")
    weights = np.random.default_rng(0).normal(size=(source.tokenizer.vocab_size, 16)).astype(np.float32)
    StaticModel(weights, source.tokenizer.rust, normalize=True).save_pretrained(str(tmp_path / "static"))
    model, graph = exported(tmp_path / "static", tmp_path / "onnx")
    assert_same(graph.encode(TEXTS), model.encode(TEXTS))


def test_8_bits(minilm: Path, tmp_path: Path) -> None:
    """Measured on 192 English and Korean texts: mean 0.9984, smallest 0.995."""
    model, graph = exported(minilm, tmp_path / "onnx", "int8")
    ours, theirs = graph.encode(TEXTS), model.encode(TEXTS)
    cosines = (ours * theirs).sum(axis=1)
    assert cosines.min() > 0.985
    assert cosines.mean() > 0.996
    alone = np.stack([graph.encode(text) for text in TEXTS[:10]])  # a text's codes do not depend on its neighbours
    assert (alone * ours[:10]).sum(axis=1).min() > 0.99999
    assert graph.info()["dtype"] == "int8"
    assert graph.fingerprint != model.fingerprint
    size = sum(path.stat().st_size for path in (tmp_path / "onnx").iterdir())
    assert size < 0.3 * (minilm / "model.safetensors").stat().st_size


@pytest.mark.parametrize("family", NATIVE)
def test_8_bits_of_every_family(make: Callable[..., Path], family: str, tmp_path: Path) -> None:
    # ALBERT goes through one layer three times: 8 bits of weights drawn so wide may leave less than an export needs
    folder = make(family, seed=4) if family == "albert" else make(family)
    model, graph = exported(folder, tmp_path / "onnx", "int8")
    vectors = graph.encode(TEXTS)
    assert (vectors * model.encode(TEXTS)).sum(axis=1).mean() > 0.98
    careful = open_session(tmp_path / "onnx" / "model.onnx", 1, is_overflow_safe=True)  # as on a CPU without VNNI
    kept = graph.network.encoder._sessions
    kept.update(dict.fromkeys(kept, careful))
    assert_same(graph.encode(TEXTS), vectors)


def test_what_differs_is_not_written(make: Callable[..., Path], tmp_path: Path) -> None:
    """Hidden units so large that 8 bits leave nothing for the others, and that count for nothing themselves."""
    folder = copy(make("bert"), tmp_path / "bert")

    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            if name.endswith("intermediate.dense.bias"):
                tensor[0] = 1e6
            elif name.endswith("output.dense.weight") and "attention" not in name:
                tensor[:, 0] = 0

    change_weights(folder, spoil)
    model = BiEncoder.load(folder, device="cpu")
    with pytest.raises(CheckpointError, match=r"the int8 graph differs from the network .* not written"):
        export_onnx(model.model, tmp_path / "onnx", "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["bert"]
    assert export_onnx(model.model, tmp_path / "onnx").smallest > 0.9999


def test_what_is_not_exported(make: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="runs through transformers"):
        exported(make("nomic-like"), tmp_path / "onnx")
    _, graph = exported(make("bert"), tmp_path / "once")
    with pytest.raises(UnsupportedModel, match="ONNX export already"):
        export_onnx(graph.model, tmp_path / "twice")
    with pytest.raises(UnsupportedModel, match="holds no weights to save"):
        graph.save(tmp_path / "saved")
    with pytest.raises(InputError, match="Unknown dtype of an ONNX export 'int4'; choose from float32, int8"):
        export_onnx(BiEncoder.load(make("bert")).model, tmp_path / "onnx", "int4")
    assert [path.name for path in tmp_path.iterdir()] == ["once"]


def test_padding_is_counted(make: Callable[..., Path], tmp_path: Path) -> None:
    _, graph = exported(make("bert"), tmp_path / "onnx")
    assert graph.info()["padding"] == "0.0% of what was computed so far"
    graph.encode(TokenIds([[7] * 10, [7] * 8, [7] * 6]))
    assert graph.info()["padding"] == "20.0% of what was computed so far"
    graph.encode(mixed(400, longest=90))
    assert float(graph.info()["padding"].partition("%")[0]) < 10


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_through_compat(make: Callable[..., Path], dtype: str, tmp_path: Path) -> None:
    from munjang.compat import SentenceTransformer

    _, graph = exported(make("bert"), tmp_path / "onnx", dtype)
    assert_same(SentenceTransformer(str(tmp_path / "onnx")).encode(TEXTS), graph.encode(TEXTS))


def vectors_in_child(model: BiEncoder, queue: Any) -> None:
    queue.put(model.encode(TEXTS))


def test_threads_processes_pickles(make: Callable[..., Path], tmp_path: Path) -> None:
    _, graph = exported(make("bert"), tmp_path / "onnx")
    expected = graph.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: graph.encode(TEXTS), range(8)):
            assert_same(vectors, expected)
    assert_same(pickle.loads(pickle.dumps(graph)).encode(TEXTS), expected)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=vectors_in_child, args=(graph, queue))
    child.start()
    assert_same(queue.get(timeout=60), expected)
    child.join(60)
    assert child.exitcode == 0


def test_agreement_reads_well() -> None:
    assert str(Agreement(31, 0.99999991, 1.0)) == "smallest cosine 0.9999999, mean 1.0000000 over 31 texts"
