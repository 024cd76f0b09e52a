"""Topics: found, named, changed, asked about new texts; and input that is hard to use."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.tasks.topics.changes import diversify_terms, merge_topics, reassign_outliers, reduce_topics
from munjang.tasks.topics.find import TopicConfig, find_topics
from munjang.tasks.topics.model import NO_TOPIC, TopicModel
from tests.tasks.topics.made import SIZES, WORDS, found, made


def words_of(number: int) -> set[str]:
    return set(list(WORDS.values())[number].split())


def test_topics_are_found_numbered_by_size_and_named() -> None:
    model = found()
    assert [topic.size for topic in model.topics] == list(SIZES)
    for topic in model.topics:
        assert {term for term, _ in topic.terms} == words_of(topic.number)  # "the" is a stop word
        assert len(topic.examples) == 3
    assert model.topic_of_N.tolist() == [0] * 30 + [1] * 20 + [2] * 12
    assert model.similarity_N.min() > 0.9


def test_new_texts_get_the_nearest_topic_or_none() -> None:
    model = found()
    given = model.assign(np.eye(8, dtype=np.float32)[[1, 2, 7]], min_similarity=0.5)
    assert given.topic_of_N.tolist() == [1, 2, NO_TOPIC]
    assert given.similarity_N[:2].min() > 0.95
    assert len(model.assign([]).topic_of_N) == 0


def test_merging_adds_sizes_and_names_anew() -> None:
    merged = merge_topics(found(), [[2, 1]])
    assert [topic.size for topic in merged.topics] == [32, 30]
    assert {term for term, _ in merged.topics[0].terms} == words_of(1) | words_of(2)
    assert merged.assign(np.eye(8, dtype=np.float32)[[0, 1, 2]]).topic_of_N.tolist() == [1, 0, 0]


def test_reducing_merges_what_is_most_alike() -> None:
    texts, vectors = made(0)
    vectors[50:, 0] += 0.6  # the third topic leans towards the first
    model = find_topics(texts, config=TopicConfig(num_topics=3), vectors=vectors)
    reduced = reduce_topics(model, 2)
    assert [topic.size for topic in reduced.topics] == [42, 20]
    np.testing.assert_allclose(reduced.sums_TD.sum(0), model.sums_TD.sum(0), atol=1e-4)
    assert reduce_topics(model, 1).topics[0].size == 62
    assert reduce_topics(model, 9).topics == model.topics


def own_cosines(model: TopicModel, vectors: np.ndarray) -> np.ndarray:
    """Each text's cosine to the mean of its topic's unit vectors, worked out one by one."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = []
    for unit, topic in zip(units, model.topic_of_N, strict=True):
        centre = units[model.topic_of_N == topic].mean(0)
        cosines.append(0 if topic == NO_TOPIC else unit @ centre / np.linalg.norm(centre))
    return np.array(cosines)


def test_similarity_is_to_the_centre_after_changes_too() -> None:
    pytest.importorskip("sklearn")
    _, vectors = made(2)
    model = found(2, cluster="hdbscan", min_size=8)
    for changed in (
        found(2, cluster="hdbscan", min_size=8, num_topics=2, outliers="nearest"),
        found(2, cluster="hdbscan", min_size=8, num_topics=1),
        merge_topics(model, [[0, 2]], vectors),
        reduce_topics(model, 2, vectors),
        reassign_outliers(model, vectors),
    ):
        np.testing.assert_allclose(changed.similarity_N, own_cosines(changed, vectors), atol=1e-5)
    np.testing.assert_array_equal(merge_topics(model, [[0, 2]]).similarity_N, model.similarity_N)  # no vectors
    with pytest.raises(InputError, match="2 vectors for 64 texts"):
        merge_topics(model, [[0, 2]], vectors[:2])
    with pytest.raises(InputError, match="another model"):
        reduce_topics(model, 2, np.ones((64, 12)))


def test_outliers_are_kept_or_given_away() -> None:
    pytest.importorskip("sklearn")
    model = found(2, cluster="hdbscan", min_size=8)
    assert model.topic_of_N.tolist()[-2:] == [NO_TOPIC, NO_TOPIC]
    assert model.num_outliers >= 2
    _, vectors = made(2)
    again = reassign_outliers(model, vectors)
    assert again.num_outliers == 0
    assert again.topic_of_N.tolist()[-2:] == [0, 0]
    assert reassign_outliers(model, vectors, min_similarity=0.99).topic_of_N.tolist()[-2:] == [NO_TOPIC, NO_TOPIC]
    assert found(2, cluster="hdbscan", min_size=8, outliers="nearest").num_outliers == 0
    with pytest.raises(InputError, match="2 vectors for 64 texts"):
        reassign_outliers(model, vectors[:2])
    with pytest.raises(InputError, match="give the vectors"):
        reassign_outliers(model)


def test_the_same_seed_gives_the_same() -> None:
    np.testing.assert_array_equal(found(2).topic_of_N, found(2).topic_of_N)


