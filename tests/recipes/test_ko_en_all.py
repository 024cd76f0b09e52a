"""All of recipes/ko_en_small for real, from the data folder to the scores, with tiny models on made-up data.

What it learns says nothing; that every stage reads what the one before wrote, does.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from munjang import BiEncoder
from munjang.data.examples import Examples
from recipes.ko_en_small import judges, last, run, search, silver
from recipes.ko_en_small.data import reported
from recipes.ko_en_small.judges import read_korean_silver
from tests.recipes import small_data

pytest.importorskip("kiwipiepy")
SMALL = {"max_steps": 1, "max_length": 24, "matryoshka": (32, 16), "matryoshka_weights": (1.0, 0.4)}


@pytest.fixture
def given(make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that `all` takes: e5, mpnet, korean, reranker, data; and settings for a few updates."""
    monkeypatch.setattr(run, "ROUND", replace(run.ROUND, **SMALL))
    monkeypatch.setattr(last, "LAST", replace(last.LAST, **SMALL))
    monkeypatch.setattr(search, "SEARCH", replace(search.SEARCH, **SMALL))
    one_update = {"max_steps": 1}
    for name in ("ALONE", "AGAIN", "GENTLE"):
        monkeypatch.setattr(run, name, {**getattr(run, name), **one_update})
    monkeypatch.setattr(run, "FOUR", {name: {**changes, **one_update} for name, changes in run.FOUR.items()})
    words = {name: (held, {**changes, **one_update}) for name, (held, changes) in run.OF_WORDS.items()}
    monkeypatch.setattr(run, "OF_WORDS", words)
    monkeypatch.setattr(run, "JUDGES", (1, 2))
    monkeypatch.setattr(silver, "SCORER", replace(silver.SCORER, epochs=1, max_length=24))
    monkeypatch.setattr(judges, "TUTOR", replace(judges.TUTOR, max_steps=1, max_length=24))
    models = [
        make("xlm-roberta"),
        make("mpnet"),
        make("albert", kind="plain"),
        make("bert", kind="cross", num_labels=1),
    ]
    return [*models, small_data.write(tmp_path / "data")]


@pytest.mark.slow  # every stage of the recipe: a minute
def test_from_the_data_to_the_scores(given: list[Path], tmp_path: Path) -> None:
    work, data = tmp_path / "work", given[-1]
    run.everything(*given, work)
    reports = json.loads((work / "scores.json").read_text())["reports"]
    assert {"korsts-test", "stsb-test", "crossed-dev", "korquad", "cranfield", "mixed-dev", "stackoverflow"} <= set(
        reports
    )
    assert all(0 <= abs(each["score"]) <= 1 for each in reports.values())
    start, model = (BiEncoder.load(work / name, "cpu") for name in ("base", "model"))
    assert start.fingerprint != model.fingerprint
    assert model.encode(["고양이가 잔다", "a cat sleeps"]).shape == (2, 32)
    kept = {text for each in reported(data) for column in each.texts for text in column}
    pairs = read_korean_silver(work / "silver/silver-ko.tsv")
    assert len(pairs) > 100
    assert kept.isdisjoint(pairs.texts[0])
    assert kept.isdisjoint(pairs.texts[1])
    _what_is_held(work, given[3], data)


def _what_is_held(work: Path, reranker: Path, data: Path) -> None:
    """Each kind of passages in batches of its own, bills too, with the weight that was asked for."""
    bills = "".join(f"무엇을 {number}번 바꾸는가?\t법 {number}호를 바꾸려는 것임.\n" for number in range(8))
    (work / "silver/bills.tsv").write_text(f"query\tpassage\n{bills}", "utf-8")
    others = [name for name in last.PARTS if name != "held"]
    folders = [work / "mean", work / "mean0.5", work / "tutor", reranker, work / "silver", data]
    found = last.prepared(*folders, without=others, held=300.0)
    names = [each.data.name for each in found if isinstance(each.data, Examples)]
    assert names == ["questions and passages", "gathered", "bills", "MedQuAD"]
    assert all(each.options == {"target": "own", "scale": 300.0} for each in found)
    _search(work, reranker, data)


def _search(work: Path, reranker: Path, data: Path) -> None:
    """The round that learns to search: an update of all its parts, in which the English words stay near."""
    wiki = "".join(f"고양이는 {number}번 무엇을 찾는가?\t고양이는 물을 {number}번 찾는다.\n" for number in range(80))
    (work / "silver/wiki.tsv").write_text(f"query\tpassage\n{wiki}", "utf-8")
    folders = [work / "model", work / "mean0.5", reranker, work / "silver", data]
    found = search.prepared(*folders, steps=1)
    names = [each.data.name for each in found if isinstance(each.data, Examples)]
    sentences, passages = (
        ["scored", "Korean sentences", "English sentences"],
        ["documents", "gathered", "bills", "wiki", "answered"],
    )
    assert names == [*sentences, *passages, "ranked"]
    assert all(each.options["scale"] == search.HELD_WEIGHT for each in found[:8])
    search.search(*folders, work / "searched")
    first, then = (BiEncoder.load(work / name, "cpu") for name in ("model", "searched"))
    assert first.fingerprint != then.fingerprint
    near = (first.encode(["a cat sleeps"], normalize=True) @ then.encode(["a cat sleeps"], normalize=True).T).item()
    assert near > 0.9
