"""The page's files: all packaged, none that reaches outside, none that could turn a text into markup."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.server.limits import AccessRules
from munjang.server.routes.page import FOLDER, POLICY, SHARED, TYPES
from munjang.server.service import Service
from munjang.server.tenants import Keyring
from tests.server.running import Running, Watched, running

ROOT = Path(__file__).parents[3]
PATHS = [*FOLDER.iterdir(), *(ROOT / "munjang" / "pages" / name for name in SHARED)]
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(PATHS)}
SCRIPTS = [name for name in FILES if name.endswith(".js")]
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc")


@pytest.fixture(scope="module")
def locked(model: BiEncoder) -> Iterator[Running]:
    with running(Service([Watched("tiny", model)]), AccessRules(Keyring(["the-key"]))) as started:
        yield started


def test_every_file_is_packaged_and_served(locked: Running) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["munjang"]
    packaged = {path for pattern in patterns for path in (ROOT / "munjang").glob(pattern)}
    assert {*PATHS} <= packaged
    assert {Path(name).suffix for name in FILES} <= set(TYPES)
    for name, text in FILES.items():
        answer = locked.client.get(f"/page/{name}")
        assert (answer.status_code, answer.text) == (200, text)
        assert answer.headers["content-type"] == TYPES[Path(name).suffix]
    assert locked.client.get("/").text == FILES["index.html"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_comes_from_elsewhere(name: str) -> None:
    text = FILES[name].replace("http://www.w3.org/2000/svg", "")  # a name, which nobody looks up
    assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+|@import|url\(", text) == []
    references = re.findall(r'(?:src|href|from)[ =]"([^"#]+)"', text)
    assert {Path(reference).name for reference in references} <= set(FILES)


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/page.css"])
def test_headers(path: str, locked: Running) -> None:
    headers = locked.client.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert headers["content-security-policy"] == POLICY
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"


def test_no_script_or_style_stands_in_the_page() -> None:
    page = FILES["index.html"]
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_texts_never_become_markup(name: str) -> None:
    assert MARKUP.findall(FILES[name]) == []


def test_a_file_that_is_the_same_is_not_sent_again(locked: Running) -> None:
    first = locked.client.get("/")
    again = locked.client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("path", ["/page/", "/page/nothing.js", "/page/..%2fstatic.py", "/page/%2e%2e/static.py"])
def test_other_files_are_not_there(path: str, locked: Running) -> None:
    assert locked.client.get(path, headers={"authorization": "Bearer the-key"}).status_code == 404


def test_the_page_needs_no_key_but_a_known_host(locked: Running) -> None:
    assert locked.client.get("/info").status_code == 401
    assert locked.client.get("/pages").status_code == 401
    assert locked.client.get("/", headers={"host": "evil.example"}).status_code == 403


def test_both_languages_say_everything() -> None:
    english, korean = FILES["words.js"].split("\n  ko: {")
    keys = [re.findall(r"^    (\w+):", part, re.MULTILINE) for part in (english, korean)]
    assert keys[0] == keys[1]
    for name, text in FILES.items():
        used = re.findall(r'data-say(?:-\w+)?="(\w+)"', text) + re.findall(r'\bsay\("(\w+)"', text)
        assert set(used) <= set(keys[0]), name
    for key in keys[0]:
        said = re.findall(rf"^    {key}:\s+(.+)", FILES["words.js"], re.MULTILINE)
        first, second = ({*re.findall(r"\{(\w+)\}", words)} for words in said)
        assert first == second, key
