"""munjang serve: serve models over HTTP with the APIs of OpenAI, text-embeddings-inference and Cohere; and search.

munjang serve --index notes-index
munjang serve --model small=path/to/model --reranker path/to/cross-encoder --index notes
munjang serve --config munjang.toml            read again on SIGHUP, without dropping a request
"""

import os
import socket
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from munjang.cli.options import option, parse
from munjang.errors import InputError, MissingExtra, TruncationWarning
from munjang.stores import LOCATIONS

if TYPE_CHECKING:
    from munjang.server.limits import Limits
    from munjang.server.loading import Loader
    from munjang.server.metrics import Metrics
    from munjang.server.reload import Generation
    from munjang.server.service import Service
    from munjang.server.telemetry import Telemetry
    from munjang.server.tenants import Keyring

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
    sparse: tuple[str, ...] = option(
        "models of sparse vectors (SPLADE, ...), given like --model; those of the index are served too",
        default=(),
        metavar="NAME=PATH",
    )
    late: tuple[str, ...] = option(
        "late-interaction models (ColBERT, ...), given like --model; that of the index is served too",
        default=(),
        metavar="NAME=PATH",
    )
    index: tuple[str, ...] = option(
        f"serve these indexes, each as NAME=PLACE or just a place: {LOCATIONS}; the first answers where none is named",
        default=(),
        metavar="NAME=PLACE",
    )
    index_name: tuple[str, ...] = option(
        "name of the index at its place; one for all, or one each", default=("default",)
    )
    host: str = option("address to listen on", default="127.0.0.1")
    port: int = option("port to listen on; 0 picks a free one", default=8080)
    api_key_file: str | None = option(
        f"file of API keys that may do everything, one per line (or set one key in {KEY_VARIABLE})", default=None
    )
    keys: str | None = option("file of keys with names, scopes and limits, made by `munjang keys`", default=None)
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
    limit: tuple[str, ...] = option(
        "set another limit, such as deadline_s=5 (all of them: docs/security.md)", default=(), metavar="NAME=VALUE"
    )
    dimensions: tuple[int, ...] = option(
        "dimensions that vectors may be truncated to (default: those the model declares)", default=()
    )
    otlp: str | None = option(
        "send spans and metrics to this OpenTelemetry collector, such as http://127.0.0.1:4318", default=None
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

    keys_of(options)
    with bind(options.host, options.port) as bound:  # before the models load: report a port in use at once
        return _serve(options, bound)


def _serve(options: Options, bound: socket.socket) -> int:
    from munjang.server.loading import Loader
    from munjang.server.reload import Generation, Reloadable
    from munjang.server.run import Server, address_of, log_to_stderr
    from munjang.server.run import run as serve
    from munjang.server.telemetry import Collector, Off

    loader = Loader()

    def again(old: Generation) -> Generation:
        return generation(parse(Options, sys.argv[2:], "munjang serve", ""), loader, metrics, telemetry, old)

    telemetry = Collector(options.otlp) if options.otlp else Off()
    metrics = telemetry.metrics(lambda: app.current.service.queue_sizes())
    first = generation(options, loader, metrics, telemetry)
    warnings.simplefilter("ignore", TruncationWarning)  # clients choose to truncate; it doesn't belong in the log
    log_to_stderr(options.quiet)
    app = Reloadable(first, again)
    names = ", ".join(first.service.batcher.queues)
    greeting = f"Munjang serves {names} at {address_of(bound)}"
    asgi, connections = telemetry.traced(app), limits_of(options).connections
    server = Server(asgi, app, options.drain_s, lambda: print(greeting, flush=True), connections, app.reload)
    serve(server, bound)
    telemetry.close()
    return 0


def generation(
    options: Options, loader: "Loader", metrics: "Metrics", telemetry: "Telemetry", old: "Generation | None" = None
) -> "Generation":
    """Load what the options ask for; where anything about it is wrong, nothing has changed."""
    from munjang.server.app import create_app
    from munjang.server.reload import Generation

    try:
        limits = limits_of(options, old.app.rules.keyring if old else None)
        service = load(options, loader, limits)
    except BaseException:
        loader.forget()
        raise
    loader.keep()
    service.metrics, service.telemetry = metrics, telemetry
    return Generation(create_app(service, limits.access), service)


def keys_of(options: Options) -> tuple[str, ...]:
    """Return the plain API keys; raise InputError if there are none on a public address without --no-auth."""
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
    if not keys and options.keys is None and not options.no_auth and not is_loopback(options.host):
        raise InputError(
            f"Anyone who reaches {options.host} could use this server: give --keys, --api-key-file or {KEY_VARIABLE}, "
            "or --no-auth if that is intended."
        )
    return () if options.no_auth else tuple(keys)


def limits_of(options: Options, before: "Keyring | None" = None) -> "Limits":
    """Return keys, hosts and all limits. `before`: the keyring whose counts go on."""
    from munjang.server.limits import AccessRules, Limits, QueueLimits, RequestLimits
    from munjang.server.tenants import Keyring

    keyring = Keyring(keys_of(options), None if options.no_auth else options.keys)
    if before is not None:
        keyring.used = before.used

    hosts = (*AccessRules().hosts, options.host.lower(), *(name.lower() for name in options.allowed_host))
    access = AccessRules(keyring, () if "*" in hosts else hosts, options.max_body_bytes)
    queues = QueueLimits(options.max_batch_tokens or CPU_BATCH_TOKENS, options.max_queue, options.max_wait_ms)
    requests = RequestLimits(options.max_texts, options.max_text_chars)
    return Limits(access, requests=requests, queues=queues).changed(options.limit)


def load(options: Options, loader: "Loader", limits: "Limits") -> "Service":
    """Load models, re-rankers and indexes; the two bundled models if none is named."""
    from munjang import checkpoint
    from munjang.server.embedder import Embedder
    from munjang.server.loading import Where
    from munjang.server.service import Service

    if not (options.model or options.reranker or options.index or options.sparse or options.late):
        options = replace(options, model=(checkpoint.default("bi"),), reranker=(checkpoint.default("cross"),))
    where = Where(options.device, options.dtype, options.threads)
    models = loader.embedders(options.model, where)
    indexes = loader.indexes(options.index, options.index_name, models, where)
    beside = loader.beside(options.sparse, options.late, indexes, where)
    embedders = [Embedder(name, model, options.dimensions or None) for name, model in models]
    rerankers = loader.rerankers(options.reranker, where)
    on_gpu = any(model.device.type == "cuda" for _, model in models)
    cpu = max(CPU_BATCH_TOKENS, BATCH_TOKENS_PER_CORE * (os.cpu_count() or 1))
    queues = limits.queues
    if queues.max_batch_tokens == CPU_BATCH_TOKENS:  # nobody asked for another
        queues = replace(queues, max_batch_tokens=GPU_BATCH_TOKENS if on_gpu else cpu)
    return Service(embedders, rerankers, indexes, queues, limits.requests, options.workers, beside=beside)
