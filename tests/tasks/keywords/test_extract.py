"""Keywords: KeyBERT's own with the same settings, given candidates, seeds, and input that is hard to use."""

from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.tasks.keywords.extract import Keyword, KeywordConfig, keywords

TEXTS = [
    "Supervised learning is the machine learning task of learning a function that maps an input to an output "
    "based on example input-output pairs. It infers a function from labeled training data.",
    "The kitten sleeps on the sofa while the dog barks at the mailman outside in the garden.",
    "Interest rates rose and the stock market fell sharply; investors sold shares of banks and airlines.",
]


@pytest.fixture(scope="module")
def model(minilm: Path) -> BiEncoder:
    return BiEncoder.load(minilm, device="cpu", dtype="float32")


def words(row: list[Keyword]) -> list[str]:
    return [each.text for each in row]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (KeywordConfig(), {}),
        (KeywordConfig(ngrams=(1, 3), top=7), {"keyphrase_ngram_range": (1, 3), "top_n": 7}),
        (KeywordConfig(stop_words="none", min_texts=2), {"stop_words": None, "min_df": 2}),
        (
            KeywordConfig(pick="mmr", diversity=0.7, ngrams=(1, 2)),
            {"use_mmr": True, "diversity": 0.7, "keyphrase_ngram_range": (1, 2)},
        ),
        (KeywordConfig(pick="mmr", diversity=0.2), {"use_mmr": True, "diversity": 0.2}),
        (
            KeywordConfig(pick="max_sum", num_candidates=10, top=3),
            {"use_maxsum": True, "nr_candidates": 10, "top_n": 3},
        ),
    ],
)
def test_keywords_and_scores_are_those_of_keybert(model: BiEncoder, ours: KeywordConfig, theirs: dict) -> None:
    keybert = pytest.importorskip("keybert")
    from munjang.compat.keybert import keybert_embedder

    expected = keybert.KeyBERT(keybert_embedder(model)).extract_keywords(TEXTS, **theirs)
    found = keywords(TEXTS, model, ours)
    for mine, given in zip(found, expected, strict=True):
        given = sorted(given, key=lambda pair: -pair[1])  # max-sum comes in the other order there
        assert words(mine) == [phrase for phrase, _ in given]
        # KeyBERT rounds to four digits
        assert [each.score for each in mine] == pytest.approx([score for _, score in given], abs=6e-5)


@pytest.mark.parametrize("seeds", [["finance", "money"], [["finance"], ["animals", "pets"], ["weather"]]])
def test_seeds_are_those_of_keybert(model: BiEncoder, seeds: list) -> None:
    keybert = pytest.importorskip("keybert")
    from munjang.compat.keybert import keybert_embedder

    expected = keybert.KeyBERT(keybert_embedder(model)).extract_keywords(TEXTS, seed_keywords=seeds)
    for mine, given in zip(keywords(TEXTS, model, seeds=seeds), expected, strict=True):
        assert words(mine) == [phrase for phrase, _ in given]


def test_candidates_for_all_are_those_of_keybert(model: BiEncoder) -> None:
    keybert = pytest.importorskip("keybert")
    from munjang.compat.keybert import keybert_embedder

    given = ["function", "kitten", "market", "training", "absent"]
    expected = keybert.KeyBERT(keybert_embedder(model)).extract_keywords(TEXTS, candidates=given)
    assert [words(row) for row in keywords(TEXTS, model, candidates=given)] == [
        [phrase for phrase, _ in row] for row in expected
    ]


def test_candidates_for_each_text(model: BiEncoder) -> None:
    found = keywords(TEXTS[:2], model, candidates=[["artificial intelligence", "cooking"], ["pets"]])
    assert [words(row) for row in found] == [["artificial intelligence", "cooking"], ["pets"]]


def test_a_phrase_of_many_texts_is_encoded_once(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    plain = model.encode
    monkeypatch.setattr(model, "encode", lambda texts, **more: calls.append(list(texts)) or plain(texts, **more))
    texts = ["red apple", "green apple", "apple tree"]
    keywords(texts, model)
    assert [sorted(call) for call in calls] == [sorted([*texts, "apple", "green", "red", "tree"])]


def test_ready_vectors_give_the_same(model: BiEncoder) -> None:
    vectors = model.encode(TEXTS)
    first, again = keywords(TEXTS, model), keywords(TEXTS, model, vectors=vectors)
    assert [words(row) for row in first] == [words(row) for row in again]


def test_korean_keywords_are_nouns(model: BiEncoder) -> None:
    pytest.importorskip("kiwipiepy")
    (row,) = keywords(["고양이가 소파에서 낮잠을 잔다."], model, KeywordConfig(top=9))
    assert set(words(row)) == {"고양이", "소파", "낮잠"}


def test_texts_without_keywords(model: BiEncoder) -> None:
    assert keywords([], model) == []
    assert keywords(["", "the of and", "?!"], model) == [[], [], []]
    found = keywords(["", "the cat", "the cat"], model)
    assert [words(row) for row in found] == [[], ["cat"], ["cat"]]


def test_vectors_that_do_not_fit_are_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match=r"12 dimensions.*another model"):
        keywords(TEXTS, model, vectors=np.ones((3, 12)))
    with pytest.raises(InputError, match="2 vectors for 3 texts"):
        keywords(TEXTS, model, vectors=np.ones((2, 384)))
    with pytest.raises(InputError, match=r"Vector 1 .*NaN"):
        keywords(TEXTS, model, vectors=np.array([[1.0] * 384, [np.nan] * 384, [1.0] * 384]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top": 0}, "top must be at least 1"),
        ({"ngrams": (0, 1)}, "ngrams"),
        ({"ngrams": 2}, r"ngrams must be \(fewest, most\) .* not 2"),
        ({"ngrams": (1, 2, 3)}, "ngrams must be"),
        ({"ngrams": "12"}, "ngrams must be"),
        ({"min_texts": -1}, "min_texts must be at least 1, not -1"),
        ({"pick": "maxsum"}, "Did you mean 'max_sum'"),
        ({"diversity": -1.0}, "diversity"),
        ({"pick": "max_sum", "top": 30}, "num_candidates"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        KeywordConfig(**settings)


def test_bad_seeds_are_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="no seeds"):
        keywords(TEXTS, model, seeds=[])
    with pytest.raises(InputError, match="1 lists of seeds for 3 texts"):
        keywords(TEXTS, model, seeds=[["a"]])
    with pytest.raises(InputError, match="list of strings"):
        keywords("one text", model)
