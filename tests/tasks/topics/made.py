"""Texts of three topics with vectors that are made for them, and two that belong nowhere."""

import numpy as np

from munjang.tasks.topics.find import TopicConfig, TopicModel, find_topics

WORDS = {"cats": "cat kitten purr fur", "money": "bank stock share profit", "music": "guitar song concert band"}
SIZES = (30, 20, 12)


def made(num_outliers: int = 2) -> tuple[list[str], np.ndarray]:
    random = np.random.default_rng(1)
    texts: list[str] = []
    rows = []
    for axis, (words, size) in enumerate(zip(WORDS.values(), SIZES, strict=True)):
        for _ in range(size):
            texts.append("the " + " ".join(random.choice(words.split(), 3)))
            rows.append(np.eye(8)[axis] + random.normal(scale=0.05, size=8))
    for number in range(num_outliers):
        texts.append(f"odd thing number {number}")
        rows.append(np.eye(8)[5 + number] - np.eye(8)[:3].T @ [0.1, 0.4, 0.4])  # away from all, least from the first
    return texts, np.array(rows, np.float32)


def found(num_outliers: int = 0, **settings: object) -> TopicModel:
    texts, vectors = made(num_outliers)
    return find_topics(texts, config=TopicConfig(**settings), vectors=vectors)
