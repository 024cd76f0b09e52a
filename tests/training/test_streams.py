"""Training on data that is larger than memory: every row once a pass, resumed to the bit, few blocks alive."""

import json
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.errors import InputError
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, Maker
from munjang.training.draws import Draw, draws, num_draws, prepare_all
from munjang.training.loop import Loop
from munjang.training.run import Run
from munjang.training.train import train
from munjang.training.trainee import Trainee
from tests.training.made import sentences
from tests.training.runs import quiet, write_tsv

TEXTS = sentences(22), sentences(22, 1)
ROWS = [(a, b, n / 21) for n, (a, b) in enumerate(zip(*TEXTS, strict=True))]
SMALL = {"buffer_rows": 8, "batch_size": 3, "learning_rate": 1e-3}


def rows() -> Iterator[tuple[str, str, float]]:
    yield from ROWS


def texts_of(draw: Draw) -> list[str]:
    assert draw.batches is not None
    return [draw.batches.examples.texts[0][row] for row in draw.rows]


def taken(datasets: list[Dataset], config: TrainConfig, model: BiEncoder, count: int, **at: Any) -> list[Draw]:
    prepared = prepare_all(datasets, Trainee(model, torch.device("cpu"), config), config, None)
    return [draw for draw, _ in zip(draws(prepared, config, **at), range(count), strict=False)]


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu", "float32")


def test_every_row_is_drawn_once_a_pass_from_its_own_block(model: BiEncoder) -> None:
    config = quiet(**SMALL)
    prepared = prepare_all(
        [Dataset(data=rows, objective="regression")], Trainee(model, torch.device("cpu"), config), config, None
    )
    assert num_draws(prepared, config) == 8  # 22 rows by three
    assert "22 rows, read 8 at a time" in prepared[0].batches.examples.notes[-1]
    source = draws(prepared, config)
    passes = [[texts_of(next(source)) for _ in range(8)] for _ in range(2)]
    for one in passes:
        assert Counter(text for batch in one for text in batch) == Counter(TEXTS[0])
        assert sorted(text for batch in one[:3] for text in batch) == sorted(TEXTS[0][:8])
    assert passes[0] != passes[1]
    assert [len(batch) for batch in passes[0]] == [3, 3, 2, 3, 3, 2, 3, 3]


@pytest.mark.parametrize("stop", [2, 3, 11])
def test_drawing_goes_on_from_any_place(model: BiEncoder, stop: int) -> None:
    config = quiet(**SMALL)
    datasets = [Dataset(data=rows, objective="regression")]
    whole = taken(datasets, config, model, 16)
    last = whole[stop]
    rest = taken(
        datasets, config, model, 4, epoch=last.epoch, index=last.index + 1, places={"0": [*(last.after or ())]}
    )
    assert [texts_of(draw) for draw in rest] == [texts_of(draw) for draw in whole[stop + 1 : stop + 5]]


class Killed(Exception):
    """What ends a run in the middle."""


def killed_at(update: int) -> Any:
    def watch(loop: Loop) -> None:
        def check() -> None:
            if loop.at.update == update:
                raise Killed

        loop.on_update = check

    return watch


@pytest.mark.parametrize("sampler", ["random", "no_duplicates"])
def test_a_stopped_run_goes_on_to_the_same_weights(tiny_bert: Path, tmp_path: Path, sampler: str) -> None:
    def trained(name: str, **settings: Any) -> dict[str, torch.Tensor]:
        watch = settings.pop("watch", None)
        config = quiet(output=str(tmp_path / name), epochs=1.5, save_every=5, sampler=sampler, **SMALL, **settings)
        loaded = BiEncoder.load(tiny_bert, "cpu", "float32")
        train(loaded, rows, "regression", config, watch=watch)
        return dict(loaded.network.state_dict())

    whole = trained("whole")
    with pytest.raises(Killed):
        trained("stopped", watch=killed_at(7))
    gone_on = trained("stopped", resume=True)
    assert all(torch.equal(whole[name], value) for name, value in gone_on.items())
    log = Run(tmp_path / "stopped").read_log()
    assert [line["step"] for line in log if "loss" in line] == list(range(1, 13))


