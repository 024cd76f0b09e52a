"""paraphrase_mining and community_detection, side by side with the incumbent's."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import util as theirs

from munjang.compat import util as ours
from munjang.errors import InputError
from tests.tasks.paraphrases.test_mining import near

Both = Callable[..., tuple[Any, Any]]


def same(mine: list[list[Any]], other: list[list[Any]]) -> None:
    assert [type(value) for value in mine[0]] == [float, int, int]
    assert {(i, j) for _, i, j in mine} == {(i, j) for _, i, j in other}
    assert np.allclose([row[0] for row in mine], [row[0] for row in other], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("score", ["cos_sim", "dot_score", "euclidean_sim"])
@pytest.mark.parametrize(
    "options", [{}, {"max_pairs": 50}, {"top_k": 3}, {"top_k": 2, "max_pairs": 100, "corpus_chunk_size": 77}]
)
def test_mining(score: str, options: dict[str, Any]) -> None:
    vectors = torch.from_numpy(near(400))
    mine = ours.paraphrase_mining_embeddings(vectors, score_function=getattr(ours, score), **options)
    same(mine, theirs.paraphrase_mining_embeddings(vectors, score_function=getattr(theirs, score), **options))


def test_their_functions_are_taken_too() -> None:
    vectors = torch.from_numpy(near(100))
    for name in ("cos_sim", "dot_score", "manhattan_sim"):
        function = getattr(theirs, name)
        mine = ours.paraphrase_mining_embeddings(vectors, score_function=function, max_pairs=30)
        same(mine, theirs.paraphrase_mining_embeddings(vectors, score_function=function, max_pairs=30))


def test_any_function_takes_little_more_than_its_chunks() -> None:
    vectors = torch.from_numpy(near(2000))
    tracemalloc.start()
    found = ours.paraphrase_mining_embeddings(vectors, score_function=ours.euclidean_sim, top_k=3, max_pairs=100)
    peak = tracemalloc.get_traced_memory()[1]  # of numpy; the chunk is torch's
    tracemalloc.stop()
    assert len(found) == 100
    assert peak < 8_000_000  # two million pairs are 48 MB


def test_mining_of_texts(both: Both) -> None:
    our_model, their_model = both("bert")
    texts = ["the cat", "a dog runs", "it rains today", "the cat sat", "one more text", "the cat sits"]
    mine, other = ours.paraphrase_mining(our_model, texts), theirs.paraphrase_mining(their_model, texts)
    same(sorted(mine), sorted(other))


@pytest.mark.parametrize("options", [{}, {"threshold": 0.6, "min_community_size": 3}, {"min_community_size": 1}])
@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy, lambda array: torch.from_numpy(array).double()])
def test_communities(options: dict[str, Any], form: Callable[[Any], Any]) -> None:
    vectors = form(near(500))
    assert ours.community_detection(vectors, **options) == theirs.community_detection(vectors, **options)


def test_few_and_none() -> None:
    assert ours.community_detection([]) == []
    assert ours.community_detection(near(1)[0], min_community_size=1) == [[0]]
    assert ours.paraphrase_mining_embeddings(near(1)) == []
    with pytest.raises(InputError, match="NaN"):
        ours.community_detection(np.full((20, 4), np.nan, np.float32))
    with pytest.raises(InputError, match="NaN"):
        ours.paraphrase_mining_embeddings(np.full((20, 4), np.nan, np.float32), score_function=ours.dot_score)
    with pytest.raises(InputError, match="at least 1"):
        ours.paraphrase_mining_embeddings(near(5), top_k=0)


@pytest.mark.parametrize("width", [8, 7])
def test_angles(width: int) -> None:
    a, b = near(6, width), near(6, width, seed=1)
    assert torch.allclose(ours.pairwise_angle_sim(a, b), theirs.pairwise_angle_sim(a, b), atol=1e-6)


def test_small_helpers() -> None:
    for name in ("is_accelerate_available", "is_datasets_available", "is_training_available", "get_rank"):
        assert getattr(ours, name)() == getattr(theirs, name)()
    assert (ours.get_world_size(), ours.is_dist_initialized()) == (1, False)
    for thing in (torch.nn.Linear, torch.nn.Identity(), 3, str):
        assert ours.fullname(thing) == theirs.fullname(thing)
    assert ours.import_from_string("torch.nn.Linear") is torch.nn.Linear
    for wrong in ("Linear", "torch.nn.Nothing"):
        with pytest.raises(ImportError):
            ours.import_from_string(wrong)
    import logging

    before = logging.root.manager.disable
    with ours.disable_logging(logging.ERROR):
        assert logging.root.manager.disable == logging.ERROR
    assert logging.root.manager.disable == before
