"""Metrics as Prometheus reads them."""

from pathlib import Path

from munjang.server.metrics import NAMES, Metrics


def test_text() -> None:
    metrics = Metrics()
    metrics.count("te_request_count", method="/embed")
    metrics.count("te_request_count", 2, method="/embed")
    for value in (0.5, 1.0, 3.0, 100_000.0):
        metrics.observe("te_batch_next_size", value, model='a "b"\\')
    lines = metrics.text({"m": 7}).splitlines()
    assert 'te_request_count{method="/embed"} 3' in lines
    assert 'te_queue_size{model="m"} 7' in lines
    found = [line for line in lines if line.startswith("te_batch_next_size")]
    name = 'model="a \\"b\\"\\\\"'
    assert found[:3] == [
        f'te_batch_next_size_bucket{{{name},le="1.0"}} 2',
        f'te_batch_next_size_bucket{{{name},le="4.0"}} 3',
        f'te_batch_next_size_bucket{{{name},le="16.0"}} 3',
    ]
    assert found[-3:] == [
        f'te_batch_next_size_bucket{{{name},le="+Inf"}} 4',
        f"te_batch_next_size_sum{{{name}}} 100004.5",
        f"te_batch_next_size_count{{{name}}} 4",
    ]
    assert "# TYPE te_request_duration histogram" in lines


def test_every_metric_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "observe.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}`" not in guide] == []
