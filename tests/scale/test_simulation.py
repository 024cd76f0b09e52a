import pytest

from munjang.scale.simulation import Stage, simulate


@pytest.mark.parametrize("seconds", [(1.0, 3.0, 2.0), (3.0, 1.0, 1.0), (1.0, 1.0, 4.0), (2.0, 2.0, 2.0)])
@pytest.mark.parametrize("num_blocks", [1, 2, 50])
def test_equal_blocks_through_single_servers(seconds: tuple[float, ...], num_blocks: int) -> None:
    """By hand: the first block takes the sum, every other one arrives as late as the slowest stage allows."""
    stages = [Stage(str(at), each) for at, each in enumerate(seconds)]
    found = simulate(stages, num_blocks)
    assert found.seconds == pytest.approx(sum(seconds) + (num_blocks - 1) * max(seconds))
    for stage in stages:
        assert found.busy[stage.name] == pytest.approx(num_blocks * stage.seconds / found.seconds)


def test_servers_share_the_work() -> None:
    found = simulate([Stage("read", 0.1), Stage("compute", 1.0, servers=4), Stage("write", 0.2)], 400)
    assert found.seconds == pytest.approx(400 * 0.25, rel=0.02)
    assert found.bottleneck == "compute"
    assert found.busy["compute"] > 0.98
    assert found.busy["write"] == pytest.approx(0.8, rel=0.02)


def test_a_slow_end_holds_up_the_beginning() -> None:
    """Queues are bounded: with two places and a writer of 1 s, 10 blocks are not all computed at once."""
    found = simulate([Stage("compute", 0.001, servers=8), Stage("write", 1.0)], 10, queue=2)
    assert found.seconds == pytest.approx(10.001)
    assert found.bottleneck == "write"


def test_no_blocks() -> None:
    assert simulate([Stage("read", 1.0)], 0).seconds == 0
