"""From the texts of a request to tokens, prompts, cuts and sizes."""

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.server.embedder import Embedder, Embedding
from munjang.server.errors import Refused
from munjang.server.reranker import Reranker, sigmoid

TEXTS = ["hello world", "나는 오늘 학교에 간다", "a"]


def test_tokens_are_counted_with_special_ones(model: BiEncoder) -> None:
    work = Embedder("x", model).prepare(TEXTS, Embedding())
    assert work.tokens == [len(row) for row in model.tokenize(TEXTS).sequences]


def test_token_ids_with_and_without_special_ones(model: BiEncoder) -> None:
    whole = [row.tolist() for row in model.tokenize(TEXTS).sequences]
    embedder = Embedder("x", model)
    for rows in (whole, [row[1:-1] for row in whole]):
        assert [unit.tolist() for unit in embedder.prepare(rows, Embedding()).units] == whole
    (long,) = embedder.prepare([whole[0][1:-1] * 200], Embedding()).units
    assert len(long) == model.max_length
    assert long[-1] == whole[0][-1]


@pytest.mark.parametrize("row", [[], [-1], [10**9]])
def test_token_ids_of_no_model(row: list[int], model: BiEncoder) -> None:
    with pytest.raises(InputError, match="Text 0 should be token ids of x"):
        Embedder("x", model).prepare([row], Embedding())


def test_prompts_by_name_and_by_role(tiny_bert: object) -> None:
    model = BiEncoder.load(tiny_bert, "cpu", threads=1)  # type: ignore[arg-type]
    model.prompts = {"query": "hello ", "passage": "the "}
    embedder = Embedder("x", model)
    assert embedder.prompt(Embedding(prompt_name="passage")) == "the "
    assert embedder.prompt(Embedding(role="query")) == "hello "
    assert embedder.prompt(Embedding(role="document")) == "the "
    assert embedder.prompt(Embedding()) == ""
    with pytest.raises(InputError, match="Unknown prompt 'other'"):
        embedder.prompt(Embedding(prompt_name="other"))
    ids = embedder.prepare(["world"], Embedding(role="query")).units[0]
    assert ids.tolist() == model.tokenize(["hello world"]).sequences[0].tolist()  # type: ignore[union-attr]
    model.network.includes_prompt = False  # then the network has to be told where the prompt ends
    work = embedder.prepare(["world"], Embedding(role="query"))
    assert (list(work.units), work.settings) == (["world"], ("hello ", False))


def test_a_text_that_is_too_long(model: BiEncoder) -> None:
    texts = ["short", "hello " * 500]
    assert Embedder("x", model).prepare(texts, Embedding()).tokens[1] == model.max_length
    with pytest.raises(Refused, match="Text 1 has more tokens than the 100 that x reads"):
        Embedder("x", model).prepare(texts, Embedding(truncate=False))


def test_sizes_and_lengths_of_vectors(model: BiEncoder) -> None:
    embedder, full = Embedder("x", model, (8,)), model.encode(TEXTS)
    np.testing.assert_array_equal(embedder.finish(list(full), Embedding()), full)
    cut = embedder.finish(list(full), Embedding(dimensions=8, normalize=True))
    np.testing.assert_allclose(cut, full[:, :8] / np.linalg.norm(full[:, :8], axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(embedder.finish(list(full), Embedding(dimensions=8, normalize=False)), full[:, :8])
    with pytest.raises(Refused, match="no vectors of 9 dimensions; choose from 8"):
        embedder.prepare(TEXTS, Embedding(dimensions=9))
    with pytest.raises(InputError, match="can't be cut to 33"):
        Embedder("x", model, (33,))


def test_pairs_are_counted(scorer: CrossEncoder) -> None:
    work = Reranker("r", scorer).prepare("hello", TEXTS)
    assert work.tokens == scorer.tokenizer.pairs(["hello"] * 3, TEXTS).lengths.tolist()
    with pytest.raises(Refused, match="Query and text 1 have"):
        Reranker("r", scorer).prepare("hello", ["a", "hello " * 500], truncate=False)


def test_sigmoid_of_anything() -> None:
    assert sigmoid([0.0, 1000.0, -1000.0]) == [0.5, 1.0, 0.0]
    assert sigmoid([1.5])[0] == pytest.approx(1 / (1 + np.exp(-1.5)), rel=1e-12)


def test_what_is_no_number_is_the_models_fault(model: BiEncoder, scorer: CrossEncoder) -> None:
    with pytest.raises(Refused, match="not finite") as caught:
        Embedder("x", model).finish([np.full(model.width, np.nan, np.float32)], Embedding())
    assert caught.value.kind == "model"


def test_scores_on_the_models_own_scale(scorer: CrossEncoder) -> None:
    pairs = [("hello", text) for text in TEXTS]
    logits = scorer.predict(pairs, activation="Identity").tolist()
    assert scorer.own_scores(logits) == pytest.approx(scorer.predict(pairs).tolist(), abs=1e-6)
