"""Spans and metrics as a collector receives them: a small one here, which reads what the exporters send."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules
from munjang.server.reranker import Reranker
from munjang.server.service import Service
from munjang.server.telemetry import Collector
from munjang.server.tenants import Keyring
from munjang.server.views import ServedIndex
from tests.server.running import running

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXT = "a text that nobody should see"


class Received(ThreadingHTTPServer):
    """Keeps what is posted, by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[tuple[str, bytes]] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:  # the name that http.server calls
        body = self.rfile.read(int(self.headers["content-length"]))
        is_zipped = self.headers.get("content-encoding") == "gzip"
        self.server.bodies.append((self.path, gzip.decompress(body) if is_zipped else body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *given: Any) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Received]:
    server = Received()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def attributes(of: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


def test_what_a_collector_receives(model: BiEncoder, scorer: CrossEncoder, collector: Received) -> None:
    telemetry = Collector(f"http://127.0.0.1:{collector.server_port}/")
    indexes = [ServedIndex("notes", Index.open("memory:", model))]
    service = Service([Embedder("tiny", model)], [Reranker("ranker", scorer)], indexes)
    service.telemetry, service.metrics = telemetry, telemetry.metrics(service.queue_sizes)
    with running(service, AccessRules(Keyring(["the-key"])), traced=telemetry.traced) as server:
        headers = {"authorization": "Bearer the-key", "traceparent": f"00-{TRACE}-{PARENT}-01"}
        client = server.client
        body = {"documents": [{"id": "a", "text": TEXT}, {"id": "b", "text": f"{TEXT} too"}]}
        assert client.post("/documents", json=body, headers=headers).status_code == 200
        found = client.post("/search", json={"query": TEXT, "rerank": True}, headers=headers)
        assert found.status_code == 200
        assert client.get(f"/documents/{TEXT}", headers=headers).status_code == 404
        assert client.post("/search", json={}).status_code == 401
    telemetry.close()
    traces, metrics = ExportTraceServiceRequest(), ExportMetricsServiceRequest()
    for path, content in collector.bodies:
        (traces if path == "/v1/traces" else metrics).MergeFromString(content)
        assert TEXT.encode() not in content
    resource = attributes(traces.resource_spans[0].resource)
    assert resource["service.name"] == "munjang"
    spans = [span for part in traces.resource_spans for scope in part.scope_spans for span in scope.spans]
    assert {span.trace_id.hex() for span in spans if "POST" in span.name or "GET" in span.name} >= {TRACE}
    by_name = {span.name: span for span in spans if span.trace_id.hex() == TRACE}
    names = {"POST /documents", "GET /documents/{id:path}", "POST /search", "write", "search", "rerank"}
    assert set(by_name) == names | {"tokenize", "queue", "compute"}
    root = by_name["POST /search"]
    assert root.parent_span_id.hex() == PARENT
    told = attributes(root)
    assert (told["http.route"], told["http.response.status_code"], told["munjang.key"]) == (
        "/search",
        200,
        "operator-1",
    )
    assert told["munjang.request_id"] == found.headers["x-request-id"]
    assert told["munjang.tokens"] > 0
    below = {span.name: span for span in spans if span.parent_span_id == root.span_id}
    assert set(below) == {"tokenize", "queue", "compute", "search", "rerank"}
    inner = [span for span in spans if span.parent_span_id == below["rerank"].span_id]
    assert {span.name for span in inner} == {"tokenize", "queue", "compute"}
    assert attributes(below["compute"])["munjang.model"] == "tiny"
    assert {attributes(span)["munjang.model"] for span in inner} == {"ranker"}
    for span in [*below.values(), *inner]:
        assert root.start_time_unix_nano - 10**7 <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano + 10**7  # two clocks
    order = ["tokenize", "queue", "compute", "search", "rerank"]
    assert sorted(order, key=lambda name: below[name].start_time_unix_nano) == order
    sent = {
        metric.name: metric
        for part in metrics.resource_metrics
        for scope in part.scope_metrics
        for metric in scope.metrics
    }
    assert {point.as_int for point in sent["te_request_success"].sum.data_points} == {1}
    assert {attributes(point)["key"] for point in sent["munjang_key_tokens"].sum.data_points} == {"operator-1"}
    assert {attributes(point)["model"] for point in sent["te_queue_size"].gauge.data_points} == {"tiny", "ranker"}
    assert sum(point.count for point in sent["te_request_duration"].histogram.data_points) == 4
    assert len(sent["te_request_duration"].histogram.data_points[0].explicit_bounds) == 14


def test_a_collector_that_is_not_there(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come as ever; what could not be sent is dropped."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    telemetry = Collector("http://127.0.0.1:1")
    service = Service([Embedder("tiny", model)])
    service.telemetry, service.metrics = telemetry, telemetry.metrics(service.queue_sizes)
    with running(service, traced=telemetry.traced) as server:
        assert server.client.post("/embed", json={"inputs": "a"}).status_code == 200
        assert service._times == {}
    telemetry.close()
