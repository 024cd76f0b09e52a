"""Spans and metrics for an OpenTelemetry collector; without one, nothing happens and nothing is imported.

Spans: the request, and below it tokenize, queue, compute, search, rerank and write. Metrics: those of metrics.py under
their names. Neither holds a text.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from munjang import __version__
from munjang.errors import MissingExtra
from munjang.server.metrics import NAMES, Metrics
from munjang.server.model_queue import Payload
from munjang.server.steps import Steps

SEND_TIMEOUT_S = 3.0  # also how long the end of a server may wait for a collector that is gone
Value = str | int | float


class Telemetry(Protocol):
    """Where spans and metrics go."""

    is_on: bool

    def measure(self, name: str, **attributes: Value) -> AbstractContextManager[Any]:
        """Return a context whose time is a span; spans that end within it lie below it."""

    def add(self, name: str, start_s: float, end_s: float, **attributes: Value) -> None:
        """Add a span that is over; times are those of time.monotonic."""

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return an application that makes a span of each request."""

    def metrics(self, queue_sizes: Callable[[], Mapping[str, int]]) -> Metrics:
        """Return the counters of a server."""

    def close(self) -> None:
        """Send what is left."""


class Off:
    """No telemetry."""

    is_on = False

    def measure(self, name: str, **attributes: Value) -> AbstractContextManager[Any]:
        """Measure nothing."""
        return nullcontext()

    def add(self, name: str, start_s: float, end_s: float, **attributes: Value) -> None:
        """Add nothing."""

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return the application itself."""
        return app

    def metrics(self, queue_sizes: Callable[[], Mapping[str, int]]) -> Metrics:
        """Return counters for /metrics alone."""
        return Metrics()

    def close(self) -> None:
        """Do nothing."""


class Collector:
    """Sends to the OTLP address of a collector, such as http://127.0.0.1:4318, in threads of its own.

    What the SDK reads from the environment (OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, ...) holds as well.
    """

    is_on = True

    def __init__(self, address: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            packages = "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
            raise MissingExtra(packages, "telemetry", "--otlp") from None
        start, timeout_s = address.rstrip("/"), float(os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT", SEND_TIMEOUT_S))
        resource = Resource.create({"service.name": "munjang", "service.version": __version__})
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{start}/v1/traces", timeout=timeout_s)))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{start}/v1/metrics", timeout=timeout_s))
        self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        self.tracer = self._spans.get_tracer("munjang", __version__)

    def measure(self, name: str, **attributes: Value) -> AbstractContextManager[Any]:
        """Return a context whose time is a span."""
        return self.tracer.start_as_current_span(name, attributes=_ours(attributes), record_exception=False)

    def add(self, name: str, start_s: float, end_s: float, **attributes: Value) -> None:
        """Add a span that is over."""
        span = self.tracer.start_span(name, start_time=_epoch_ns(start_s), attributes=_ours(attributes))
        span.end(_epoch_ns(end_s))

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return an application that makes a span of each request, below the caller's where it sends `traceparent`."""
        return _Traced(app, self)

    def metrics(self, queue_sizes: Callable[[], Mapping[str, int]]) -> Metrics:
        """Return counters that are sent too."""
        return _SentMetrics(self._meters, queue_sizes)

    def close(self) -> None:
        """Send what is left."""
        self._spans.shutdown()
        self._meters.shutdown()


@dataclass
class Times:
    """When a request to a model was tokenized and computed, on time.monotonic."""

    model: str
    tokenize_s: tuple[float, float] | None = None
    compute_s: tuple[float, float] | None = None  # from its first batch to its last
    payload_id: int = 0
    num_units: int = 0
    num_tokens: int = 0

    def around(self, prepare: Steps[Payload], known: dict[int, "Times"]) -> Steps[Payload]:
        """Prepare, with the time taken, and be known by the payload from then on."""
        start_s = time.monotonic()
        payload = yield from prepare
        self.tokenize_s = (start_s, time.monotonic())
        self.num_units, self.num_tokens = len(payload.units), int(sum(payload.tokens))
        self.payload_id = id(payload)
        known[self.payload_id] = self
        return payload

    def computed(self, seconds: float) -> None:
        """Note that a batch with a part of it is done."""
        end_s = time.monotonic()
        self.compute_s = (end_s - seconds if self.compute_s is None else self.compute_s[0], end_s)

    def tell(self, telemetry: Telemetry) -> None:
        """Make spans of it."""
        if not telemetry.is_on or self.tokenize_s is None:
            return
        facts: dict[str, Any] = {"model": self.model, "texts": self.num_units, "tokens": self.num_tokens}
        telemetry.add("tokenize", *self.tokenize_s, **facts)
        if self.compute_s is not None:
            telemetry.add("queue", self.tokenize_s[1], self.compute_s[0], model=self.model)
            telemetry.add("compute", *self.compute_s, **facts)


class _Traced:
    def __init__(self, app: ASGIApp, collector: Collector) -> None:
        self.app, self.collector = app, collector

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, StatusCode

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        started: dict[str, Any] = {}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(status=message["status"], headers=dict(message.get("headers", ())))
            await send(message)

        method = scope["method"]
        spans = self.collector.tracer.start_as_current_span(method, extract(headers), SpanKind.SERVER)
        with spans as span:
            await self.app(scope, receive, sending)
            # the route's pattern: a path or its query may hold a text
            route, state = getattr(scope.get("route"), "path", "unknown"), scope.get("state", {})
            span.update_name(f"{method} {route}")
            span.set_attributes({"http.request.method": method, "http.route": route})
            if started:
                id = started["headers"].get(b"x-request-id", b"").decode()
                span.set_attributes({"http.response.status_code": started["status"], "munjang.request_id": id})
                if started["status"] >= 500:
                    span.set_status(StatusCode.ERROR)
            span.set_attributes(_ours({name: value for name, value in state.get("facts", {}).items() if name != "at"}))


class _SentMetrics(Metrics):
    def __init__(self, meters: Any, queue_sizes: Callable[[], Mapping[str, int]]) -> None:
        super().__init__()
        from opentelemetry.metrics import CallbackOptions, Observation

        def sizes(options: CallbackOptions) -> list[Observation]:
            return [Observation(size, {"model": name}) for name, size in queue_sizes().items()]

        meter, self.sent = meters.get_meter("munjang", __version__), dict[str, Any]()
        for name, (kind, help, bounds) in NAMES.items():
            if kind == "counter":
                self.sent[name] = meter.create_counter(name, description=help)
            elif kind == "histogram":
                self.sent[name] = meter.create_histogram(
                    name, description=help, explicit_bucket_boundaries_advisory=[*bounds]
                )
            else:
                meter.create_observable_gauge(name, [sizes], description=help)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        super().count(name, amount, **labels)
        self.sent[name].add(amount, labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        super().observe(name, value, **labels)
        self.sent[name].record(value, labels)


def _ours(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {f"munjang.{name}": value for name, value in attributes.items()}


def _epoch_ns(monotonic_s: float) -> int:
    return time.time_ns() - int((time.monotonic() - monotonic_s) * 1e9)
