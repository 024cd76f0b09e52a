"""Unrelated passages are to have the same score in either language, and lists the scores that they have."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.data.writing import write_table
from recipes.models import across, balance, lists
from recipes.models.sources import is_korean

NAMES = ["river", "museum", "engine", "harvest", "bridge", "orchard", "library", "harbour", "market", "school"]


@pytest.fixture
def work(tmp_path: Path, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists of one source, and units in both languages, some of which are held back."""
    (tmp_path / "pairs").mkdir()
    english = [f"The {name} of town {at} is old." for at in range(4) for name in NAMES]
    korean = [f"{at}번 마을의 {name}은 오래되었다." for at in range(4) for name in NAMES]
    write_table(tmp_path / "pairs/some.tsv", {"query": [f"Which {text}" for text in english], "passage": english})
    columns = (english, korean, english, korean)
    write_table(tmp_path / "pairs/across-some.tsv", dict(zip(across.COLUMNS, columns, strict=True)))
    lists.mine(BiEncoder.load(make("xlm-roberta"), "cpu", "float32"), tmp_path)
    (tmp_path / "dev/some").mkdir(parents=True)
    write_table(tmp_path / "dev/some/queries.tsv", {"id": ["a", "b"], "text": ["When was it built?", "언제 지었는가?"]})
    monkeypatch.setattr(balance, "NUM_HELD", 8)
    return tmp_path


def test_a_passage_and_its_translation_want_the_same(work: Path, make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("xlm-roberta", kind="cross", num_labels=1), "cpu", "float32")
    found = balance.balanced(scorer, work, seed=5)
    pairs, wanted = list(zip(*found.texts, strict=True)), found.scores
    assert wanted is not None
    logits = scorer.predict(pairs, activation="Identity")
    num_lists = len(lists.read_lists(work, "some").query_of_N) + len(lists.read_lists(work, "across-some").query_of_N)
    num_kept = num_lists * balance.NUM_KEPT
    np.testing.assert_allclose(wanted[:num_kept], logits[:num_kept], atol=1e-5)
    units = balance._both_languages(work, is_held=False)
    assert len(pairs) - num_kept == 2 * num_lists * balance.NUM_UNRELATED
    for at in range(num_kept, len(pairs), 2):
        assert pairs[at][0] == pairs[at + 1][0]
        assert (pairs[at][1], pairs[at + 1][1]) in units
        assert wanted[at] == wanted[at + 1] == pytest.approx(logits[at : at + 2].mean(), abs=1e-5)
    held = balance._both_languages(work, is_held=True)
    assert len(held) == 8
    assert not set(held) & set(units)


def test_the_lean_is_measured_on_what_is_held_back(work: Path) -> None:
    class Longer:
        """Scores Korean passages by a constant, English ones higher for Korean questions alone."""

        def predict(self, pairs: list[tuple[str, str]], **options: object) -> np.ndarray:
            return np.array([is_korean(query) and not is_korean(text) for query, text in pairs], dtype=np.float32)

    measured = balance.measure_lean(Longer(), work)  # type: ignore[arg-type]
    assert measured["Korean questions: best is English, %"] == 100
    assert measured["Korean questions: logit, English less Korean"] == 1
    assert measured["English questions: logit, English less Korean"] == 0
    assert measured["Korean questions"] == measured["English questions"] == 1
