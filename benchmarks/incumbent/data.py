"""Small data in the place of what the tests download, by the names and columns of the datasets on the Hub."""

from typing import Any

THINGS = ("a man", "a woman", "a child", "two dogs", "a cat", "the old band", "a chef", "a horse")
ACTIONS = ("is playing a guitar", "runs through the park", "sleeps on a sofa", "cooks a meal", "jumps over a fence")
MORE = ("in the rain", "at night", "with a friend", "near the sea")
NUM_ROWS = 800


def sentence(number: int) -> str:
    """Return one of 160 sentences, and the same ones again with a number."""
    thing, action, more = THINGS[number % 8], ACTIONS[number // 8 % 5], MORE[number // 40 % 4]
    return f"{thing} {action} {more}" + (f" {number // 160}" if number >= 160 else "") + "."


def similar(number: int) -> dict[str, Any]:
    """Return a pair and how similar it is, as STS-B has them."""
    step = (0, 40, 8, 1, 11)[number % 5]
    return {"sentence1": sentence(number), "sentence2": sentence(number + step), "score": 1 - 0.25 * (number % 5)}


def inferred(number: int) -> dict[str, Any]:
    """Return a premise, a hypothesis and their label, as NLI has them."""
    return {"premise": sentence(number), "hypothesis": sentence(number + 40 * (number % 3)), "label": number % 3}


def answered(number: int) -> dict[str, Any]:
    """Return a question and its answer."""
    thing, action = THINGS[number % 8], ACTIONS[number // 8 % 5]
    return {"query": f"Who {action} {number}?", "answer": f"It is {thing} that {action} {number}."}


def triple(number: int) -> dict[str, Any]:
    """Return a sentence, one like it and one unlike it."""
    texts = sentence(number), sentence(number + 40), sentence(number + 9)
    return dict(zip(("anchor", "positive", "negative"), texts, strict=True))


ROWS = {
    "sentence-transformers/stsb": similar,
    "sentence-transformers/all-nli": inferred,
    "sentence-transformers/all-nli/triplet": triple,
    "sentence-transformers/natural-questions": answered,
    "sentence-transformers/gooaq": answered,
}
SPLITS = {"train": NUM_ROWS, "validation": 200, "test": 200}


def load_dataset(path: str, name: str | None = None, split: str | None = None, **options: Any) -> Any:
    """Return a dataset as `datasets.load_dataset` does: all splits, or one, such as train[:100]."""
    from datasets import Dataset, DatasetDict

    row = ROWS.get(f"{path}/{name}") or ROWS.get(path)
    if row is None:
        raise ConnectionError(f"{path} is not among the local data: {', '.join(ROWS)}")
    made = DatasetDict(
        {part: Dataset.from_list([row(number) for number in range(count)]) for part, count in SPLITS.items()}
    )
    if split is None:
        return made
    part, _, limits = split.partition("[")
    chosen = made["validation" if part == "dev" else part]
    if limits:
        start, _, stop = limits.rstrip("]").partition(":")
        chosen = chosen.select(range(int(start or 0), min(int(stop or len(chosen)), len(chosen))))
    return chosen
