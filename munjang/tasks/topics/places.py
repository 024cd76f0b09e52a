"""Place topics and texts on a map: similar topics near each other, a topic's typical texts in its middle.

N texts, T topics, D dimension.
"""

import numpy as np

from munjang.tasks.topics.model import NO_TOPIC, TopicModel
from munjang.types import Doubles, Floats, Ints
from munjang.vectors.principal import principal_components
from munjang.vectors.similarity import unit

NUM_ROUNDS = 300  # of moving topics to where their distances ask for
FILLED_AREA = 0.6  # of the map: discs need room between them
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))  # turned by so much, point after point fills a disc evenly


def place_topics(centres_TD: Floats, sizes_T: Ints) -> tuple[Doubles, Doubles]:
    """Place a disc for each topic: middle [T, 2] and radius [T]; areas are as sizes, discs don't overlap."""
    radii_T = np.sqrt(sizes_T / max(sizes_T.sum(), 1) * FILLED_AREA)
    if len(sizes_T) < 2:
        return np.zeros((len(sizes_T), 2)), radii_T
    wanted_TT = np.sqrt(np.maximum(2 - 2 * (centres_TD @ centres_TD.T).astype(np.float64), 0))
    places = _scaled(wanted_TT)
    places = places / max(np.abs(places).max(), 1e-9)
    for _ in range(NUM_ROUNDS):
        moves, has_overlap = _apart(places, radii_T)
        places = places + moves
        if not has_overlap:
            break
    return places, radii_T


def _scaled(wanted_TT: Doubles) -> Doubles:
    """Scale to two dimensions by SMACOF: each round lowers the squared error of all distances."""
    start = principal_components(wanted_TT.astype(np.float32), 2).astype(np.float64)
    places = np.pad(start, ((0, 0), (0, 2 - start.shape[1])))
    places += np.random.default_rng(0).normal(scale=1e-3, size=places.shape)  # equal topics must be able to part
    for _ in range(NUM_ROUNDS):
        now = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(wanted_TT, now, out=np.zeros_like(now), where=now > 1e-9)
        pull = -ratio
        np.fill_diagonal(pull, ratio.sum(1))
        places = pull @ places / len(places)
    return places


def _apart(places: Doubles, radii_T: Doubles) -> tuple[Doubles, bool]:
    """Return the moves that part overlapping discs, half of the overlap each."""
    between = places[:, None] - places[None]
    distance = np.linalg.norm(between, axis=2)
    np.fill_diagonal(distance, np.inf)
    overlap = np.maximum(1.1 * (radii_T[:, None] + radii_T[None]) - distance, 0)
    moves = (between / np.maximum(distance, 1e-6)[..., None] * overlap[..., None] / 2).sum(1)
    return moves, bool(overlap.max() > 1e-3)


def place_texts(found: TopicModel, places_T2: Doubles, radii_T: Doubles, vectors_ND: Floats | None = None) -> Doubles:
    """Place each text [N, 2]. With vectors, texts in the same direction from the middle are alike."""
    units_ND = None if vectors_ND is None else unit(vectors_ND)
    places = np.zeros((len(found.texts), 2))
    for topic, (middle, radius) in enumerate(zip(places_T2, radii_T, strict=True)):
        rows = np.flatnonzero(found.topic_of_N == topic)
        rows = rows[np.argsort(-found.similarity_N[rows], kind="stable")]
        turns = GOLDEN_ANGLE * np.arange(len(rows))
        if units_ND is not None and len(rows) > 2:
            flat = principal_components(units_ND[rows], 2)
            order = np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")
            turns[order] = 2 * np.pi * np.arange(len(rows)) / len(rows)
        reach = radius * np.sqrt((np.arange(len(rows)) + 0.5) / max(len(rows), 1))
        places[rows] = middle + reach[:, None] * np.stack([np.cos(turns), np.sin(turns)], 1)
    outside = np.flatnonzero(found.topic_of_N == NO_TOPIC)
    if len(outside):
        places[outside] = _between(found, places_T2, outside, units_ND)
    return places


def _between(found: TopicModel, places_T2: Doubles, rows: Ints, units_ND: Floats | None) -> Doubles:
    """Place texts of no topic between their nearest topics, or, without vectors, on a circle around all."""
    if units_ND is None or not found.topics:
        turns = GOLDEN_ANGLE * np.arange(len(rows))
        return 1.3 * (np.abs(places_T2).max(initial=0.5) + 0.2) * np.stack([np.cos(turns), np.sin(turns)], 1)
    scores_NT = units_ND[rows] @ found.centres.T
    weights_NT = np.exp(20 * (scores_NT - scores_NT.max(1, keepdims=True)))  # a cosine 0.05 lower weighs a third
    return (weights_NT / weights_NT.sum(1, keepdims=True)) @ places_T2
