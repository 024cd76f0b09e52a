"""Written pages in a real browser, from a file: legible at any width, in both languages, light and dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.evaluation.page import reports_page
from munjang.evaluation.report import Report
from munjang.tasks.classify.page import classifier_page
from munjang.tasks.recommend.catalogue import Items
from munjang.tasks.recommend.page import recommendations_page
from munjang.tasks.recommend.ranking import recommend
from munjang.tasks.topics.map import write_map
from munjang.tasks.topics.times import topics_over_time
from munjang.training.config import TrainConfig
from munjang.training.report import write_report
from munjang.training.run import Run
from tests.pages.test_html import HOSTILE
from tests.server.browser import browsing
from tests.tasks.topics.made import found, made

LONG = "한국어와 English가 섞인 아주 긴 이름 " * 3
# of the letters of a picture: fonts are 12 and 13 pixels, a line of them a little more
MAX_LETTER_HEIGHT, MIN_LETTER_HEIGHT = 22, 10


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of part: curves with one evaluation file, bars, a heat map, a list with a map, the map of topics."""
    folder = tmp_path_factory.mktemp("pages")
    with Run(folder / "out") as run:
        for step in (10, 20, 30):
            run.log({"step": step, "loss": 1 / step, "learning_rate": 2e-5, "examples_per_s": 100.0})
            on = {LONG: {"kind": "sts", "main": "spearman", "metrics": {"spearman": step / 40}}}
            run.log({"step": step, "evaluation": {"main": step / 40, "name": LONG, "on": on}})
        write_report(folder / "training.html", run, TrainConfig(evaluate=("sts.tsv",)))
    report = Report(LONG, "sts", HOSTILE, 10, {"spearman": 0.5, "pearson": 0.25}, "spearman", notes=(HOSTILE,))
    labels = {"counts": {LONG: 3, "b": 1}, "confusion": [[3, 1], [2, 6]], "reliability": [[4, 0.5, 0.5], [8, 0.9, 1.0]]}
    items = Items.of_vectors(np.eye(4, dtype=np.float32), texts=[LONG, HOSTILE, "나", "다"])
    pages = {
        "evaluation": reports_page([report]),
        "classify": classifier_page(HOSTILE, [LONG, "b"], labels),
        "recommend": recommendations_page(recommend(items, ["0"]), items, ["0"]),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    model = found()
    write_map(folder / "topics.html", model, made(0)[1], HOSTILE, topics_over_time(model, ["2024-01"] * 62))
    return folder


@pytest.fixture
def visit(browser: Any, folder: Path) -> Iterator[Any]:
    """`visit(name, width)` opens a page; a complaint of the browser or a request for another file fails the test."""
    complaints: list[str] = []
    contexts = []

    def open_page(name: str, width: int = 1200, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, **{"locale": "en-US", **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        address = (folder / f"{name}.html").as_uri()
        page.on("request", lambda request: complaints.append(request.url) if request.url != address else None)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("name", ["training", "evaluation", "classify", "recommend", "topics"])
def test_legible_at_any_width(visit: Any, name: str, width: int) -> None:
    page = visit(name, width, locale="ko-KR")
    letters = "[...document.querySelectorAll('svg text')]"
    heights = page.evaluate(f"{letters}.map(text => text.getBoundingClientRect().height)")
    assert all(MIN_LETTER_HEIGHT <= height <= MAX_LETTER_HEIGHT for height in heights)
    assert len(heights) > 0 or name in ("recommend", "topics")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_language_follows_the_browser_and_is_switched(visit: Any) -> None:
    page = visit("training", locale="ko-KR")
    assert page.get_attribute("html", "lang") == "ko"
    assert page.text_content("h1") == "out의 학습"
    assert page.title() == "out의 학습"
    assert page.text_content("figure desc").startswith("10에서 0.1000")
    page.click("#language")
    assert page.get_attribute("html", "lang") == "en"
    assert page.text_content("h1") == "Training of out"
    assert page.get_attribute("#theme", "aria-label") == "Theme: as the system"


def test_theme_follows_the_system_and_is_switched(visit: Any) -> None:
    page = visit("evaluation", color_scheme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")  # from the system's to light
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) == dark != light
    assert page.get_attribute("#theme", "title") == "Theme: dark"


def test_the_map_of_topics_is_searched_and_its_topics_are_hidden(visit: Any) -> None:
    page = visit("topics")
    assert page.text_content("#facts") == "62 texts, 3 topics"
    page.fill("#search", "cat")
    number = page.text_content("#facts").removeprefix("62 texts, 3 topics · ").removesuffix(" found")
    assert 0 < int(number) < 62
    page.click("#legend button >> nth=1")
    assert page.get_attribute("#legend button >> nth=1", "aria-pressed") == "false"
    page.click("#language")
    assert page.text_content("#facts").startswith("글 62개, 주제 3개")
    assert page.get_attribute("#legend button >> nth=1", "aria-pressed") == "false"  # still hidden
    assert page.get_attribute("#search", "placeholder") == "글에서 찾기"
