"""munjang serve: serve models over HTTP with the APIs of OpenAI, text-embeddings-inference and Cohere; and search.

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
    from munjang.server.limits import AccessRules
    from munjang.server.service import Service

KEY_VARIABLE = "MUNJANG_API_KEY"
# Threads that wait for each other would spin on the cores that the event loop and the clients need: 31 to 48 short
# texts a second instead of 138 to 152 (32 clients on two busy cores, 2026-11-15).
WAIT_POLICY = ("OMP_WAIT_POLICY", "passive")
CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 4096, 65_536  # fill two cores, or a GPU, once
BATCH_TOKENS_PER_CORE = 512  # enough for a batch of its own


SUMMARY_KO = "HTTP로 답하기: 벡터, 재정렬, 검색"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang serve`."""

    model: tuple[str, ...] = option(
        "bi-encoders, each as NAME=FOLDER or just a folder or Hub name (default: the bundled models)",
        default=(),
        short="-m",
        metavar="NAME=PATH",
    )
    reranker: tuple[str, ...] = option("cross-encoders, given like --model", default=(), metavar="NAME=PATH")
    index: str | None = option(f"serve this index: {LOCATIONS}", default=None)
    index_name: str = option("name of the index at that place", default="default")
    host: str = option("address to listen on", default="127.0.0.1")
    port: int = option("port to listen on; 0 picks a free one", default=8080)
    api_key_file: str | None = option(
        f"file of API keys, one per line (or set one key in {KEY_VARIABLE})", default=None
    )
    no_auth: bool = option("listen on a public address without a key", default=False)
    allowed_host: tuple[str, ...] = option("accept these host names too; * accepts any", default=())
    max_batch_tokens: int | None = option(
        f"tokens that a model computes at once, on all cores (default: {CPU_BATCH_TOKENS}, or {BATCH_TOKENS_PER_CORE} "
        f"per core if that is more; on a GPU {GPU_BATCH_TOKENS})",
        default=None,
    )
    max_queue: int = option("requests that may wait per model; more get 429", default=512)
    max_wait_ms: int = option("milliseconds for which smaller requests may overtake a larger one", default=50)
    max_texts: int = option("maximum texts per request", default=2048)
    max_text_chars: int = option("maximum characters per text", default=100_000)
    max_body_bytes: int = option("maximum bytes per request", default=2_000_000)
    dimensions: tuple[int, ...] = option(
        "dimensions that vectors may be truncated to (default: those the model declares)", default=()
    )
    workers: int = option("models that compute at once, each with a batch on every core", default=1)
    drain_s: int = option("seconds to finish open requests after SIGTERM", default=30)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    quiet: bool = option("don't log requests", default=False)


def run(options: Options) -> int:
    """Check the options, bind the port, load the models, serve until SIGTERM or Ctrl-C."""
    os.environ.setdefault(*WAIT_POLICY)  # torch reads it when it is imported
    try:
        import fastapi  # noqa: F401  # imported here to report it plainly if it is missing
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("fastapi and uvicorn", "server", "Serving") from None
    from munjang.server.run import bind

    keys = keys_of(options)
    with bind(options.host, options.port) as bound:  # before the models load: report a port in use at once
        return _serve(options, keys, bound)


def _serve(options: Options, keys: tuple[str, ...], bound: socket.socket) -> int:
    from munjang.server.app import create_app
    from munjang.server.run import address_of, log_to_stderr
    from munjang.server.run import run as serve

    service = load(options)
    warnings.simplefilter("ignore", TruncationWarning)  # clients choose to truncate; it doesn't belong in the log
    log_to_stderr(options.quiet)
    app = create_app(service, rules_of(options, keys))
    names = ", ".join(service.batcher.queues)
    greeting = f"Munjang serves {names} at {address_of(bound)}"
    serve(app, service, bound, options.drain_s, lambda: print(greeting, flush=True))
    return 0


def keys_of(options: Options) -> tuple[str, ...]:
    """Return the API keys; raise InputError if there are none on a public address without --no-auth."""
    from munjang.server.run import is_loopback

    keys = [os.environ[KEY_VARIABLE]] if os.environ.get(KEY_VARIABLE) else []
    if options.api_key_file is not None:
        try:
            lines = Path(options.api_key_file).read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise InputError(f"{options.api_key_file} is not a text file of API keys, one per line.") from None
        if not lines:
            raise InputError(f"{options.api_key_file} contains no key.")
        keys += lines
    if not keys and not options.no_auth and not is_loopback(options.host):
        raise InputError(
            f"Anyone who reaches {options.host} could use this server: give --api-key-file or {KEY_VARIABLE}, "
            "or --no-auth if that is intended."
        )
    return () if options.no_auth else tuple(keys)


def rules_of(options: Options, keys: tuple[str, ...]) -> "AccessRules":
    """Return the rules for incoming requests: keys, hosts, body size."""
    from munjang.server.limits import AccessRules

    hosts = (*AccessRules().hosts, options.host.lower(), *(name.lower() for name in options.allowed_host))
    return AccessRules(keys, () if "*" in hosts else hosts, options.max_body_bytes)


def load(options: Options) -> "Service":
    """Load models, re-rankers and the index; the two bundled models if none is named."""
    from munjang import checkpoint
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.server.embedder import Embedder
    from munjang.server.limits import QueueLimits, RequestLimits
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service

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
    cpu = max(CPU_BATCH_TOKENS, BATCH_TOKENS_PER_CORE * (os.cpu_count() or 1))
    budget = options.max_batch_tokens or (GPU_BATCH_TOKENS if on_gpu else cpu)
    limits = QueueLimits(budget, options.max_queue, options.max_wait_ms)
    sizes = RequestLimits(options.max_texts, options.max_text_chars)
    return Service(embedders, rerankers, index, limits, sizes, options.workers)


def named(given: str) -> tuple[str, str]:
    """Split NAME=PATH; a path alone is named by its last part.

    >>> named("small=models/ko-en"), named("models/ko-en")
    (('small', 'models/ko-en'), ('ko-en', 'models/ko-en'))
    """
    name, sign, path = given.partition("=")
    if sign and name and path and "/" not in name:
        return name, path
    if not given or given.startswith("=") or (sign and not path):
        raise InputError(f"A model is given as NAME=PATH or as a path, not {given!r}.")
    return Path(given).resolve().name, given
