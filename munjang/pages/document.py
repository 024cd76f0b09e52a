"""The page itself: content put into the template, with the style, the scripts and the words that it uses."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template

import munjang
from munjang.pages.blocks import facts
from munjang.pages.html import Html, Phrase, element, inline, say
from munjang.pages.words import WORDS

SAID = re.compile(r'(?:data-say[\w-]*="|\bsay\(")(\w+)"')  # keys of WORDS in HTML and in scripts


def page(
    title: str | Phrase,
    figures: Mapping[Phrase, object] | None = None,
    sections: Iterable[object] = (),
    subtitle: object = None,
    script: str = "",
    data: object = None,
) -> str:
    """Return a whole page. `script` is JavaScript of its own, which finds `data` as JSON in the element #data."""
    heading = element("div", element("h1", title, dir="auto"), subtitle and element("p", subtitle), class_="title")
    body = inline([heading, facts(figures) if figures else None, *sections])
    foot = element("p", say("written_by", version=munjang.__version__))
    scripts = [source for source in (packaged("page.js"), script) if source]
    policy = {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "script-src": " ".join(map(_hash, (packaged("theme.js"), *scripts))),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(packaged("page.html")).substitute(
        policy="; ".join(f"{rule} {sources}" for rule, sources in policy.items()),
        title=element("title", title),
        style=packaged("base.css") + packaged("page.css"),
        theme=packaged("theme.js"),
        icon=packaged("icon.svg").replace("<svg", '<svg width="30" height="30" aria-hidden="true"'),
        body=body,
        foot=foot,
        words=_json(_used_words([packaged("page.html"), body, foot, *scripts])),
        scripts=_data(data) + "".join(f"<script>{source}</script>" for source in scripts),
    )


@cache
def packaged(name: str) -> str:
    """Read a file of this folder."""
    return files("munjang.pages").joinpath(name).read_text("utf-8")


def _used_words(sources: Sequence[str]) -> dict[str, tuple[str, str]]:
    themes = {key for key in WORDS if key.startswith("theme_")}  # theme.js composes these keys
    used = themes | {key for source in sources for key in SAID.findall(source)}
    return {key: words for key, words in WORDS.items() if key in used}


def _data(data: object) -> Html:
    return Html("" if data is None else f'<script type="application/json" id="data">{_json(data)}</script>')


def _json(value: object) -> str:
    """Return JSON in ASCII and without "<": nothing in a text can end the script element that holds it."""
    return json.dumps(value).replace("<", "\\u003c")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
