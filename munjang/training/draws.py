"""The datasets of a run together: prepared, and drawn from in turn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from munjang.data.mixing import mix, turns
from munjang.errors import InputError
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, PreparedDataset, prepare
from munjang.training.step import seed_of
from munjang.training.streams import Place, PreparedStream, is_streamed, prepare_stream
from munjang.training.trainee import Trainee
from munjang.types import Ints


@dataclass(frozen=True)
class Draw:
    """One batch of the run: its position, its dataset and its rows; of a stream also their block."""

    epoch: int
    index: int
    dataset: int
    rows: Ints
    batches: Batches | None = None  # None: the dataset's own
    after: Place | None = None  # the next batch of the stream


def prepare_all(
    datasets: Sequence[Dataset], trainee: Trainee, config: TrainConfig, cache: Path | None
) -> list[PreparedDataset]:
    """Prepare all datasets of a run; the model adopts the prompts that they are trained with."""
    if config.stream and not any(is_streamed(dataset, config) for dataset in datasets):
        raise InputError("stream reads files a block at a time, and this data is in memory already; leave it out.")
    # how often each dataset takes a turn depends on the sizes of all
    is_counted = config.max_steps is None or len(datasets) > 1
    prepared = [
        prepare_stream(dataset, trainee, config, is_counted)
        if is_streamed(dataset, config)
        else prepare(dataset, trainee, config, cache)
        for dataset in datasets
    ]
    note = trainee.take_prompts([dataset.settings["prompts"] for dataset in prepared])
    if note is not None:
        prepared[0].batches.examples = prepared[0].batches.examples.noted(note)
    return prepared


def notes(datasets: Sequence[PreparedDataset]) -> list[str]:
    """Return messages about the data for the user: rows that were dropped, how scores are read."""
    return [f"{dataset.name}: {note}" for dataset in datasets for note in dataset.batches.examples.notes]


def draws(
    datasets: Sequence[PreparedDataset],
    config: TrainConfig,
    epoch: int = 0,
    index: int = 0,
    places: Mapping[str, Sequence[int]] | None = None,
) -> Iterator[Draw]:
    """Yield the batches of the run from a position on, without end; the same ones in every call.

    `places` says where each stream goes on, by the number of its dataset: an epoch of the run is as many batches as its
    rows would fill, which needn't be the end of a pass.
    """
    begin = {int(at): Place(*place) for at, place in (places or {}).items()}
    streams = {
        at: dataset.run(seed_of(config.seed, at, 0), begin.get(at, Place()))
        for at, dataset in enumerate(datasets)
        if isinstance(dataset, PreparedStream)
    }
    while True:
        rounds = {
            (at, 0): dataset.epoch(seed_of(config.seed, at, 0), epoch)
            for at, dataset in enumerate(datasets)
            if at not in streams
        }
        sizes = [len(rounds[at, 0]) if at not in streams else each.num_batches(0) for at, each in enumerate(datasets)]
        order = mix(sizes, config.mixing, config.seed, epoch, config.temperature)
        for position, (which, turn) in enumerate(zip(order.tolist(), turns(order).tolist(), strict=True)):
            if position < index:
                continue
            if which in streams:
                found = next(streams[which])
                yield Draw(epoch, position, which, found.rows, found.batches, found.after)
                continue
            again, at = divmod(turn, sizes[which])  # a small dataset may start again, in another order
            if (which, again) not in rounds:
                rounds[which, again] = datasets[which].epoch(seed_of(config.seed, which, again), epoch)
            batches_of_round = rounds[which, again]
            yield Draw(epoch, position, which, batches_of_round[at % len(batches_of_round)])
        epoch, index = epoch + 1, 0


def num_draws(datasets: Sequence[PreparedDataset], config: TrainConfig) -> int:
    """Count the batches of the first epoch."""
    sizes = [dataset.num_batches(seed_of(config.seed, at, 0)) for at, dataset in enumerate(datasets)]
    return len(mix(sizes, config.mixing, config.seed, 0, config.temperature))
