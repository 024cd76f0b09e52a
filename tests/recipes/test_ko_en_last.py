"""The last round of ko-en-small: who judges Korean pairs, and which passages are told apart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder, TrainConfig, train
from munjang.data.examples import Examples
from recipes.ko_en_small import run
from recipes.ko_en_small.judges import JUDGED, pairs_of, together
from recipes.ko_en_small.last import by_topic
from recipes.ko_en_small.words import WORDS, only_korean_learns


def test_neighbours_follow_each_other() -> None:
    """Eight heaps of 24 rows in a line, mixed up: every batch is of one heap."""
    random = np.random.default_rng(1)
    heap_of = random.permutation(np.repeat(np.arange(8), 24))
    line = random.normal(size=16)
    vectors = (heap_of[:, None] * line + 0.05 * random.normal(size=(192, 16))).astype(np.float32)
    order = by_topic(vectors, 24)
    assert sorted(order) == list(range(192))
    assert all(len(set(heap_of[order[start : start + 24]])) == 1 for start in range(0, 192, 24))


def test_equal_rows_come_to_an_end() -> None:
    assert sorted(by_topic(np.ones((100, 4), np.float32), 8)) == list(range(100))
    assert by_topic(np.zeros((0, 4), np.float32), 8) == []


def test_judges_together(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("bert"), "cpu")
    crosses = [CrossEncoder.load(make("bert", kind="cross", num_labels=1, seed=seed), "cpu") for seed in (1, 2)]
    pairs = Examples("pairs", (["a cat sleeps", "a dog runs", "고양이"], ["a cat", "the dog", "a cat sleeps"]))
    found = together(encoder, crosses, pairs)
    asked = list(zip(*pairs.texts, strict=True))
    judged = np.mean([cross.predict(asked, activation="Sigmoid") for cross in crosses], axis=0)
    assert np.abs(found["cross-encoders"] - judged).max() < 1e-6

    def ranks(values: np.ndarray) -> np.ndarray:
        return (values - values.mean()) / values.std()

    expected = JUDGED * ranks(judged) + (1 - JUDGED) * ranks(found["encoder"])
    assert np.abs(found["together"] - expected).max() < 1e-4


def test_pairs_are_of_different_texts(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("bert"), "cpu")
    texts = [f"sentence {number} of the day" for number in range(20)]
    found = pairs_of(encoder, texts, seed=1)
    pairs = {frozenset(pair) for pair in zip(*found.texts, strict=True)}
    assert len(pairs) == len(found)  # none twice, in either order
    assert all(len(pair) == 2 for pair in pairs)
    assert set(texts) == set().union(*pairs)


def test_only_korean_learns(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("xlm-roberta"), "cpu", "float32")
    texts, before = ["a cat sleeps", "고양이가 잔다", "cat 고양이"], encoder.network.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    english, korean, both = encoder.encode(texts)
    only_korean_learns(encoder)
    rows = Examples("pairs", (texts * 4, texts[1:] * 6), scores=np.tile([0.1, 0.9, 0.4], 4))
    train(encoder, rows, "cosent", TrainConfig(epochs=2, batch_size=4, learning_rate=0.01, weight_decay=0.0))
    found = encoder.network.state_dict()
    changed = {name for name, value in found.items() if not torch.equal(value, before[name])}
    assert {name.removeprefix("encoder.") for name in changed} == {WORDS}
    after = encoder.encode(texts)
    assert np.array_equal(after[0], english)
    assert not np.allclose(after[1], korean, atol=1e-3)
    assert not np.allclose(after[2], both, atol=1e-3)


def test_every_stage_finds_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainings take an H200 and an hour; here each stage only checks its inputs and leaves an empty result."""
    given = [tmp_path / name for name in ("e5", "mpnet", "korean", "reranker", "data")]
    for path in given:
        path.mkdir()
    done: list[str] = []

    def stage(name: str) -> Callable[..., None]:
        def make(*arguments: object, **named: object) -> None:
            paths = [each for each in (*arguments, *named.values()) if isinstance(each, Path)]
            missing = [path for path in paths if not path.exists()]
            made = missing or [paths[-1] / "silver-en-ko.tsv"]  # `silver` writes into a folder that is there
            assert len(made) == 1, f"{name}: {missing} are missing"
            made[0].touch()
            done.append(name)

        return make

    stages = "base asked gathered bills wiki scorer silver contrast judge tutor korean_silver last search merge"
    for name in (*stages.split(), "blend", "mixed", "measure"):
        monkeypatch.setattr(run, name, stage(name))
    run.everything(*given, tmp_path / "work")
    assert (done[0], done[-2:]) == ("base", ["merge", "measure"])
    assert [done.count(name) for name in ("contrast", "judge", "last", "search")] == [3, 3, 10, 1]
    count = len(done)
    (tmp_path / "work/model").unlink()
    run.everything(*given, tmp_path / "work")
    assert done[count:] == ["merge"]  # what is there is not made again
