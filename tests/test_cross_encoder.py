"""CrossEncoder: pairs in, scores out, ranked and refused."""

import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder as TheirCross
from torch import nn

from munjang import CrossEncoder
from munjang.cross_encoder import split_pairs
from munjang.errors import CheckpointError, InputError, MunjangError, TruncationWarning, UnsupportedModel
from munjang.nn import heads
from tests.texts import HOSTILE, mixed

PAIRS = list(zip(mixed(20, longest=15), mixed(20, seed=1, longest=15), strict=True))


@pytest.fixture(scope="module")
def scorer(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="classifier", num_labels=1))


@pytest.fixture(scope="module")
def labels(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="classifier", num_labels=3))


# predict


def test_shapes(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    assert scorer.predict(PAIRS).shape == (20,)
    assert labels.predict(PAIRS).shape == (20, 3)
    assert scorer.predict(PAIRS).dtype == labels.predict(PAIRS).dtype == np.float32
    assert np.ndim(scorer.predict(("a", "b"))) == 0
    assert labels.predict(["a", "b"]).shape == (3,)
    assert scorer.predict([("a", "b")]).shape == (1,)
    assert scorer.predict([]).shape == (0,)
    assert labels.predict([]).shape == (0, 3)
    assert (scorer.num_labels, labels.num_labels) == (1, 3)


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, object),
        iter(PAIRS),
        zip(*zip(*PAIRS, strict=True), strict=True),
    ],
    ids=["list", "tuple", "lists", "array", "objects", "iterator", "zip"],
)
def test_kinds_of_pairs(scorer: CrossEncoder, given: Any) -> None:
    np.testing.assert_allclose(scorer.predict(given), scorer.predict(PAIRS), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "list of .text, text., not str"),
        (None, "list of .text, text., not NoneType"),
        (5, "not int"),
        ({"a": "b"}, "not dict"),
        ({("a", "b")}, "not set"),
        (["a", "b", "c"], "Pair 0 should be two texts, not 'a'"),
        ([("a", "b"), ("a",)], r"Pair 1 should be two texts, not \('a',\)"),
        ([("a", "b", "c")], "Pair 0 should be two texts"),
        ([("a", "b"), "ab"], "Pair 1 should be two texts, not 'ab'"),
        ([("a", None)], "Item 0 of the second texts is missing"),
        ([("a", "b"), (b"a", "b")], "Item 1 of the first texts is bytes"),
        ([("a", ["b"])], "Item 0 of the second texts is list"),
        (np.zeros((2, 2)), "Item 0 of the first texts is float"),
    ],
    ids=lambda given: repr(given)[:20],
)
def test_refused_by_name(scorer: CrossEncoder, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scorer.predict(given)


def test_split_pairs() -> None:
    assert split_pairs(("a", "b")) == (["a"], ["b"], True)
    assert split_pairs([("a", "b"), ["c", "d"]]) == (["a", "c"], ["b", "d"], False)
    assert split_pairs([]) == ([], [], False)


def test_a_score_is_the_same_alone_and_in_any_batch(scorer: CrossEncoder) -> None:
    whole = scorer.predict(PAIRS, activation="Identity")
    alone = np.array([scorer.predict(pair, activation="Identity") for pair in PAIRS])
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(alone, whole, atol=2e-5 * np.abs(whole).max())
    shuffled = scorer.predict([PAIRS[row] for row in order], activation="Identity", batch_tokens=50)
    np.testing.assert_allclose(shuffled, whole[order], atol=2e-5 * np.abs(whole).max())


def test_the_two_sides_differ(scorer: CrossEncoder) -> None:
    turned = [(b, a) for a, b in PAIRS]
    assert np.abs(scorer.predict(PAIRS) - scorer.predict(turned)).max() > 1e-3


def test_equal_pairs_are_computed_once(scorer: CrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    forward = scorer.network.encoder.forward

    def counting(batch: Any) -> Any:
        seen.append(batch.num_tokens)
        return forward(batch)

    monkeypatch.setattr(scorer.network.encoder, "forward", counting)
    found = scorer.predict([*PAIRS, *PAIRS[::-1], *PAIRS])
    tokens = scorer.tokenizer.pairs([a for a, _ in PAIRS], [b for _, b in PAIRS])
    assert sum(seen) == tokens.lengths.sum()  # no padding, no pair twice
    np.testing.assert_array_equal(found[:20], found[20:40][::-1])
    np.testing.assert_array_equal(found[:20], found[40:])


def test_every_text_is_tokenized_once(scorer: CrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    bodies = scorer.tokenizer.bodies
    monkeypatch.setattr(scorer.tokenizer, "bodies", lambda texts: (seen.extend(texts), bodies(texts))[1])
    scorer.rank("fox", ["one", "two", "fox"])
    assert sorted(seen) == ["fox", "one", "two"]


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_hostile_pairs(make: Callable[..., Path], family: str) -> None:
    scorer = CrossEncoder.load(make(family, kind="classifier", num_labels=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        scores = scorer.predict(list(zip(HOSTILE, HOSTILE[::-1], strict=True)))
    assert np.isfinite(scores).all()
    assert scorer.predict(("", "")) == pytest.approx(scorer.predict([("", ""), ("a", "b")])[0], abs=1e-5)


def test_long_pairs(scorer: CrossEncoder) -> None:
    long = "word " * 200_000
    with pytest.warns(TruncationWarning, match="3 of 4 pairs are longer than 100 tokens") as caught:
        scores = scorer.predict([(long, "a"), ("a", "b"), ("a", long), (long, "a")])
    assert caught[0].filename == __file__
    assert np.isfinite(scores).all()
    assert scores[0] == scores[3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer.predict(PAIRS[:3])


def test_max_length(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    scorer.max_length = 8
    with pytest.warns(TruncationWarning, match="longer than 8 tokens"):
        scorer.predict(("the quick brown fox", "jumps over lazy dogs"))
    for tokens in (3, 129, None):
        with pytest.raises(InputError, match="max_length"):
            scorer.max_length = tokens


# Prompts


@pytest.fixture(scope="module")
def prompted(make: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder by sentence-transformers with a default prompt, another one, and an empty one."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    prompts = {"ask": "quick brown: ", "other": "나는 ", "plain": ""}
    theirs = TheirCross(str(make("bert", kind="classifier", num_labels=1)), device="cpu", prompts=prompts)
    theirs.default_prompt_name = "ask"
    theirs.save(str(folder), create_model_card=False)
    return folder


@pytest.mark.parametrize(
    "options", [{}, {"prompt_name": "other"}, {"prompt": "my own: "}, {"prompt": ""}, {"prompt_name": "plain"}]
)
def test_prompts_like_the_incumbent(prompted: Path, options: dict[str, str]) -> None:
    ours, theirs = CrossEncoder.load(prompted), TheirCross(str(prompted), device="cpu")
    expected = theirs.predict(PAIRS, activation_fn=nn.Identity(), **options)
    found = ours.predict(PAIRS, activation="Identity", **options)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    other = ours.predict(PAIRS, activation="Identity", prompt="something else: ")
    assert np.abs(other - found).max() > 1e-2  # or nothing would be seen here
    documents = [document for _, document in PAIRS]
    hits, there = ours.rank("fox", documents, **options), theirs.rank("fox", documents, **options)
    assert [hit.index for hit in hits] == [hit["corpus_id"] for hit in there]
    np.testing.assert_allclose([hit.score for hit in hits], [hit["score"] for hit in there], atol=1e-5)
    assert [hit.text for hit in hits] == [documents[hit.index] for hit in hits]


def test_a_prompt_goes_before_the_first_text(prompted: Path) -> None:
    scorer = CrossEncoder.load(prompted)
    put = scorer.predict([("quick brown: " + a, b) for a, b in PAIRS], prompt="")
    np.testing.assert_allclose(scorer.predict(PAIRS), put, atol=1e-6)
    assert scorer.predict(PAIRS[0]) == pytest.approx(put[0], abs=1e-6)
    many = scorer.rank_many(["fox", "dog"], [["a", "b"], ["c"]], prompt_name="other")
    assert [hit.text for hit in many[1]] == ["c"]
    assert many[1][0].score == pytest.approx(scorer.predict(("나는 dog", "c"), prompt=""), abs=1e-6)


def test_prompts_are_settings(prompted: Path, tmp_path: Path) -> None:
    scorer = CrossEncoder.load(prompted)
    assert (scorer.info()["prompts"], scorer.default_prompt_name) == (scorer.prompts, "ask")
    scorer.prompts, scorer.default_prompt_name = {"mine": "over: ", "none": ""}, "mine"
    scorer.save(tmp_path / "saved")
    expected = scorer.predict([("over: " + a, b) for a, b in PAIRS], prompt="")
    for again in (CrossEncoder.load(tmp_path / "saved"), pickle.loads(pickle.dumps(scorer))):
        assert (again.prompts, again.default_prompt_name) == ({"mine": "over: ", "none": ""}, "mine")
        np.testing.assert_allclose(again.predict(PAIRS), expected, atol=1e-6)


def test_prompts_refused(prompted: Path, scorer: CrossEncoder) -> None:
    model = CrossEncoder.load(prompted)
    for call, message in (
        (lambda: model.predict(PAIRS, prompt_name="axe"), r"Unknown prompt 'axe'; choose from ask, other, plain\."),
        (lambda: model.rank("a", ["b"], prompt_name="axe"), "Unknown prompt 'axe'"),
        (lambda: model.predict(PAIRS, prompt="a", prompt_name="ask"), "not both"),
        (lambda: model.predict(PAIRS, prompt=3), "prompt should be a string, not int"),
        (lambda: scorer.predict(PAIRS, prompt_name="ask"), "this model has none"),
    ):
        with pytest.raises(InputError, match=message):
            call()


# Activations


def test_activations(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    logits, many = scorer.predict(PAIRS, activation="Identity"), labels.predict(PAIRS, activation="Identity")
    sigmoid = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(scorer.predict(PAIRS), sigmoid, atol=1e-6)  # one label: a probability
    np.testing.assert_allclose(labels.predict(PAIRS), many, atol=1e-6)  # several: as they are
    np.testing.assert_allclose(scorer.predict(PAIRS, activation="sigmoid"), sigmoid, atol=1e-6)
    np.testing.assert_allclose(scorer.predict(PAIRS, activation=nn.Tanh()), np.tanh(logits), atol=1e-6)
    np.testing.assert_allclose(scorer.predict(PAIRS, activation=lambda x: x * 2), logits * 2, rtol=1e-6)
    softmax = np.exp(many) / np.exp(many).sum(1, keepdims=True)
    np.testing.assert_allclose(labels.predict(PAIRS, activation="Softmax"), softmax, atol=1e-6)
    np.testing.assert_allclose(labels.predict(PAIRS[0], activation="Softmax"), softmax[0], atol=1e-6)


def test_logits_as_its_own_scores(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")
    for activation in (nn.Sigmoid(), nn.Sequential(nn.Linear(1, 1), nn.Tanh())):  # the second has weights to train
        scorer.activation = activation
        logits = scorer.predict(PAIRS, activation="Identity").tolist()
        np.testing.assert_allclose(scorer.own_scores(logits), scorer.predict(PAIRS), atol=1e-6)
        assert scorer.own_scores([]) == []


def test_activations_refused(scorer: CrossEncoder) -> None:
    with pytest.raises(InputError, match=r"Unknown activation 'Sigmoyd'.*Did you mean 'Sigmoid'"):
        scorer.predict(PAIRS, activation="Sigmoyd")
    for given in (3, nn.Sigmoid):  # the class instead of an instance
        with pytest.raises(InputError, match=f"a name or a function of a tensor, not {given!r}"):
            scorer.predict(PAIRS, activation=given)  # type: ignore[arg-type]

    def broken(logits: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("my own mistake")

    with pytest.raises(RuntimeError, match="my own mistake"):
        scorer.predict(PAIRS, activation=broken)
    assert scorer.predict(PAIRS).shape == (20,)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda logits: logits.sum(), r"shape \[\]"),
        (lambda logits: logits[:, 0].sum(0, keepdim=True), r"shape \[1\]"),
        (lambda logits: logits.repeat(1, 2), r"shape \[20, 2\]"),  # which of the two would be the score?
        (lambda logits: logits.numpy(), "ndarray"),
        (lambda logits: None, "NoneType"),
    ],
)
def test_activations_that_give_no_scores(scorer: CrossEncoder, function: Any, given: str) -> None:
    with pytest.raises(InputError, match=rf"a tensor \[20, \.\.\.\] of logits \[20, 1\], not .*{given}"):
        scorer.predict(PAIRS, activation=function)


def test_activations_of_another_shape_or_type(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    logits = scorer.predict(PAIRS, activation="Identity")
    for function in (lambda x: x[:, 0], lambda x: x.double(), nn.PReLU(init=1)):  # flat, wider, with a gradient
        found = scorer.predict(PAIRS, activation=function)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, logits, rtol=1e-6)
    assert scorer.predict(PAIRS, activation=torch.Tensor.bfloat16).dtype == np.float32
    best = labels.predict(PAIRS, activation=lambda x: x.argmax(1))
    np.testing.assert_array_equal(best, labels.predict(PAIRS).argmax(1))


def test_the_activation_of_a_model_is_a_setting(make: Callable[..., Path], tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    logits = scorer.predict(PAIRS, activation="Identity")
    scorer.activation = "tanh"
    assert (scorer.info()["activation"], scorer.info()["scale"]) == ("Tanh", "tanh")
    np.testing.assert_allclose(scorer.predict(PAIRS), np.tanh(logits), atol=1e-6)
    with pytest.raises(InputError, match="Unknown activation 'tan'"):
        scorer.activation = "tan"
    scorer.activation = torch.sin
    assert scorer.info()["scale"] == scorer.rank("a", ["b"])[0].scale == "custom"
    np.testing.assert_allclose(scorer.predict(PAIRS), np.sin(logits), atol=1e-6)
    with pytest.raises(UnsupportedModel, match="not on the list of safe ones"):  # a folder that would never load
        scorer.save(tmp_path / "sine")
    assert not (tmp_path / "sine").exists()


# rank


def test_rank_is_predict_in_order(scorer: CrossEncoder) -> None:
    documents = mixed(30, seed=2, longest=10)
    hits = scorer.rank("the quick fox", documents)
    scores = scorer.predict([("the quick fox", document) for document in documents])
    assert sorted(hit.index for hit in hits) == list(range(30))
    assert [hit.text for hit in hits] == [documents[hit.index] for hit in hits]
    np.testing.assert_allclose([hit.score for hit in hits], scores[[hit.index for hit in hits]], atol=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.scale for hit in hits} == {"sigmoid"}
    assert scorer.rank("the quick fox", documents, top_k=4) == hits[:4]
    assert scorer.rank("the quick fox", documents, top_k=100) == hits


def test_rank_many_is_rank(scorer: CrossEncoder) -> None:
    queries = ["one fox", "two dogs", "nothing", "one fox"]
    documents = [mixed(5, seed=3, longest=8), mixed(9, seed=4, longest=8), [], np.array(["a", "b"])]
    many = scorer.rank_many(queries, documents, top_k=3)
    assert [len(hits) for hits in many] == [3, 3, 0, 2]
    for query, each, hits in zip(queries, documents, many, strict=True):
        alone = scorer.rank(query, each, top_k=3)
        assert [(hit.index, hit.text) for hit in hits] == [(hit.index, hit.text) for hit in alone]
        np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in alone], atol=1e-6)
    assert scorer.rank_many([], []) == []


def test_ties_keep_their_order(scorer: CrossEncoder) -> None:
    hits = scorer.rank("query", ["same", "same", "other", "same"])
    same = [hit.index for hit in hits if hit.text == "same"]
    assert same == [0, 1, 3]
    many = scorer.rank("query", ["same", "b", "c", "d", "e"] * 7)  # the last ones are where torch rounds otherwise
    assert [hit.index for hit in many if hit.text == "same"] == list(range(0, 35, 5))
    flat = scorer.rank("query", ["c", "a", "b"], activation=lambda logits: logits * 0)
    assert [hit.index for hit in flat] == [0, 1, 2]


def test_scores_that_are_no_numbers_come_last(scorer: CrossEncoder) -> None:
    def holes(logits: torch.Tensor) -> torch.Tensor:
        out = logits.clone()
        out[0] = float("nan")
        return out

    assert [hit.index for hit in scorer.rank("query", ["a", "b", "c"], activation=holes)][-1] == 0


@pytest.mark.parametrize(
    ("activation", "scale"),
    [(None, "sigmoid"), ("Identity", "logit"), ("Tanh", "tanh"), (nn.Sigmoid(), "sigmoid"), (torch.sigmoid, "custom")],
)
def test_every_hit_says_its_scale(scorer: CrossEncoder, activation: Any, scale: str) -> None:
    assert scorer.rank("query", ["a"], activation=activation)[0].scale == scale


def test_rank_refused(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    for call, message in (
        (lambda: labels.rank("a", ["b"]), "needs one score a pair; this model has 3 labels"),
        (lambda: scorer.rank("a", ["b"], top_k=0), "top_k must be a whole number, at least 1, not 0"),
        (lambda: scorer.rank("a", ["b"], top_k=1.5), "top_k must be a whole number, at least 1, not 1.5"),
        (lambda: scorer.rank("a", ["b"], top_k="3"), "top_k must be a whole number, at least 1, not '3'"),
        (lambda: scorer.rank("a", None), "documents should be a list of strings, not missing"),
        (lambda: scorer.rank(None, ["b"]), "Item 0 of the queries is missing"),
        (lambda: scorer.rank_many(["a"], None), "a list of documents for each query, not NoneType"),
        (lambda: scorer.rank_many(["a"], "b"), "a list of documents for each query, not str"),
        (lambda: scorer.rank("a", "b"), "documents should be a list of strings, not str"),
        (lambda: scorer.rank("a", [None]), "Item 0 of the documents is missing"),
        (lambda: scorer.rank(["a"], ["b"]), "Item 0 of the queries is list"),
        (lambda: scorer.rank_many("ab", [["a"], ["b"]]), "queries should be a list of strings, not str"),
        (lambda: scorer.rank_many(["a"], [["a"], ["b"]]), "There are 1 queries and 2 lists of documents"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert scorer.rank("query", []) == []
    assert len(scorer.rank("query", ["a", "b"], top_k=np.int64(1))) == 1


def test_long_documents_are_counted(scorer: CrossEncoder) -> None:
    long = "word " * 300
    with pytest.warns(TruncationWarning, match="2 of 3 pairs are longer than 100 tokens"):
        hits = scorer.rank("query", [long, "short", long])
    assert [hit.index for hit in hits if hit.text == long] == [0, 2]


# The model as a thing


def test_many_threads_at_once(scorer: CrossEncoder) -> None:
    parts = [PAIRS[start:] + PAIRS[:start] for start in range(20)] * 3
    expected = scorer.predict(PAIRS, activation="Identity")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: scorer.predict(part, activation="Identity", batch_tokens=60), parts))
    for number, scores in enumerate(found):
        np.testing.assert_allclose(scores, np.roll(expected, -number), atol=2e-5 * np.abs(expected).max())


def test_a_model_pickles_as_its_path_and_settings(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make("bert", kind="classifier", num_labels=1)
    monkeypatch.chdir(folder.parent)
    scorer = CrossEncoder.load(folder.name, threads=1)
    scorer.max_length, scorer.activation = 90, nn.Tanh()
    data = pickle.dumps(scorer)
    assert len(data) < 4000
    monkeypatch.chdir("/")  # another process may stand elsewhere
    again = pickle.loads(data)
    assert (again.max_length, type(again.activation)) == (90, nn.Tanh)
    assert again.fingerprint == scorer.fingerprint
    np.testing.assert_array_equal(again.predict(PAIRS), scorer.predict(PAIRS))
    with pytest.raises(MunjangError, match="save it and load it from there"):
        pickle.dumps(CrossEncoder.create(make("bert")))


def test_create_save_and_load(make: Callable[..., Path], tmp_path: Path, unbundled: Path) -> None:
    torch.manual_seed(0)
    scorer = CrossEncoder.create(make("bert"), num_labels=2)
    assert scorer.predict(PAIRS).shape == (20, 2)
    scorer.save(tmp_path / "saved")
    again = CrossEncoder.load(tmp_path / "saved")
    np.testing.assert_allclose(again.predict(PAIRS), scorer.predict(PAIRS), atol=1e-6)
    assert again.fingerprint == scorer.fingerprint
    with pytest.raises(InputError, match="num_labels must be at least 1, not 0"):
        CrossEncoder.create(make("bert"), num_labels=0)
    with pytest.raises(CheckpointError, match="No re-ranker is bundled"):
        CrossEncoder.load()


def test_the_checkpoints_own_activation(make: Callable[..., Path], tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    for name in ("Identity", "Sigmoid", "Tanh"):
        scorer.activation = heads.ACTIVATIONS[name]()
        scorer.save(tmp_path / name)
        again = CrossEncoder.load(tmp_path / name)
        assert type(again.activation).__name__ == name
        np.testing.assert_allclose(again.predict(PAIRS), scorer.predict(PAIRS), atol=1e-6)


def test_ids_that_the_model_has_no_row_for(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    scorer.tokenizer.rust.add_tokens(["brandnew"])
    scorer.tokenizer.plain.lookup = None
    with pytest.raises(CheckpointError, match=r"gives the id .* a token was added without a row"):
        scorer.predict(("a brandnew word", "b"))


def test_info(labels: CrossEncoder) -> None:
    facts = labels.info()
    assert (facts["kind"], facts["labels"], facts["scale"]) == ("cross-encoder", 3, "logit")
