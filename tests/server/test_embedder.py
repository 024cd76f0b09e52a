"""From the texts of a request to tokens, prompts, cuts and sizes."""

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.server.embedder import Embedder, Embedding, num_kept_ids
from munjang.server.errors import Refused
from munjang.server.reranker import Reranker, Scoring, sigmoid
from munjang.server.steps import PIECE_CHARS, advance, finished

TEXTS = ["hello world", "나는 오늘 학교에 간다", "a"]


def test_tokens_are_counted_with_special_ones(model: BiEncoder) -> None:
    work = finished(Embedder("x", model).prepare(TEXTS, Embedding()))
    assert work.tokens == [len(row) for row in model.tokenize(TEXTS).sequences]


def test_token_ids_with_and_without_special_ones(model: BiEncoder) -> None:
    whole = [row.tolist() for row in model.tokenize(TEXTS).sequences]
    embedder = Embedder("x", model)
    for rows in (whole, [row[1:-1] for row in whole]):
        assert [unit.tolist() for unit in finished(embedder.prepare(rows, Embedding())).units] == whole
    (long,) = finished(embedder.prepare([whole[0][1:-1] * 200], Embedding())).units
    assert len(long) == model.max_length
    assert long[-1] == whole[0][-1]


@pytest.mark.parametrize("row", [[], [-1], [10**9]])
def test_token_ids_of_no_model(row: list[int], model: BiEncoder) -> None:
    with pytest.raises(InputError, match="Text 0 should be token ids of x"):
        finished(Embedder("x", model).prepare([row], Embedding()))


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
    ids = finished(embedder.prepare(["world"], Embedding(role="query"))).units[0]
    assert ids.tolist() == model.tokenize(["hello world"]).sequences[0].tolist()  # type: ignore[union-attr]
    model.network.includes_prompt = False  # then the network has to be told where the prompt ends
    work = finished(embedder.prepare(["world"], Embedding(role="query")))
    assert (list(work.units), work.settings) == (["world"], ("hello ", False, False))


def test_a_text_that_is_too_long(model: BiEncoder) -> None:
    texts = ["short", "hello " * 500]
    assert finished(Embedder("x", model).prepare(texts, Embedding())).tokens[1] == model.max_length
    with pytest.raises(Refused, match="Text 1 has more tokens than the 100 that x reads"):
        finished(Embedder("x", model).prepare(texts, Embedding(truncate=False)))


def test_sizes_and_lengths_of_vectors(model: BiEncoder) -> None:
    embedder, full = Embedder("x", model, (8,)), model.encode(TEXTS)
    np.testing.assert_array_equal(embedder.finish(list(full), Embedding()), full)
    cut = embedder.finish(list(full), Embedding(dimensions=8, normalize=True))
    np.testing.assert_allclose(cut, full[:, :8] / np.linalg.norm(full[:, :8], axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(embedder.finish(list(full), Embedding(dimensions=8, normalize=False)), full[:, :8])
    with pytest.raises(Refused, match="no vectors of 9 dimensions; choose from 8"):
        finished(embedder.prepare(TEXTS, Embedding(dimensions=9)))
    with pytest.raises(InputError, match="can't be cut to 33"):
        Embedder("x", model, (33,))


def test_pairs_are_counted(scorer: CrossEncoder) -> None:
    work = finished(Reranker("r", scorer).prepare(["hello"], TEXTS))
    assert work.tokens == scorer.tokenizer.pairs(["hello"] * 3, TEXTS).lengths.tolist()
    with pytest.raises(Refused, match="Query and text 1 have"):
        finished(Reranker("r", scorer).prepare(["hello"], ["a", "hello " * 500], Scoring(truncate=False)))


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


def test_ids_that_this_tokenizer_never_gives(model: BiEncoder) -> None:
    """Letters that make words when they are joined: another tokenizer's ids look so."""
    embedder = Embedder("x", model)
    letters = [model.tokenizer.rust.token_to_id(f"##{letter}") for letter in "helo"]
    assert None not in letters
    foreign = [letters[place] for place in (0, 1, 2, 2, 3)] * 4
    with pytest.raises(InputError, match="its tokenizer would never give these"):
        finished(embedder.prepare([foreign], Embedding()))
    own = [row.tolist() for row in model.tokenize(TEXTS).sequences]
    assert num_kept_ids(model.tokenizer, own[1][1:-1]) == len(own[1]) - 2


def test_the_end_of_a_long_text(model: BiEncoder) -> None:
    embedder, long = Embedder("x", model), " ".join(["hello"] * 300 + ["world"] * 40)
    begin, end = (finished(embedder.prepare(["a", long], Embedding(keeps_end=keeps))) for keeps in (False, True))
    assert (list(begin.cut_rows), list(end.cut_rows)) == ([1], [1])
    last = model.tokenize(["world"]).sequences[0].tolist()[1:-1]
    assert end.units[1].tolist()[1:-1][-len(last) :] == last
    assert last[0] not in begin.units[1].tolist()
    assert len(end.units[1]) <= model.max_length
    ids = model.tokenize(["hello"]).sequences[0].tolist()[1:-1] * 200 + last
    (row,) = finished(embedder.prepare([ids], Embedding(keeps_end=True))).units
    assert row.tolist()[-1 - len(last) : -1] == last


def test_at_most_so_many_tokens(model: BiEncoder, scorer: CrossEncoder) -> None:
    embedder = Embedder("x", model)
    work = finished(embedder.prepare(["hello world the cat", "a"], Embedding(max_tokens=2)))
    assert (work.tokens[0] <= 4, list(work.cut_rows)) == (True, [0])
    with pytest.raises(Refused, match="Text 0 has more than 2 tokens"):
        finished(embedder.prepare(["hello world the cat"], Embedding(max_tokens=2, truncate=False)))
    pairs = finished(Reranker("r", scorer).prepare(["hello"], ["hello world the cat", "a"], Scoring(max_tokens=2)))
    assert (list(pairs.cut_rows), pairs.units[1]) == ([0], ("hello", "a"))
    assert "hello world the cat".startswith(pairs.units[0][1])
    assert len(pairs.units[0][1]) < len("hello world the cat")


def test_the_ends_of_long_pairs(scorer: CrossEncoder) -> None:
    texts = [" ".join(["hello"] * 300 + ["world"]), "a"]
    work = finished(Reranker("r", scorer).prepare(["the cat"], texts, Scoring(keeps_end=True)))
    assert (list(work.cut_rows), work.units[0][0]) == ([0], "the cat")
    assert work.units[0][1].endswith("hello world")
    assert len(scorer.tokenizer.pairs(*zip(work.units[0], strict=True)).ids) <= scorer.max_length


def test_texts_are_read_in_pieces(model: BiEncoder, scorer: CrossEncoder) -> None:
    """However many come at once: between two pieces others get their turn, and the ids are those of all together."""
    texts = ["hello world " * 500] * 40 + ["a"] * 40
    steps = Embedder("x", model).prepare(texts, Embedding())
    num_steps = 0
    while not (value := advance(steps, 1e-9)):
        num_steps += 1
    assert num_steps >= sum(map(len, texts)) // PIECE_CHARS
    whole = model.tokenize(texts).sequences
    assert [unit.tolist() for unit in value[0].units] == [row.tolist() for row in whole]
    assert list(value[0].cut_rows) == list(range(40))
    pairs = finished(Reranker("r", scorer).prepare(["hello"], texts))
    assert pairs.tokens == scorer.tokenizer.pairs(["hello"] * 80, texts).lengths.tolist()
