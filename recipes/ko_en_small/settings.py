"""Settings of every round of ko-en-small, unless it says otherwise."""

from collections.abc import Collection
from typing import Any

from munjang import Dataset, TrainConfig
from munjang.data.examples import Examples
from munjang.errors import unknown

ROUND = TrainConfig(
    max_steps=1500,
    together=True,
    mixing="round_robin",
    learning_rate=8e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=320,
    ema=0.998,
    batch_tokens=131_072,
    matryoshka=(384, 256, 128, 64),
    matryoshka_weights=(1.0, 0.4, 0.3, 0.2),
    save_every=200,
    seed=7,
)

# Parts of the last round that later ones leave out: scored by another English model; told apart among passages about
# the same thing
UNUSED = ("silver", "search")
KEPT = 0.6  # of the way from the base: where questions and passages are to stay, as they find more there


def neighbourhoods(data: Examples, size: int, teacher: Any, **options: Any) -> Dataset:
    """Texts that have to be as close to each other as the teacher finds them."""
    sampler = "no_duplicates" if len(data.texts) > 1 else "random"
    options = {"target": "own", **options}
    return Dataset(
        data=data, objective="in_batch_kl", batch_size=size, teacher=teacher, options=options, sampler=sampler
    )


def check_parts(without: list[str], parts: Collection[str]) -> None:
    """Refuse names of parts that a round does not have, before it reads anything."""
    for name in without:
        if name not in parts:
            raise unknown("part of the data", name, parts)
