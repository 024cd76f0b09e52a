"""BiEncoder: what goes in, what comes out, and what is refused."""

import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from munjang.errors import CheckpointError, InputError, MunjangError, TruncationWarning
from munjang.nn.similarity import SIMILARITIES, unit
from munjang.types import TokenIds
from tests.texts import HOSTILE, mixed

TEXTS = ["나는 오늘 학교에 갔다", "the quick brown fox", "", "music", "the quick brown fox jumps over"]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert)


@pytest.fixture(scope="module")
def vectors(model: BiEncoder) -> np.ndarray:
    return np.stack([model.encode(text) for text in TEXTS])


def prompted(make: Callable[..., Path], **more: Any) -> BiEncoder:
    prompts = '{"query": "quick: ", "document": "brown: ", "other": "fox: "}'
    return BiEncoder.load(make("bert", prompts=prompts, **more))


# What goes in


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, index=[9, 3, 3, 0, -1]),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        dict.fromkeys(TEXTS).keys(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_columns(model: BiEncoder, vectors: np.ndarray, given: Any) -> None:
    found = model.encode(given)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, vectors, atol=2e-6)


def test_one_text_and_none(model: BiEncoder) -> None:
    assert model.encode("하나").shape == (32,)
    assert model.encode(["하나"]).shape == (1, 32)
    assert model.encode([]).shape == (0, 32)
    assert model.encode([]).dtype == np.float32
    assert model.encode([], truncate_dim=8).shape == (0, 8)
    assert model.encode([], output="torch").shape == (0, 32)
    assert model.encode([], output="tokens") == []
    assert model.encode([], precision="ubinary").shape == (0, 4)
    assert model.encode([], long="average").shape == (0, 32)
    assert model.encode(TokenIds([])).shape == (0, 32)
    assert list(model.encode(iter([]))) == []


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "qwen3"])
def test_empty_and_blank_texts_like_the_incumbent(make: Callable[..., Path], family: str) -> None:
    folder = make(family)
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    for text in ("", " ", "\n\t  ", "\u200b"):
        expected = theirs.encode(text)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(ours.encode(text), expected, atol=1e-5)
        np.testing.assert_allclose(ours.encode([text, "one", text])[2], expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_hostile_texts(make: Callable[..., Path], family: str) -> None:
    model = BiEncoder.load(make(family))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        found = model.encode(HOSTILE)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "list of strings, not missing"),
        (7, r"list of strings, not int \(7\)"),
        (b"bytes", "list of strings, not bytes"),
        ({"a": "b"}, "list of strings, not dict"),
        ({"a", "b"}, "list of strings, not set"),
        (["a", None, "b"], "Item 1 of the texts is missing"),
        (pd.Series(["a", np.nan]), "Item 1 of the texts is missing"),
        (["a", 1.5], r"Item 1 of the texts is float \(1.5\)"),
        (["a", b"b"], r"Item 1 of the texts is bytes.*decode"),
        (["a", ["b", "c"]], "Item 1 of the texts is list.*CrossEncoder"),
        ([[1, 2, 3]], "Item 0 of the texts is list.*TokenIds"),
        (pd.DataFrame({"text": ["a"]}), "one column, not a whole DataFrame"),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_refused_by_name(model: BiEncoder, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.encode(given)
    with pytest.raises(ValueError, match=message):  # for callers who know only Python's own
        model.encode_query(given)


def test_a_stream_with_something_else_in_it(model: BiEncoder) -> None:
    results = model.encode(iter(["a", "b", "c", None, "d"]), chunk_rows=2)
    assert next(results).shape == (2, 32)
    with pytest.raises(InputError, match="Item 3 of the texts is missing"):
        next(results)


# Streams


def counted(texts: list[str], taken: list[str]) -> Iterator[str]:
    for text in texts:
        taken.append(text)
        yield text


def test_streams_are_read_as_needed(model: BiEncoder) -> None:
    texts, taken = mixed(50, longest=10), []
    results = model.encode(counted(texts, taken), chunk_rows=8)
    assert taken == []
    first = next(results)
    assert len(taken) == 8
    rest = list(results)
    assert [len(part) for part in [first, *rest]] == [8, 8, 8, 8, 8, 8, 2]
    np.testing.assert_allclose(np.concatenate([first, *rest]), model.encode(texts), atol=2e-6)


@pytest.mark.parametrize("kind", ["generator", "map", "file", "iterator"])
def test_kinds_of_streams(model: BiEncoder, kind: str) -> None:
    lines = ["one\n", "둘\n", "three"]
    stream = {
        "generator": lambda: (line for line in lines),
        "map": lambda: map(str.lower, lines),
        "file": lambda: io.StringIO("".join(lines)),
        "iterator": lambda: iter(lines),
    }[kind]()
    np.testing.assert_allclose(np.concatenate(list(model.encode(stream))), model.encode(lines), atol=2e-6)


def test_an_error_of_the_stream_itself(model: BiEncoder) -> None:
    def broken() -> Iterator[str]:
        yield from ["a", "b", "c"]
        raise OSError("the disk is gone")

    results = model.encode(broken(), chunk_rows=2)
    assert len(next(results)) == 2
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)
    assert model.encode("still there").shape == (32,)


