"""A topic model on disk: a folder of topics.json (for people too), texts.jsonl and vectors.safetensors; no pickle."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from munjang.checkpoint.atomic import replacing_folder
from munjang.data.files import read_lines
from munjang.errors import CheckpointError, InputError
from munjang.tasks.topics.model import NO_TOPIC, Naming, Topic, TopicModel

FORMAT = "munjang-topics-1"
FACTS, TEXTS, VECTORS = "topics.json", "texts.jsonl", "vectors.safetensors"
ARRAYS = {"topic_of": (np.int64, 1), "similarity": (np.float32, 1), "sums": (np.float32, 2)}


def save_topics(found: TopicModel, folder: str | os.PathLike[str]) -> None:
    """Write a folder that `load_topics` reads; it appears whole or not at all and replaces an older one.

    Raises InputError for a folder that holds anything else.

    >>> from munjang import BiEncoder
    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> save_topics(find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2)), "my-topics")
    >>> sorted(path.name for path in Path("my-topics").iterdir())
    ['texts.jsonl', 'topics.json', 'vectors.safetensors']
    """
    target = Path(folder)
    check_folder(target)
    facts = {
        "format": FORMAT,
        "fingerprint": found.fingerprint,
        "naming": asdict(found.naming),
        "topics": [asdict(topic) for topic in found.topics],
    }
    arrays = {"topic_of": found.topic_of_N, "similarity": found.similarity_N, "sums": found.sums_TD}
    with replacing_folder(target) as made:
        (made / FACTS).write_text(json.dumps(facts, ensure_ascii=False, indent=1), "utf-8", "replace")
        lines = (json.dumps(text) + "\n" for text in found.texts)  # in ASCII: halves of surrogate pairs survive
        (made / TEXTS).write_text("".join(lines), "utf-8")
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, made / VECTORS)


def check_folder(target: Path) -> None:
    """Refuse to replace anything but a folder of topics."""
    if target.exists() and not (target / FACTS).is_file():
        raise InputError(f"{target} is there already and holds no topics; choose another name.")


def load_topics(folder: str | os.PathLike[str]) -> TopicModel:
    """Read the model that `save_topics` wrote; a damaged or foreign folder is a CheckpointError that names the file.

    >>> from munjang import BiEncoder
    >>> from munjang.tasks.topics import TopicConfig, find_topics
    >>> texts = ["A cat sleeps.", "A kitten naps.", "Shares fell.", "Stocks rose."]
    >>> save_topics(find_topics(texts, BiEncoder.load(), TopicConfig(num_topics=2)), "pets-and-money")
    >>> load_topics("pets-and-money").assign(["The kitten sleeps."], BiEncoder.load()).topic_of_N.shape
    (1,)
    """
    place = Path(folder)
    if not place.is_dir():
        raise CheckpointError(f"{place} is not a folder of topics; `save_topics` writes one.")
    for name in (FACTS, TEXTS, VECTORS):
        if not (place / name).is_file():
            raise CheckpointError(f"{place} has no {name}; copy the whole folder, or save the topics again.")
    try:
        facts = json.loads((place / FACTS).read_text("utf-8"))
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise CheckpointError(f"{place / FACTS} is not of the format {FORMAT}.")
        topics = tuple(_topic(each) for each in facts["topics"])
        naming = Naming(**{name: int(value) for name, value in facts["naming"].items()})
        texts = [json.loads(line) for _, line in read_lines(place / TEXTS)]
        arrays = load_file(place / VECTORS)
        found = TopicModel(
            texts, arrays["topic_of"], arrays["similarity"], arrays["sums"], topics, naming, facts["fingerprint"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{place} is damaged ({type(error).__name__}: {error}); save the topics again.") from None
    _check(place, found, arrays)
    return found


def _topic(facts: dict[str, Any]) -> Topic:
    terms = tuple((str(term), float(weight)) for term, weight in facts["terms"])
    return Topic(int(facts["number"]), int(facts["size"]), terms, tuple(map(str, facts["examples"])))


def _check(place: Path, found: TopicModel, arrays: dict[str, Any]) -> None:
    """Refuse files that do not belong to one model."""
    for name, (dtype, ndim) in ARRAYS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != ndim or not np.isfinite(arrays[name]).all():
            raise CheckpointError(f"{place / VECTORS}: {name} is not a finite array of {np.dtype(dtype)}.")
    num_texts, num_topics = len(found.texts), len(found.topics)
    if not all(isinstance(text, str) for text in found.texts):
        raise CheckpointError(f"{place / TEXTS} holds something that is not a text.")
    if not len(found.topic_of_N) == len(found.similarity_N) == num_texts or len(found.sums_TD) != num_topics:
        raise CheckpointError(
            f"{place}: {num_texts} texts and {num_topics} topics, but arrays for {len(found.topic_of_N)} and "
            f"{len(found.sums_TD)}; its files are not of one save."
        )
    if not ((found.topic_of_N >= NO_TOPIC) & (found.topic_of_N < num_topics)).all():
        raise CheckpointError(f"{place}: a text belongs to a topic that is not there.")
    if [topic.number for topic in found.topics] != list(range(num_topics)):
        raise CheckpointError(f"{place / FACTS}: topics should be numbered 0 to {num_topics - 1}.")
