"""The index over the memory store: every engine is held to the same seam by tests/contracts/stores."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.cross_encoder import CrossEncoder
from munjang.errors import CheckpointError, InputError, UnknownArgument
from munjang.index import Index, ModelMismatch
from munjang.index.rerank import Reranking
from munjang.stores.base import NoSuchStore
from tests.texts import ENGLISH, KOREAN

TEXTS = [text for text in dict.fromkeys([*ENGLISH, *KOREAN]) if text.strip() and len(text) < 200][:24]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


@pytest.fixture(scope="module")
def scorer(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")


@pytest.fixture
def index(model: BiEncoder) -> Iterator[Index]:
    with Index.open("memory:", model) as made:
        made.add(TEXTS, [f"d{place}" for place in range(len(TEXTS))], [{"year": 2000 + n} for n in range(len(TEXTS))])
        yield made


def test_scores_are_the_models(index: Index, model: BiEncoder) -> None:
    """Every text finds itself, and every hit has the score that `similarity` gives."""
    found = index.search(TEXTS, k=5, by="dense")
    for text, hits in zip(TEXTS, found, strict=True):
        assert hits[0].text == text
        assert [hit.retrieval_rank for hit in hits] == [1, 2, 3, 4, 5]
        wanted = model.similarity([text], [hit.text for hit in hits])[0]
        np.testing.assert_allclose([hit.score for hit in hits], wanted, atol=1e-5)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_one_text_one_vector_many(index: Index, model: BiEncoder) -> None:
    by_text = index.search(TEXTS[3], k=2, by="dense")
    by_vector = index.search(model.encode(TEXTS[3]), k=2)
    assert [hit.id for hit in by_text] == [hit.id for hit in by_vector]
    assert [[hit.id for hit in hits] for hits in index.search([TEXTS[3]], k=2, by="dense")] == [
        [hit.id for hit in by_text]
    ]
    assert index.search([], k=2) == []


def test_filter_and_count(index: Index) -> None:
    hits = index.search(TEXTS[0], k=100, where="year >= 2010 and year < 2013")
    assert sorted(hit.metadata["year"] for hit in hits) == [2010, 2011, 2012]
    assert index.count("year = 2010 or year = 2011") == 2
    assert index.count() == len(TEXTS)
    with pytest.raises(InputError, match="month"):
        index.search("a", where="month = 3")


def test_reranked_order_is_the_cross_encoders(index: Index, scorer: CrossEncoder) -> None:
    query = TEXTS[5]
    hits = index.search(query, k=24, rerank=scorer)
    wanted = scorer.predict([(query, hit.text) for hit in hits])
    np.testing.assert_allclose([hit.rerank_score for hit in hits], wanted, atol=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert sorted(hit.retrieval_rank for hit in hits) == list(range(1, 25))
    shallow = index.search(query, k=24, rerank=Reranking(scorer, depth=4))
    assert [hit.rerank_score is not None for hit in shallow] == [True] * 4 + [False] * 20
    assert [hit.retrieval_rank for hit in shallow[4:]] == list(range(5, 25))
    late = index.search(query, k=24, rerank=Reranking(scorer, budget_s=0.0))  # the first stride is always read
    assert all(hit.rerank_score is not None for hit in late)
    kept = index.search(query, k=24, rerank=Reranking(scorer, weight=0.0))
    assert [hit.retrieval_rank for hit in kept] == list(range(1, 25))


def test_a_re_ranker_may_state_its_weight(index: Index, make: Callable[..., Path], tmp_path: Path) -> None:
    tiny_cross = make("bert", kind="cross", num_labels=1)
    shutil.copytree(tiny_cross, tmp_path / "half")
    config = json.loads((tmp_path / "half/config.json").read_text(encoding="utf-8"))
    (tmp_path / "half/config.json").write_text(json.dumps({**config, "munjang_rerank_weight": 0.5}), encoding="utf-8")
    half = CrossEncoder.load(tmp_path / "half", "cpu")
    assert (half.rerank_weight, CrossEncoder.load(tiny_cross, "cpu").rerank_weight) == (0.5, 1.0)
    hits = index.search(TEXTS[5], k=24, rerank=half)
    logits = half.predict([(TEXTS[5], hit.text) for hit in hits], activation="Identity").astype(np.float64)
    both = [
        (values - values.mean()) / values.std()
        for values in (logits, np.array([hit.retrieval_score for hit in hits], np.float64))
    ]
    wanted = (both[0] + both[1]) / 2
    assert list(np.argsort(-wanted, kind="stable")) == list(range(24))
    np.testing.assert_allclose([hit.score for hit in hits], 1 / (1 + np.exp(-wanted)), atol=1e-4)
    assert index.search(TEXTS[5], k=24, rerank=Reranking(half, weight=1.0)) == index.search(
        TEXTS[5], k=24, rerank=Reranking(CrossEncoder.load(tiny_cross, "cpu"))
    )
    assert CrossEncoder.create(tmp_path / "half", device="cpu").rerank_weight == 1.0  # it was of the head
    half.model.config = {**half.model.config, "munjang_rerank_weight": 2}
    with pytest.raises(CheckpointError, match="munjang_rerank_weight should be a number from 0 to 1, not 2"):
        index.search(TEXTS[5], rerank=half)


def test_long_documents_are_cut_and_shown_by_passage(model: BiEncoder) -> None:
    document = " ".join(f"{text}." for text in TEXTS)
    with Index.open("memory:", model, chunk=20) as index:
        index.add([document, "short"], ["long", "short"])
        assert index.count() > 3
        hits = index.search(TEXTS[4], k=50, group="passage")
        assert all(hit.text == document[hit.start : hit.end] for hit in hits if hit.document_id == "long")
        assert {hit.document_id for hit in index.search(TEXTS[4], k=50)} == {"long", "short"}
        assert len(index.search(TEXTS[4], k=50)) == 2
        index.upsert(["now short"], ["long"])
        assert index.count() == 2
        assert index.delete("long") == 1
        assert index.delete(["long", "never there"]) == 0
        assert index.count() == 1


def test_ids_by_hash_are_one_document(model: BiEncoder) -> None:
    with Index.open("memory:", model) as index:
        first = index.add(["a cat", "a cat", "a dog"])
        assert len(set(first)) == 2
        assert index.count() == 2
        with pytest.raises(InputError, match="already"):
            index.add(["a cat"])
        assert index.upsert(["a cat"]) == first[:1]
        assert index.count() == 2
        assert index.add(["a cat"], metadata=[{"kind": "pet"}]) != first[:1]


def test_words_find_what_vectors_miss(index: Index) -> None:
    rare = max((word for text in TEXTS for word in text.split() if word.isascii() and word.isalpha()), key=len)
    hits = index.search(rare, k=3)
    assert rare in hits[0].text
    assert hits[0].ranks["words"] == 1
    start, end = hits[0].highlights[0]
    assert hits[0].text[start:end] == rare
    with pytest.raises(UnknownArgument, match="by="):
        index.search(rare, hybrid=True)  # type: ignore[call-overload]


def test_a_hit_says_which_way_found_it_and_at_which_rank(index: Index, model: BiEncoder) -> None:
    query = TEXTS[3]
    alone = {way: index.search(query, k=24, by=way) for way in ("words", "dense")}
    for hit in index.search(query, k=24):
        for way, hits in alone.items():
            rank = next((rank for rank, other in enumerate(hits, 1) if other.id == hit.id), None)
            assert hit.ranks.get(way) == rank
            assert hit.scores.get(way) == (None if rank is None else hits[rank - 1].score)
    assert {hit.id for hit in alone["words"]} < {hit.id for hit in alone["dense"]}
    by_vector = index.search(model.encode(query), k=3)
    assert [set(hit.ranks) for hit in by_vector] == [{"dense"}] * 3
    with pytest.raises(InputError, match="give a text, not a vector"):
        index.search(model.encode(query), by="words")


def test_weights_decide_between_ways(index: Index) -> None:
    query = TEXTS[3]
    for way, other in (("words", "dense"), ("dense", "words")):
        hits = index.search(query, k=3, by=("words", "dense"), weights={way: 1.0, other: 0.0})
        wanted = [hit.id for hit in index.search(query, k=3, by=way)]
        assert [hit.id for hit in hits][: len(wanted)] == wanted
        assert hits[0].score == 1.0
    ranked = index.search(query, k=3, fusion="ranks")
    assert ranked[0].score == 1.0  # first by both
    for options, message in (
        ({"by": "wrods"}, "Did you mean 'words'"),
        ({"by": ()}, "at least one way"),
        ({"by": "dense", "weights": {"words": 1.0}}, "the search is by dense"),
        ({"weights": {"words": -1.0}}, "from 0 up"),
        ({"weights": {"words": 0.0, "dense": 0.0}}, "one above 0"),
        ({"fusion": "sum"}, "fusion"),
        ({"diversity": 2.0}, "diversity"),
    ):
        with pytest.raises(InputError, match=message):
            index.search(query, **options)  # type: ignore[call-overload]


def test_diverse_hits_are_unlike_each_other(model: BiEncoder) -> None:
    with Index.open("memory:", model) as index:
        index.add([f"A cat sat on the mat{'!' * number}" for number in range(5)] + TEXTS[:6])
        plain, diverse = (index.search("A cat sat on the mat", k=4, diversity=value) for value in (0.0, 0.7))
        assert plain[0].id == diverse[0].id
        spread = [
            model.similarity(texts, texts).mean() for texts in ([h.text for h in plain], [h.text for h in diverse])
        ]
        assert spread[1] < spread[0]
        assert index.search(["nothing", ""], k=1, where="id = 'none'", diversity=0.5) == [[], []]  # no candidates


def test_an_index_of_the_first_method_keeps_its_words(model: BiEncoder) -> None:
    """Indexes made before stems hold whole words: they are asked for whole words."""
    with Index.open("memory:", model) as index:
        index.store.put_facts({**index.store.schema.facts, "terms": "syllables"})
        index.add(["several stalling wings"], ["a"])
        assert index.store.get(["a#0"], with_vectors=True).terms == ["several stalling wings"]
        assert [hit.id for hit in index.search("stalling", by="words")] == ["a#0"]


def test_synonyms_widen_a_search_for_words_and_stay(model: BiEncoder, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    (tmp_path / "synonyms.txt").write_text("car, automobile\nai => machine learning\n", encoding="utf-8")
    place = str(tmp_path / "index")
    with Index.open(place, model) as index:
        index.add(["an automobile", "a bicycle", "machine learning"], ["a", "b", "m"])
        assert index.search("cars", by="words") == []
    assert main(["index", "synonyms", place, str(tmp_path / "synonyms.txt"), "--quiet"]) == 0
    with Index.open(place) as index:
        (hit,) = index.search("car", by="words")
        assert (hit.document_id, hit.highlights) == ("a", ((3, 13),))
        assert [hit.document_id for hit in index.search("AI", by="words")] == ["m"]
        assert index.search("learning", by="words")[0].document_id == "m"
    assert main(["index", "synonyms", place]) != 0


def test_ready_vectors(model: BiEncoder) -> None:
    with Index.open("memory:", model) as index:
        vectors = model.encode(TEXTS[:3])
        index.add(TEXTS[:3], ["a", "b", "c"], vectors=vectors)
        assert index.search(TEXTS[1], k=1)[0].id == "b#0"
        with pytest.raises(InputError, match="for every document"):
            index.add(TEXTS[:2], ["x", "y"], vectors=vectors)
        with pytest.raises(InputError, match="dimensions"):
            index.search(np.ones(5, np.float32))


def test_bad_input(index: Index, model: BiEncoder) -> None:
    with pytest.raises(InputError, match="twice"):
        index.add(["a", "b"], ["x", "x"])
    with pytest.raises(InputError, match="non-empty"):
        index.add(["a"], [""])
    with pytest.raises(InputError, match="year"):
        index.add(["a"], ["new"], [{"year": "two thousand"}])
    with pytest.raises(InputError, match="can be stored"):
        index.add(["a"], ["new"], [{"tags": ["a", "b"]}])  # type: ignore[dict-item]
    with pytest.raises(InputError, match="whole numbers from 1"):
        index.search("a", k=0)
    with pytest.raises(InputError, match="group"):
        index.search("a", group="book")
    assert index.search("", k=1)
    assert index.search("\x00'; drop table rows; --", k=1)
    with pytest.raises(NoSuchStore):
        Index.open("memory:", model, create=False)


def test_another_model_is_refused(make: Callable[..., Path], model: BiEncoder, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    folder = tmp_path / "index"
    with Index.open(folder, model) as index:
        index.add(TEXTS[:2])
    with pytest.raises(ModelMismatch, match="reembed"):
        Index.open(folder, make("bert", pooling="max"))
    with Index.open(folder) as again:
        assert again.search(TEXTS[0], k=1)[0].text == TEXTS[0]


def test_a_search_is_finishing_what_was_retrieved(index: Index, model: BiEncoder, scorer: CrossEncoder) -> None:
    """With vectors and logits that someone else computed, as a server does."""
    query, reranking = TEXTS[5], Reranking(scorer, weight=0.5)
    found = index.retrieve(query, 5, 12, "year > 2001", vectors=model.encode_query([query]))
    (hits,) = found.hits
    assert [hit.retrieval_rank for hit in hits] == list(range(1, 13))
    logits = scorer.predict([(query, hit.text) for hit in hits], activation="Identity").tolist()
    assert reranking.score([query], [hits]) == [pytest.approx(logits, abs=1e-5)]
    assert index.finish(found, reranking, [logits]) == index.search(query, 5, 12, "year > 2001", rerank=reranking)
    assert index.finish(found) == index.search(query, 5, 12, "year > 2001")
    with pytest.raises(InputError, match="give a text, not a vector"):
        index.search(model.encode(query), rerank=scorer)


@pytest.mark.parametrize(
    ("ids", "metadata"),
    [
        (["new"], [{"year": float("nan")}]),
        (["new"], [{"year": 2.5, "bad": "a\0"}]),
        (["d1"], [{"year": "text"}]),
        (["new"], [{"year": "text", **{f"k{number}": 1 for number in range(100)}}]),
        (["new"], [{"year": "text", "n" * 201: 1}]),
    ],
)
def test_a_refused_add_fixes_no_type(model: BiEncoder, ids: list[str], metadata: list[Any]) -> None:
    with Index.open("memory:", model) as index:
        index.add(["there"], ["d1"])
        with pytest.raises(InputError):
            index.add(["text"], ids, metadata)
        assert index.store.schema.fields == {}
        index.add(["text"], ["right"], [{"year": 2020}])
        assert index.count("year = 2020") == 1


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([{f"key {number}": 1 for number in range(20_000)}], "at most 100 metadata keys"),
        (["text"], "not str"),
        ([["year", 2020]], "not list"),
        ([None], "not NoneType"),
    ],
)
def test_metadata_is_checked_before_texts_are_read(model: BiEncoder, metadata: Any, message: str) -> None:
    with Index.open("memory:", model) as index, pytest.raises(InputError, match=message):
        index.add(["text"], metadata=metadata)


@pytest.mark.parametrize("k", [2.5, 0, -1, "3", None])
def test_k_is_a_whole_number(index: Index, k: Any) -> None:
    with pytest.raises(InputError, match="whole numbers from 1"):
        index.search(TEXTS[0], k=k)
    with pytest.raises(InputError, match="whole numbers from 1"):
        index.search(TEXTS[0], candidates=k)
    assert len(index.search(TEXTS[0], k=np.int64(2))) == 2