def test_chunk_rows_and_streamed_options(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="chunk_rows must be at least 1, not 0"):
        model.encode(iter(["a"]), chunk_rows=0)
    with pytest.raises(InputError, match="Unknown output 'jax'"):  # at the call, not at the first chunk
        model.encode(iter(["a"]), output="jax")
    assert [part.shape for part in model.encode(iter(["a", "b", "a"]), chunk_rows=2, truncate_dim=4)] == [
        (2, 4),
        (1, 4),
    ]
    assert [len(part) for part in model.encode(iter(["a", "b b", "c"]), chunk_rows=2, output="tokens")] == [2, 1]


# What comes out


def test_order_is_kept_and_equal_texts_are_computed_once(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed(40, longest=30)
    shuffled = [texts[row] for row in np.random.default_rng(0).integers(0, 40, 200)]
    seen: list[int] = []
    forward = model.network.encoder.forward

    def counting(batch: Any) -> Any:
        seen.append(batch.num_tokens)
        return forward(batch)

    monkeypatch.setattr(model.network.encoder, "forward", counting)
    found = model.encode(shuffled)
    assert sum(seen) == model.tokenizer(sorted(set(shuffled))).lengths.sum()  # no padding, no text twice
    place = {text: row for row, text in enumerate(texts)}
    np.testing.assert_allclose(found, model.encode(texts)[[place[text] for text in shuffled]], atol=2e-6)


@pytest.mark.parametrize("output", ["numpy", "torch", "tokens"])
def test_duplicates_in_every_output(model: BiEncoder, output: str) -> None:
    found = model.encode(["a", "b c", "a"], output=output)
    assert len(found) == 3
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1][: len(found[0])])


def test_truncate_dim(model: BiEncoder, vectors: np.ndarray) -> None:
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=5), vectors[:, :5], atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=5, normalize=True), unit(vectors[:, :5]), atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=32), vectors, atol=2e-6)
    for dim in (0, 33, -1):
        with pytest.raises(InputError, match=f"truncate_dim must be between 1 and 32, not {dim}"):
            model.encode(TEXTS, truncate_dim=dim)


@pytest.mark.parametrize("is_unit", [True, False])
def test_normalize_three_ways(make: Callable[..., Path], is_unit: bool) -> None:
    model = BiEncoder.load(make("bert", normalize=is_unit))
    raw, own, whole = (model.encode(TEXTS, normalize=how) for how in (False, None, True))
    assert np.abs(np.linalg.norm(raw, axis=1) - 1).min() > 0.01
    np.testing.assert_allclose(whole, unit(raw), atol=2e-6)
    np.testing.assert_allclose(own, whole if is_unit else raw, atol=2e-6)


def test_torch_output(model: BiEncoder, vectors: np.ndarray) -> None:
    found = model.encode(TEXTS, output="torch")
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, found.device.type) == (torch.float32, "cpu")
    np.testing.assert_allclose(found.numpy(), vectors, atol=2e-6)
    assert not found.is_inference()
    (found.requires_grad_() * 2).sum().backward()  # it may go on in a training step
    assert model.encode("one", output="torch").shape == (32,)
    assert model.encode(TEXTS, output="torch", precision="ubinary").dtype == torch.uint8


def test_token_vectors(model: BiEncoder) -> None:
    states = model.encode(TEXTS, output="tokens")
    lengths = model.tokenizer(TEXTS).lengths.tolist()
    assert [state.shape for state in states] == [(length, 32) for length in lengths]
    assert all(state.dtype == np.float32 for state in states)
    means = np.stack([state.mean(0) for state in states])  # the model's own pooling
    np.testing.assert_allclose(unit(means), model.encode(TEXTS), atol=2e-6)
    assert model.encode("one", output="tokens").ndim == 2
    for option in ({"precision": "int8", "ranges": np.zeros((2, 32))}, {"truncate_dim": 4}, {"long": "average"}):
        with pytest.raises(InputError, match="token vectors as they are"):
            model.encode(TEXTS, output="tokens", **option)


