"""Access: no route answers without a right key, no key sees another's documents, no text runs in the page."""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from attack.serving import Served, ask, served
from attack.verdict import Verdict

OPEN = ("/health", "/ready", "/ping", "/")
DOCUMENTS = {"documents": [{"text": "b"}]}
BODIES: list[Any] = [None, {}, {"inputs": "a"}, {"input": "a"}, {"query": "secret", "k": 1000}, DOCUMENTS]
SECRET = "secret of the first"
SCRIPT = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'><svg onload='window.ran = 3'>"


def run(options: argparse.Namespace) -> Verdict:
    """Ask every route of the schema, with wrong keys and with another's."""
    verdict = Verdict("access")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "keys")
        keys = [_key(file, "first", "owner=1"), _key(file, "second", "owner=2")]
        with served(options, "--keys", file) as server:
            asyncio.run(_attack(server, *keys, verdict))
            verdict.expect(server.process.poll() is None, "the server ended")
    with served(options) as server:
        _visit(server, verdict)
    return verdict


def _key(file: str, name: str, only: str) -> str:
    command = [sys.executable, "-m", "munjang", "keys", "add", file, name]
    command += ["--scope", "read", "write", "admin", "--only", only]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def _bearer(key: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {key}"),)


async def _attack(server: Served, first: str, second: str, verdict: Verdict) -> None:
    port = server.port
    document = {"id": "mine", "text": SECRET}
    stored = await ask(port, "POST", "/documents", {"documents": [document]}, _bearer(first))
    verdict.expect(stored.status == 200, f"the first key can't write: {stored.body[:200]!r}")
    schema = json.loads((await ask(port, "GET", "/openapi.json", headers=_bearer(first))).body)
    routes = [(method.upper(), path) for path, each in schema["paths"].items() for method in each]
    bearers = ["", "x", first[:-1], first + "x", first.upper(), "\x00", f"{first} {second}"]
    wrong: list[tuple[tuple[str, str], ...]] = [(), *map(_bearer, bearers), (("X-Api-Key", first),)]
    wrong += [(("Authorization", f"Basic {first}"),), (("Authorization", first),)]
    num_asked = 0
    for method, pattern in routes:
        path = pattern.replace("{id}", "mine").replace("{name}", "model")
        for headers in wrong:
            for shown in (path, path + "/", path + "?key=" + first, "/" + path, path.replace("/", "/%2e/", 1)):
                answer = await ask(port, method, shown, {"inputs": "a"}, headers)
                num_asked += 1
                is_open = path in OPEN and method == "GET"
                verdict.expect(is_open or answer.status in (400, 401, 403, 404), f"{method} {shown}: {answer.status}")
                verdict.expect(SECRET.encode() not in answer.body, f"{method} {shown} shows the secret")
        for body in BODIES:
            answer = await ask(port, method, path, body, _bearer(second))
            num_asked += 1
            verdict.expect(SECRET.encode() not in answer.body, f"{method} {path} shows another key's document")
    still = await ask(port, "GET", "/documents/mine", headers=_bearer(first))
    verdict.expect(SECRET.encode() in still.body, "another key took the document away")
    verdict.counts |= {"routes": len(routes), "wrong keys": len(wrong), "requests": num_asked}


def _visit(server: Served, verdict: Verdict) -> None:
    """Open the page in a browser over documents full of scripts, where there is one."""
    from playwright.sync_api import Error, sync_playwright

    document = {"id": SCRIPT, "text": f"needle {SCRIPT}", "metadata": {"field": SCRIPT, SCRIPT[:100]: "a"}}
    asyncio.run(ask(server.port, "POST", "/documents", {"documents": [document]}))
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page()
            hits = 0
            for hash in ("", "#search?q=needle", f"#search?q={SCRIPT}", "#map", "#documents"):
                page.goto(f"http://127.0.0.1:{server.port}/{hash}")
                page.wait_for_timeout(1500)
                hits += page.locator("text=needle").count()
                verdict.expect(page.evaluate("window.ran") is None, f"a script ran at {hash!r}")
            browser.close()
    except Error as error:
        verdict.counts["page"] = f"skipped: {str(error).splitlines()[0]}"
        return
    verdict.counts["page"] = {"views": 5, "hostile texts shown": hits}
    verdict.expect(hits > 0, "the page never showed the hostile text")