def test_other_rows_are_refused_when_a_run_goes_on(tiny_bert: Path, tmp_path: Path) -> None:
    config = quiet(output=str(tmp_path / "out"), save_every=1, **SMALL)
    with pytest.raises(Killed):
        train(BiEncoder.load(tiny_bert, "cpu", "float32"), rows, "regression", config, watch=killed_at(2))

    def again() -> Iterator[tuple[str, str, float]]:
        yield from [*ROWS[:-1], ("another", "row", 0.5)]

    again.__name__ = "rows"
    with pytest.raises(InputError, match=r"is a run with other settings: .*hash was"):
        train(tiny_bert, again, "regression", replace(config, resume=True))


def test_few_blocks_are_alive_at_once(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Batches]] = []
    most, original = [0], Maker.__call__

    def counted(self: Maker, *arguments: Any) -> Batches:
        made = original(self, *arguments)
        alive.append(weakref.ref(made))
        most[0] = max(most[0], sum(each() is not None for each in alive))
        return made

    monkeypatch.setattr(Maker, "__call__", counted)
    many = [(f"{a} {n}", b, score) for n in range(6) for a, b, score in ROWS]
    train(model, lambda: iter(many), "regression", quiet(**{**SMALL, "buffer_rows": 11}))
    assert len(alive) > 10
    assert most[0] <= 7  # the first one, four that are ready or waiting, and those of the last batches


def test_a_generator_trains_for_max_steps_and_several_datasets_take_turns(model: BiEncoder) -> None:
    train(model, rows(), "regression", quiet(max_steps=7, **SMALL))
    with pytest.raises(InputError, match="can be read only once"):
        train(model, rows(), "regression", quiet(**SMALL))
    with pytest.raises(InputError, match="it was read before"):
        train(model, rows(), "regression", quiet(max_steps=20, **SMALL))
    both = [Dataset(data=rows, objective="regression"), Dataset(data=ROWS[:6], objective="cosent")]
    drawn = taken(both, quiet(mixing="round_robin", **SMALL), model, 16)
    assert [draw.dataset for draw in drawn] == [0, 1] * 8
    assert Counter(text for draw in drawn[::2] for text in texts_of(draw)) == Counter(TEXTS[0])


def test_files_are_streamed_by_the_command(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_tsv(tmp_path / "sts.tsv", "sentence1 sentence2 score", ROWS)
    held = write_tsv(tmp_path / "dev.tsv", "sentence1 sentence2 score", [(TEXTS[0][3], "x y", 0.5), ("k l", "m", 0.1)])
    command = ["train", str(tiny_bert), str(path), "--objective", "regression", "--stream", "--buffer-rows", "8"]
    command += ["--batch-size", "4", "--evaluate", str(held), "-o", str(tmp_path / "out")]
    assert main([*command, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "21 rows for regression" in shown
    assert "21 rows (1 more are dropped), read 8 at a time; batches are drawn from one such block" in shown
    assert "6 updates" in shown
    assert main(command) == 0
    settings = json.loads((tmp_path / "out.training" / "run.json").read_text("utf-8"))
    (data,) = settings["data"].values()
    assert (data["rows"], data["buffer_rows"]) == (21, 8)
    assert "- 21 rows, hash" in (tmp_path / "out" / "README.md").read_text("utf-8")


def test_ready_vectors_belong_to_rows_in_memory(model: BiEncoder) -> None:
    vectors = torch.zeros(22, 2, model.dimension).numpy()
    with pytest.raises(InputError, match="give the model itself for a stream"):
        train(model, [Dataset(data=rows, objective="embedding_mse", teacher=vectors)], config=quiet(**SMALL))
    with pytest.raises(InputError, match="this data is in memory already; leave it out"):
        train(model, ROWS, "regression", quiet(stream=True, **SMALL))
