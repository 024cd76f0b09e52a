"""munjang serve: models over HTTP, in the shapes of OpenAI, text-embeddings-inference and Cohere; and search.

munjang serve --index notes-index
munjang serve --model small=path/to/model --reranker path/to/cross-encoder --index notes
"""

import os
import socket
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.options import option
from munjang.errors import InputError, MissingExtra, TruncationWarning
from munjang.stores import LOCATIONS

if TYPE_CHECKING:
    from munjang.server.rules import Rules
    from munjang.server.service import Service

KEY_VARIABLE = "MUNJANG_API_KEY"
# Threads of a batch that wait for each other would spin on the cores that the event loop and the clients need: 31 to 48
# short texts a second instead of 138 to 152 (32 clients on two busy cores, 2026-11-15).
WAITING = ("OMP_WAIT_POLICY", "passive")
CPU_TOKENS, GPU_TOKENS = 4096, 65_536  # of a batch: what fills two cores, or a GPU, once
CORE_TOKENS = 512  # that are worth a batch of its own


SUMMARY_KO = "HTTP로 답하기: 벡터, 재정렬, 검색"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of `munjang serve`."""

    model: tuple[str, ...] = option(
        "bi-encoders, each as NAME=FOLDER or a folder or Hub name alone (default: the bundled models)",
        default=(),
        short="-m",
        metavar="NAME=PATH",
    )
    reranker: tuple[str, ...] = option("cross-encoders, given the same way", default=(), metavar="NAME=PATH")
    index: str | None = option(f"an index to search in: {LOCATIONS}", default=None)
    index_name: str = option("name of the index at that place", default="default")
    host: str = option("address to listen at", default="127.0.0.1")
    port: int = option("port to listen at; 0 is any free one", default=8080)
    api_key_file: str | None = option(
        f"file of API keys, one a line (or one key in the variable {KEY_VARIABLE})", default=None
    )
    no_auth: bool = option("listen at an address that others reach, without a key", default=False)
    allowed_host: tuple[str, ...] = option("more names that clients may call this server by; * is any", default=())
    max_batch_tokens: int | None = option(
        f"tokens that a model computes at once, on all cores (default: {CPU_TOKENS}, or {CORE_TOKENS} a core if "
        f"that is more; on a GPU {GPU_TOKENS})",
        default=None,
    )
    max_queue: int = option("requests that may wait for one model; more are answered 429", default=512)
    max_wait_ms: int = option("for so long a request may be overtaken by smaller ones", default=50)
    max_texts: int = option("texts of a request", default=2048)
    max_text_chars: int = option("characters of a text", default=100_000)
    max_body_bytes: int = option("bytes of a request", default=2_000_000)
    dimensions: tuple[int, ...] = option(
        "sizes that vectors may be cut to (default: what a model declares)", default=()
    )
    workers: int = option("models that compute at once; each has a batch on every core", default=1)
    drain_s: int = option("seconds that requests have to finish after SIGTERM", default=30)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best there is)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "type to compute in (default: by device); int8 is for a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    quiet: bool = option("no line for every request", default=False)


def run(options: Options) -> int:
    """Check, bind, load, serve until SIGTERM or Ctrl-C."""
    os.environ.setdefault(*WAITING)  # before torch is loaded, which reads it then
    try:
        import fastapi  # noqa: F401  # asked for here, where it can still be said plainly
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("fastapi and uvicorn", "server", "Serving") from None
    from munjang.server.run import bind

    keys = keys_of(options)
    with bind(options.host, options.port) as bound:  # before the models: a port in use is known at once
        return _serve(options, keys, bound)


def _serve(options: Options, keys: tuple[str, ...], bound: socket.socket) -> int:
    from munjang.server.app import create_app
    from munjang.server.run import address_of, log_to_stderr
    from munjang.server.run import run as serve

    service = load(options)
    warnings.simplefilter("ignore", TruncationWarning)  # clients decide that, and the log has no place for it
    log_to_stderr(options.quiet)
    app = create_app(service, rules_of(options, keys))
    names = ", ".join(service.batcher.lanes)
    greeting = f"Munjang serves {names} at {address_of(bound)}"
    serve(app, service, bound, options.drain_s, lambda: print(greeting, flush=True))
    return 0


def keys_of(options: Options) -> tuple[str, ...]:
    """The API keys; none are allowed only where nobody else can reach the server, or where that is asked for."""
    from munjang.server.run import is_loopback

    keys = [os.environ[KEY_VARIABLE]] if os.environ.get(KEY_VARIABLE) else []
    if options.api_key_file is not None:
        lines = Path(options.api_key_file).read_text(encoding="utf-8").split()
        if not lines:
            raise InputError(f"{options.api_key_file} holds no key.")
        keys += lines
    if not keys and not options.no_auth and not is_loopback(options.host):
        raise InputError(
            f"Everyone who reaches {options.host} could use this server: give --api-key-file or {KEY_VARIABLE}, "
            "or --no-auth if that is meant."
        )
    return () if options.no_auth else tuple(keys)


def rules_of(options: Options, keys: tuple[str, ...]) -> "Rules":
    """Who may come in."""
    from munjang.server.rules import Rules

    hosts = (*Rules().hosts, options.host.lower(), *(name.lower() for name in options.allowed_host))
    return Rules(keys, () if "*" in hosts else hosts, options.max_body_bytes)


def load(options: Options) -> "Service":
    """Models, re-rankers and the index; where none is named, the bundled two."""
    from munjang import checkpoint
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.server.embedder import Embedder
    from munjang.server.lane import Limits
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service, Sizes

    if not (options.model or options.reranker or options.index):
        options = replace(options, model=(checkpoint.default("bi"),), reranker=(checkpoint.default("cross"),))
    where: dict[str, Any] = {"device": options.device, "dtype": options.dtype, "threads": options.threads}
    dimensions = options.dimensions or None
    models = [(name, BiEncoder.load(path, **where)) for name, path in map(named, options.model)]
    index = None
    if options.index is not None:
        from munjang.index import Index

        index = Index.open(options.index, models[0][1] if models else None, options.index_name, device=options.device)
        if not models:
            models = [(Path(index.model.model.folder).name, index.model)]
    embedders = [Embedder(name, model, dimensions) for name, model in models]
    rerankers = [Reranker(name, CrossEncoder.load(path, **where)) for name, path in map(named, options.reranker)]
    on_gpu = any(model.device.type == "cuda" for _, model in models)
    cpu = max(CPU_TOKENS, CORE_TOKENS * (os.cpu_count() or 1))
    budget = options.max_batch_tokens or (GPU_TOKENS if on_gpu else cpu)
    limits = Limits(budget, options.max_queue, options.max_wait_ms)
    sizes = Sizes(options.max_texts, options.max_text_chars)
    return Service(embedders, rerankers, index, limits, sizes, options.workers)


def named(given: str) -> tuple[str, str]:
    """NAME=PATH, or a path whose last part is the name.

    >>> named("small=models/ko-en"), named("models/ko-en")
    (('small', 'models/ko-en'), ('ko-en', 'models/ko-en'))
    """
    name, sign, path = given.partition("=")
    if sign and name and path and "/" not in name:
        return name, path
    if not given or given.startswith("=") or (sign and not path):
        raise InputError(f"A model is given as NAME=PATH or as a path, not {given!r}.")
    return Path(given).resolve().name, given
