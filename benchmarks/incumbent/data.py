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


def duplicate(number: int) -> dict[str, Any]:
    """Return two questions and whether they ask the same."""
    return {"sentence1": sentence(number), "sentence2": sentence(number + 40 * (number % 2)), "label": 1 - number % 2}


def passages(number: int) -> dict[str, Any]:
    """Return a query with passages and which of them answers it, as MS MARCO has them."""
    texts = [answered(number + step)["answer"] for step in range(5)]
    return {"query": answered(number)["query"], "query_id": number, "query_type": "person", "answers": texts[:1]} | {
        "passages": {"passage_text": texts, "is_selected": [1, 0, 0, 0, 0], "url": [""] * 5}
    }


def question(number: int) -> dict[str, Any]:
    """Return a question with its id, as a corpus has it."""
    return {"qid": str(number), "question": sentence(number)}


def document(number: int) -> dict[str, Any]:
    """Return a document with its id."""
    return {"_id": str(number), "title": "", "text": answered(number)["answer"]}


def query(number: int) -> dict[str, Any]:
    """Return a query with its id."""
    return {"_id": str(number), "text": answered(number)["query"]}


def relevant(number: int) -> dict[str, Any]:
    """Return which document answers a query."""
    return {"query-id": str(number), "corpus-id": str(number), "score": 1}


ROWS = {
    "sentence-transformers/stsb": similar,
    "mteb/stsbenchmark-sts": similar,
    "mteb/sts17-crosslingual-sts": similar,
    "sentence-transformers/all-nli": inferred,
    "sentence-transformers/all-nli/triplet": triple,
    "sentence-transformers/all-nli/pair-score": similar,
    "sentence-transformers/all-nli/pair": lambda number: dict(list(triple(number).items())[:2]),
    "sentence-transformers/natural-questions": answered,
    "sentence-transformers/gooaq": lambda n: {"question": answered(n)["query"], "answer": answered(n)["answer"]},
    "sentence-transformers/quora-duplicates": duplicate,
    "sentence-transformers/quora-duplicates/triplet": triple,
    "sentence-transformers/quora-duplicates-mining/questions": question,
    "sentence-transformers/quora-duplicates-mining/duplicates": lambda n: {
        "qid1": str(n), "qid2": str((n + 160) % 800)
    },
    "sentence-transformers/wiki1m-for-simcse": lambda number: {"text": sentence(number)},
    "sentence-transformers/wikipedia-en-sentences": lambda number: {"sentence": sentence(number)},
    "sentence-transformers/wikipedia-sections/triplet": triple,
    "sentence-transformers/askubuntu": lambda n: {
        "query": sentence(n),
        "positive": [sentence(n + 40)],
        "negative": [sentence(n + 9), sentence(n + 11)],
    },
    "sentence-transformers/msmarco/corpus": lambda n: {"passage_id": n, "passage": answered(n)["answer"]},
    "sentence-transformers/msmarco/queries": lambda n: {"query_id": n, "query": answered(n)["query"]},
    "sentence-transformers/msmarco/triplets": lambda n: {"query_id": n, "positive_id": n, "negative_id": (n + 5) % 800},
    "sentence-transformers/msmarco/bert-ensemble-margin-mse": lambda n: {
        "query_id": n, "positive_id": n, "negative_id": (n + 5) % 800, "score": 1.5
    },
    "sentence-transformers/msmarco/labeled-list": lambda n: {
        "query_id": n, "doc_ids": [n, (n + 1) % 800, (n + 2) % 800], "labels": [1, 0, 0],
    },
    "sentence-transformers/msmarco/bert-ensemble-mse": lambda n: {"query_id": n, "passage_id": n, "score": 1.5},
    "sentence-transformers/msmarco-corpus/passage": lambda n: {"pid": n, "text": answered(n)["answer"]},
    "sentence-transformers/msmarco-corpus/query": lambda n: {"qid": n, "text": answered(n)["query"]},
    "microsoft/ms_marco": passages,
    "BeIR/quora/corpus": document,
    "BeIR/quora/queries": query,
    "BeIR/quora-qrels": relevant,
    "mteb/msmarco/queries": query,
    "mteb/msmarco/corpus": document,
    "mteb/msmarco": relevant,
    "sentence-transformers/NanoBEIR-en/corpus": document,
    "sentence-transformers/NanoBEIR-en/queries": query,
    "sentence-transformers/NanoBEIR-en/qrels": relevant,
    "sentence-transformers/NanoBEIR-en/bm25": lambda n: {
        "query-id": str(n), "corpus-ids": [str((n + step) % NUM_NANO_ROWS) for step in range(10)]
    },
}  # fmt: skip
SPLITS = {"train": NUM_ROWS, "validation": 200, "test": 200}
NUM_NANO_ROWS = 50


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
    part = "validation" if part in ("dev", "eval") else part
    if part not in made:  # NanoBEIR and BeIR name splits after datasets
        made[part] = Dataset.from_list([row(number) for number in range(NUM_NANO_ROWS)])
    chosen = made[part]
    if limits:
        start, stop = (int(each) if each else None for each in limits.rstrip("]").split(":"))
        chosen = chosen.select(range(len(chosen))[start:stop])
    return chosen.to_iterable_dataset() if options.get("streaming") else chosen