def test_names_that_are_in_no_table(model: BiEncoder) -> None:
    for option, message in (
        ({"output": "numpi"}, "Unknown output 'numpi'.*Did you mean 'numpy'"),
        ({"precision": "int"}, "Unknown precision 'int'"),
        ({"long": "cut"}, "Unknown long 'cut'; choose from average, error, truncate"),
        ({"prompt_name": "poem"}, "Unknown prompt 'poem'"),
        ({"prompt": "a", "prompt_name": "b"}, "not both"),
        ({"prompt": 3}, "prompt should be a string, not int"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, not 0"),
    ):
        with pytest.raises(InputError, match=message):
            model.encode(TEXTS, **option)


# Prompts


def test_prompts(make: Callable[..., Path]) -> None:
    model = prompted(make)
    for how, prompt in (
        ({"prompt_name": "other"}, "fox: "),
        ({"prompt": "my own: "}, "my own: "),
        ({"prompt": ""}, ""),
        ({}, ""),
    ):
        expected = model.encode([prompt + text for text in TEXTS], prompt="")
        np.testing.assert_allclose(model.encode(TEXTS, **how), expected, atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS), model.encode(TEXTS, prompt_name="query"), atol=2e-6)
    np.testing.assert_allclose(model.encode_document(TEXTS), model.encode(TEXTS, prompt_name="document"), atol=2e-6)
    np.testing.assert_allclose(model.encode_query("one"), model.encode("one", prompt="quick: "), atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS, prompt=""), model.encode(TEXTS), atol=2e-6)
    with pytest.raises(InputError, match=r"Unknown prompt 'quary'; choose from document, other, query\. Did you mean"):
        model.encode(TEXTS, prompt_name="quary")


def test_the_default_prompt(make: Callable[..., Path]) -> None:
    model = prompted(make)
    model.default_prompt_name = "other"
    np.testing.assert_allclose(model.encode(TEXTS), model.encode(TEXTS, prompt="fox: "), atol=2e-6)
    np.testing.assert_allclose(model.encode_query(TEXTS), model.encode(TEXTS, prompt="quick: "), atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, prompt=""), prompted(make).encode(TEXTS), atol=2e-6)


def test_without_prompts_both_roles_are_plain(model: BiEncoder, vectors: np.ndarray) -> None:
    np.testing.assert_allclose(model.encode_query(TEXTS), vectors, atol=2e-6)
    np.testing.assert_allclose(model.encode_document(TEXTS), vectors, atol=2e-6)


def test_equal_texts_under_another_prompt_are_not_equal(make: Callable[..., Path]) -> None:
    model = prompted(make)
    assert not np.allclose(model.encode_query("fox"), model.encode_document("fox"), atol=1e-3)


# Long texts


LONG = " ".join(f"word{number}" for number in range(300))


def test_a_million_characters(model: BiEncoder) -> None:
    for text in ("word " * 200_000, "가나다라 " * 200_000):
        with pytest.warns(TruncationWarning, match="1 of 2 texts are longer than 100 tokens and were cut"):
            found = model.encode([text, "short"])
        head = model.tokenizer([text]).ids
        assert len(head) == 100
        np.testing.assert_allclose(found[0], model.encode(TokenIds([head]))[0], atol=2e-6)


def test_the_warning_counts_the_callers_texts(model: BiEncoder) -> None:
    with pytest.warns(TruncationWarning, match="3 of 5 texts"):
        model.encode([LONG, "short", LONG, LONG + " more", "short"])
    with pytest.warns(TruncationWarning, match="1 of 1 texts") as caught:
        model.encode(LONG)
    assert caught[0].filename == __file__  # it points at the caller
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.encode(["short", "texts"])
        model.encode([LONG], long="average")


def test_long_texts_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="1 texts are longer than 100 tokens, the first being 'word0 word1"):
        model.encode(["short", LONG], long="error")
    assert model.encode(["short"], long="error").shape == (1, 32)


