import json
import re
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.scale.plan import Cluster, describe, estimate, figures, plan, recorded, simulated

RESULTS = Path(__file__).parents[2] / "benchmarks/results"


@pytest.mark.parametrize("name", recorded())
def test_figures_are_those_of_the_records(name: str) -> None:
    figure = recorded()[name]
    if not figure["path"]:
        assert figure["source"].startswith("assumed")
        return
    found = json.loads((RESULTS / figure["source"]).read_text())
    for step in figure["path"]:
        found = found[step]
    assert figure["value"] == found


def test_a_billion_by_hand() -> None:
    """384 components: 4 x 384 + 8 bytes a row; the pipeline's own rate, where no stage around it is slower."""
    cluster = Cluster(gpus=1, disk_gb_per_s=100, price_per_hour=4.0)
    found = estimate(1e9, figures()["tokens"], 384, "binary", cluster)
    hours = 1e9 / figures()["encode_per_s"] / 3600
    assert found.hours == pytest.approx(hours)
    assert found.money == pytest.approx(4.0 * hours)
    assert found.vector_bytes == 1e9 * (48 + 8)
    assert found.bottleneck == "encode"
    assert estimate(1e9, 27, 384, "float32", cluster).vector_bytes == 1e9 * 1544
    assert estimate(1e9, 27, 384, "int8", cluster).vector_bytes == 1e9 * 392


def test_more_gpus_help_until_the_disk_is_full() -> None:
    def hours(gpus: int, precision: str) -> float:
        return estimate(1e9, 27, 384, precision, Cluster(gpus=gpus, disk_gb_per_s=1)).hours

    assert hours(8, "binary") == pytest.approx(hours(1, "binary") / 8, rel=0.01)
    assert hours(64, "float32") == pytest.approx(1e9 * 1544 / 1e9 / 3600, rel=0.02)  # a GB a second, and no more
    assert simulated(27, 384, "float32", Cluster(gpus=64, disk_gb_per_s=1)).bottleneck == "disk"
    assert estimate(1e9, 27, 384, "float32", Cluster(gpus=64, disk_gb_per_s=1)).bottleneck == "disk"


def test_longer_texts_take_longer() -> None:
    assert estimate(1e6, 54, 384, "binary", Cluster()).hours == pytest.approx(
        2 * estimate(1e6, 27, 384, "binary", Cluster()).hours
    )


def test_the_command_says_sizes_and_prices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", "--sentences", "2e9", "--tokens", "27", "--gpus", "8", "--price-per-hour", "3"]) == 0
    shown = capsys.readouterr().out
    assert "2,000,000,000 float32" in shown
    assert "3.09 TB" in shown
    assert "2026-11-15-h200.json" in shown
    assert main(["bench", "plan", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert {(row["sentences"], row["precision"]) for row in rows} == {
        (10**power, kind) for power in (6, 8, 9) for kind in ("float32", "int8", "binary")
    }
    assert all(row["money"] is None for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "--sentences", "0"], "--sentences must be a number over 0, not 0"),
        (["plan", "--gpus", "-1"], "--gpus must be a number over 0, not -1"),
        (["plan", "--price-per-hour", "-1"], "--price-per-hour must be at least 0"),
        (["plan", "--count", "5"], "--count goes with measuring, not with plan"),
        (["--gpus", "8"], "--gpus goes with `munjang bench plan`"),
        (["plant"], "Unknown action 'plant'; choose from measure, plan. Did you mean 'plan'?"),
    ],
)
def test_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_lines_for_people() -> None:
    lines = describe(plan(1e6, 27, 384, Cluster()))
    assert [line.split()[0] for line in lines if line.split()[1:2] == ["float32"]] == [
        *("1,000,000", "100,000,000", "1,000,000,000")
    ]
    assert sum(line.startswith("  float32") for line in lines) == 1  # the busy shares


def test_the_page_shows_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "plan", "--gpus", "8", "--price-per-hour", "4"]) == 0
    shown = capsys.readouterr().out.strip()
    page = (RESULTS.parents[1] / "docs/guides/scale.md").read_text(encoding="utf-8")
    assert f"<!-- munjang bench plan --gpus 8 --price-per-hour 4 -->\n\n```\n{shown}\n```" in page


def test_the_picture_shows_the_same_shares() -> None:
    picture = (RESULTS.parents[1] / "docs/images/scale.svg").read_text(encoding="utf-8")
    found = re.findall(r">(\d+)%<", picture)
    busy = plan(1e9, 27, 384, Cluster(gpus=8))["busy"]
    assert found == [f"{share:.0%}"[:-1] for shares in busy.values() for share in shares.values()]
