"""Read published sets in JSON: KLUE's similarity, SQuAD and KorQuAD."""

import json
import re
from typing import Any

from munjang.data.files import label, open_bytes
from munjang.data.published.shape import Fields, Head, decode
from munjang.data.rows import Source
from munjang.errors import InputError

SQUAD_COLUMNS = ("id", "question", "passage", "title", "is_impossible")


def load(path: Source) -> Any:
    """Parse a whole file of JSON."""
    with open_bytes(path) as file:
        try:
            return json.loads(decode(file.read()))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{label(path)} is not valid JSON: {error}") from None


def tells_klue_sts(head: Head) -> bool:
    """Tell KLUE's pairs, whose score is inside `labels`."""
    return head.content.lstrip().startswith("[") and '"real-label"' in head.content


def klue_sts(path: Source) -> Fields:
    """Read KLUE's pairs with the score that is not rounded."""
    yield 0, ("guid", "sentence1", "sentence2", "score", "is_paraphrase")
    for number, item in enumerate(load(path)):
        labels = item["labels"]
        sentences = item["sentence1"], item["sentence2"]
        yield number, (item["guid"], *sentences, labels["real-label"], labels["binary-label"])


def tells_squad(head: Head) -> bool:
    """Tell SQuAD, KorQuAD 1 and what is written alike."""
    return head.name.endswith(".json") and re.search(r'"paragraphs"\s*:', head.content) is not None


def squad(path: Source) -> Fields:
    """Read every question with the paragraph that was asked about; those that it can't answer are left out."""
    yield 0, SQUAD_COLUMNS[:-1]
    for number, (*values, is_impossible) in enumerate(squad_rows(path)):
        if not is_impossible:
            yield number, values


def squad_rows(path: Source) -> list[tuple[str, str, str, str, bool]]:
    """Return id, question, paragraph, title, and whether the paragraph lacks the answer, of every question."""
    try:
        return [
            (str(asked["id"]), asked["question"], paragraph["context"], article.get("title", ""), _is_impossible(asked))
            for article in load(path)["data"]
            for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise InputError(f"{label(path)} is not written as SQuAD is: {error} is missing or misplaced") from None


def _is_impossible(asked: dict[str, Any]) -> bool:
    return bool(asked.get("is_impossible", False))