@pytest.mark.parametrize("normalize", [None, True, False])
def test_long_texts_averaged(make: Callable[..., Path], normalize: bool | None) -> None:
    model = BiEncoder.load(make("bert"))
    pieces = model.tokenizer.windows([LONG])[0]
    ids = TokenIds(np.split(pieces.ids, np.cumsum(pieces.lengths)[:-1]))
    assert len(ids) > 3
    parts = model.encode(ids, normalize=normalize).astype(np.float64)
    mean = (parts * pieces.lengths[:, None]).sum(0) / pieces.lengths.sum()
    expected = mean if normalize is False else mean / np.linalg.norm(mean)
    found = model.encode(["short", LONG, ""], long="average", normalize=normalize)
    np.testing.assert_allclose(found[1], expected, atol=2e-6)
    np.testing.assert_allclose(found[[0, 2]], model.encode(["short", ""], normalize=normalize), atol=2e-6)
    again = model.encode(["short", LONG, LONG], long="average", normalize=normalize, batch_tokens=64, output="torch")
    np.testing.assert_allclose(again[2].numpy(), expected, atol=2e-6)


def test_averaged_pieces_all_begin_with_the_prompt(make: Callable[..., Path]) -> None:
    for include in (True, False):
        model = prompted(make, include_prompt=include)
        head = model.tokenizer.prompt_length("quick: ") - 1
        pieces, _ = model.tokenizer.windows(["quick: " + LONG], head)
        states = model.encode(TokenIds(np.split(pieces.ids, np.cumsum(pieces.lengths)[:-1])), output="tokens")
        vectors = unit(np.stack([state[0 if include else head + 1 :].mean(0) for state in states]))
        mean = (vectors * pieces.lengths[:, None]).sum(0)
        found = model.encode([LONG], long="average", prompt_name="query")[0]
        np.testing.assert_allclose(found, mean / np.linalg.norm(mean), atol=2e-6)


