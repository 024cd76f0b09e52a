"""Serve the demo: the page over a small bilingual corpus.

python -m examples.demo [--port 8080] [--no-browser]; --check answers a few searches and ends
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import threading
import urllib.request
import warnings
import webbrowser
from pathlib import Path
from urllib.parse import quote

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: as `munjang serve` does, and for its reason

from examples.demo import corpus, models
from munjang.errors import InputError, MunjangError, TruncationWarning
from munjang.server.app import create_app
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules
from munjang.server.reranker import Reranker
from munjang.server.run import Server, address_of, bind, log_to_stderr
from munjang.server.service import Service
from munjang.server.views import ServedIndex

PORT = 8080
FOLDER = Path(__file__).parents[2] / ".demo"
FIRST = "why is the sky blue"  # what the page shows when it opens
CHECKS = {"왜 하늘은 파란색일까?": "lang = 'ko'", "How do I keep bread from going stale?": "lang = 'en'"}


def main() -> int:
    """Set up, serve until Ctrl-C."""
    options = parser().parse_args()
    try:
        with listen(options.port) as bound:
            return serve(bound, Path(options.folder), options.check, not options.no_browser)
    except MunjangError as error:
        print(error, file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m examples.demo", description="Munjang's page over a small corpus.")
    made.add_argument("--port", type=int, help=f"port to listen at (default: {PORT}, or a free one if that is taken)")
    made.add_argument("--folder", default=FOLDER, help="where the index is kept (default: .demo)")
    made.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    made.add_argument("--check", action="store_true", help="on a free port: ask for the page and a few hits, then end")
    return made


def listen(port: int | None) -> socket.socket:
    """The port that was asked for; else the usual one, or any if somebody has it."""
    if port is not None:
        return bind("127.0.0.1", port)
    try:
        return bind("127.0.0.1", PORT)
    except InputError:
        return bind("127.0.0.1", 0)


def serve(bound: socket.socket, folder: Path, is_check: bool, opens_browser: bool) -> int:
    """Load, index where needed, serve; a check ends by itself and says how it went."""
    warnings.simplefilter("ignore", TruncationWarning)
    log_to_stderr(is_quiet=True)
    name, model = models.bi_encoder()
    scorer = models.cross_encoder()
    index = corpus.open_index(folder, model)
    rerankers = [] if scorer is None else [Reranker(*scorer)]
    service = Service([Embedder(name, model)], rerankers, [ServedIndex("demo", index)])
    outcome: list[bool] = []

    def started() -> None:
        address = address_of(bound)
        print(f"Munjang's page: {address}\nCtrl-C ends it.", flush=True)
        if is_check:
            threading.Thread(target=lambda: outcome.append(ends(server, address))).start()
        elif opens_browser and has_screen():
            threading.Thread(target=webbrowser.open, args=(f"{address}/#search?q={quote(FIRST)}",), daemon=True).start()

    server = Server(create_app(service, AccessRules()), service, 5, started)
    asyncio.run(server.serve(sockets=[bound]))
    return 0 if not is_check or outcome == [True] else 1


def has_screen() -> bool:
    """Tell whether a browser could show something; a terminal's own browser would take the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def ends(server: Server, address: str) -> bool:
    """Check what runs, then stop it."""
    try:
        return check(address)
    finally:
        server.should_exit = True


def check(address: str) -> bool:
    """The page, and the best hit of each query, in its own language."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        is_page = "<main" in answer.read().decode()
    for query, where in CHECKS.items():
        body = json.dumps({"query": query, "where": where, "k": 3}).encode()
        request = urllib.request.Request(f"{address}/search", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            hits = json.load(answer)["hits"]
        print(f"{query}\n  {hits[0]['score']:.2f}  {hits[0]['text']}", flush=True)
    return is_page


if __name__ == "__main__":
    sys.exit(main())