def test_korean_topics_are_named_by_nouns() -> None:
    pytest.importorskip("kiwipiepy")
    texts = ["고양이가 소파에서 잔다", "고양이는 낮잠을 좋아한다", "주식이 은행에서 팔렸다", "은행은 주식을 샀다"]
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    first, second = find_topics(texts, config=TopicConfig(num_topics=2), vectors=vectors).topics
    assert {first.terms[0][0], second.terms[0][0]} <= {"고양이", "주식", "은행"}
    assert {term for topic in (first, second) for term, _ in topic.terms} == {"고양이", "소파", "낮잠", "주식", "은행"}
    as_macos = [unicodedata.normalize("NFD", text) for text in texts]
    again = find_topics(as_macos, config=TopicConfig(num_topics=2), vectors=vectors)
    assert [topic.terms for topic in again.topics] == [first.terms, second.terms]


def test_terms_unlike_each_other(minilm: Path) -> None:
    texts = ["cat cats kitten kittens sofa", "cat cats kitten kittens garden"] * 3
    encoder = BiEncoder.load(minilm, device="cpu")
    plain = find_topics(texts, encoder, TopicConfig(num_topics=1, num_terms=2))
    assert {term for term, _ in plain.topics[0].terms} == {"cat", "cats"}
    diverse = diversify_terms(plain, encoder, 0.9)
    assert {term for term, _ in diverse.topics[0].terms} != {"cat", "cats"}
    assert plain.fingerprint == encoder.fingerprint


@pytest.mark.parametrize("num_topics", [None, 1])
def test_few_or_equal_texts_are_one_topic(num_topics: int | None) -> None:
    config = TopicConfig(num_topics=num_topics)
    one = find_topics(["a cat"], config=config, vectors=np.ones((1, 4)))
    assert [topic.label for topic in one.topics] == ["cat"]
    same = find_topics(["a cat"] * 9, config=config, vectors=np.ones((9, 4)))
    assert [topic.size for topic in same.topics] == [9]
    assert same.topics[0].examples == ("a cat",)


def test_two_texts_can_be_two_topics() -> None:
    two = find_topics(["a cat", "a dog"], config=TopicConfig(num_topics=2), vectors=np.eye(2))
    assert two.topic_of_N.tolist() == [0, 1]


def test_only_stop_words_are_a_topic_without_words() -> None:
    (topic,) = find_topics(["the of", "", "and"], config=TopicConfig(num_topics=1), vectors=np.eye(3)).topics
    assert (topic.size, topic.terms, topic.label) == (3, (), "(no words)")


@pytest.mark.parametrize(
    ("texts", "vectors", "settings", "message"),
    [
        ([], np.zeros((0, 4)), {}, "no texts"),
        (["a", "b"], np.eye(2), {"num_topics": 3}, "num_topics=3, but there are only 2 texts"),
        (["a"] * 5, np.ones((5, 2)), {"num_topics": 3}, "all texts are alike"),
        (["a"] * 3, np.ones((3, 2)), {"num_topics": 3}, "all texts are alike"),
        (["a"] * 2, np.ones((2, 2)), {"num_topics": 2}, "all texts are alike"),
        (["a", "b"], np.eye(3), {}, "3 vectors for 2 texts"),
        (["a", "b"], np.array([[1.0, 0], [np.nan, 1]]), {}, "Vector 1 .*NaN"),
        (["a", "b"], np.eye(2), {"diversity": 0.5}, "give the model"),
    ],
)
def test_bad_input_is_refused(texts: list[str], vectors: np.ndarray, settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_topics(texts, config=TopicConfig(**settings), vectors=vectors)


def test_vectors_of_another_model_are_refused(minilm: Path, tiny_bert: Path) -> None:
    encoder, other = BiEncoder.load(minilm, device="cpu"), BiEncoder.load(tiny_bert, device="cpu")
    model = find_topics(["a cat", "a dog"], encoder)
    with pytest.raises(InputError, match=r"another model \(fingerprint"):
        model.assign(["a cow"], other)
    with pytest.raises(InputError, match="another model"):
        model.assign(np.ones((1, 12)))
    with pytest.raises(InputError, match="another model"):
        find_topics(["a", "b"], encoder, vectors=np.ones((2, 12)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_topics": 0}, "num_topics must be at least 1"),
        ({"diversity": 2.0}, "diversity"),
        ({"cluster": "dbscan"}, "Did you mean 'hdbscan'"),
        ({"reduce": "tsne"}, "Unknown way to reduce"),
        ({"outliers": "drop"}, "Unknown outliers"),
    ],
)
def test_bad_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TopicConfig(**settings)


@pytest.mark.parametrize(("groups", "message"), [([[0, 3]], "no topic 3"), ([[0, 1], [1, 2]], "named twice")])
def test_bad_merges_are_refused(groups: list[list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        merge_topics(found(), groups)