def test_a_prompt_that_leaves_no_room(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        model.encode(["text"], long="average", prompt=LONG)


def test_max_length(make: Callable[..., Path]) -> None:
    model = BiEncoder.load(make("bert"))
    assert model.max_length == 100
    model.max_length = 10
    with pytest.warns(TruncationWarning, match="longer than 10 tokens"):
        short = model.encode(LONG)
    model.max_length = 128
    with pytest.warns(TruncationWarning, match="longer than 128 tokens"):
        assert not np.allclose(model.encode(LONG), short, atol=1e-3)
    for tokens in (2, 0, 129, None):
        with pytest.raises(InputError, match="max_length"):
            model.max_length = tokens
    assert model.max_length == 128


# Ready token ids


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "mpnet"])
def test_token_ids_are_the_texts(make: Callable[..., Path], family: str) -> None:
    model = BiEncoder.load(make(family))
    ids = model.tokenize(TEXTS)
    assert len(ids) == len(TEXTS)
    np.testing.assert_allclose(model.encode(ids), model.encode(TEXTS), atol=2e-6)
    listed = TokenIds([list(map(int, sequence)) for sequence in ids.sequences])
    np.testing.assert_allclose(model.encode(listed, truncate_dim=4), model.encode(TEXTS, truncate_dim=4), atol=2e-6)
    assert [len(state) for state in model.encode(ids, output="tokens")] == ids.lengths.tolist()


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([[1, 2], [3, 10_000]], "Token ids must lie between 0 and"),
        ([[1, -1]], "Token ids of text 0 lie between -1 and 1"),
        ([np.array([1, 2**32 + 1])], "Token ids of text 0 lie between 1 and 4294967297"),
        ([[1.5]], "flat sequence of whole numbers"),
        ([["a"]], "flat sequence of whole numbers"),
        ([[[1]]], "flat sequence of whole numbers"),
        ([3], "flat sequence of whole numbers"),
        ([[5] * 5, [5] * 101], "Text 1 has 101 token ids; the model reads 100"),
    ],
)
def test_token_ids_refused(model: BiEncoder, sequences: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.encode(TokenIds(sequences))


def test_token_ids_take_no_prompt(make: Callable[..., Path]) -> None:
    model = prompted(make)
    ids = model.tokenize(["fox"])
    for call in (lambda: model.encode(ids, prompt="a"), lambda: model.encode_query(ids)):
        with pytest.raises(InputError, match="give no prompt"):
            call()


def test_ids_that_the_model_has_no_row_for(make: Callable[..., Path]) -> None:
    model = BiEncoder.load(make("bert"))
    model.tokenizer.rust.add_tokens(["brandnew"])
    model.tokenizer.plain.lookup = None
    with pytest.raises(CheckpointError, match=r"gives the id .* a token was added without a row"):
        model.encode(["a brandnew word"])
    assert model.encode(["another word"]).shape == (1, 32)


# Precision


def test_calibrate_save_and_load(make: Callable[..., Path], tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert"))
    texts = mixed(60, longest=20)
    with pytest.raises(InputError, match=r"call model\.calibrate"):
        model.encode(texts, precision="int8")
    vectors = model.encode(texts)
    ranges = model.calibrate(iter(texts))
    assert np.array_equal(ranges, np.stack([vectors.min(0), vectors.max(0)]))
    codes = {
        name: model.encode(texts[:5], precision=name) for name in ("float16", "int8", "uint8", "binary", "ubinary")
    }
    assert [codes[name].dtype.name for name in codes] == ["float16", "int8", "uint8", "int8", "uint8"]
    assert [codes[name].shape[1] for name in codes] == [32, 32, 32, 4, 4]
    steps = (vectors[:5] - ranges[0]) / ((ranges[1] - ranges[0]) / 255)
    assert np.abs(codes["uint8"] - steps).max() <= 1.001
    assert np.array_equal(codes["int8"].astype(int) + 128, codes["uint8"])
    assert np.array_equal(np.unpackbits(codes["ubinary"], axis=1), (vectors[:5] > 0).astype(np.uint8))
    model.save(tmp_path / "saved")
    again = BiEncoder.load(tmp_path / "saved")
    assert np.array_equal(again.encode(texts[:5], precision="int8"), codes["int8"])
    assert np.array_equal(again.encode(texts[0], precision="int8"), codes["int8"][0])  # whatever else is in the batch
    assert np.array_equal(again.encode(texts[:5], precision="int8", truncate_dim=7), codes["int8"][:, :7])
    given = model.encode(texts[:5], precision="uint8", ranges=[[-1.0] * 32, [1.0] * 32])
    assert not np.array_equal(given, codes["uint8"])
    with pytest.raises(InputError, match=r"shape \[2, 32\], not \[2, 3\]"):
        model.encode(texts, precision="int8", ranges=np.zeros((2, 3)))
    for bad in ("one text", ["one text"], []):
        with pytest.raises(InputError):
            model.calibrate(bad)


# Similarity


def test_similarity(model: BiEncoder, vectors: np.ndarray) -> None:
    matrix = model.similarity(TEXTS, vectors)
    assert matrix.shape == (5, 5)
    np.testing.assert_allclose(matrix, SIMILARITIES["cosine"](vectors, vectors), atol=1e-5)
    assert isinstance(model.similarity("fox", "fox"), float)
    assert model.similarity("fox", "fox") == pytest.approx(1, abs=1e-5)
    assert model.similarity("fox", TEXTS).shape == (1, 5)
    assert model.similarity(pd.Series(TEXTS), pa.array(TEXTS)).shape == (5, 5)
    assert model.similarity(np.array(TEXTS), torch.from_numpy(vectors)).shape == (5, 5)
    assert model.similarity([], TEXTS).shape == (0, 5)
    np.testing.assert_allclose(model.similarity_pairwise(TEXTS, vectors), np.ones(5), atol=1e-5)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_the_models_own_similarity(make: Callable[..., Path], name: str, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert", normalize=False))
    model.similarity_name = name
    vectors = model.encode(TEXTS)
    np.testing.assert_allclose(
        model.similarity(TEXTS, TEXTS), SIMILARITIES[name](vectors, vectors), rtol=1e-4, atol=1e-4
    )
    model.save(tmp_path / "saved")
    assert BiEncoder.load(tmp_path / "saved").similarity_name == name
    assert SentenceTransformer(str(tmp_path / "saved"), device="cpu").similarity_fn_name == name


def test_similarity_refused(model: BiEncoder, vectors: np.ndarray) -> None:
    for a, b, message in (
        (vectors, vectors[:, :5], "32 and 5 dimensions"),
        (vectors * np.nan, vectors, "Vector 0 of the first side holds NaN"),
        (vectors, [None, "a"], "second side|Item 0"),
    ):
        with pytest.raises(InputError, match=message):
            model.similarity(a, b)
    with pytest.raises(InputError, match="as many on both sides, not 5 and 2"):
        model.similarity_pairwise(TEXTS, TEXTS[:2])
    with pytest.raises(InputError, match=r"Unknown similarity 'cosin'.*Did you mean 'cosine'"):
        model.similarity_name = "cosin"


# The model as a thing


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
    assert facts["tokenizer"] == "chunk look-up (wordpiece)"
    assert facts["engine"] == "munjang (packed)"
    assert (facts["device"], facts["dtype"]) == ("cpu", "float32")
