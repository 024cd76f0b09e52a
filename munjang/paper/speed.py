"""Measure encoding with and without smart batching, and the search for the most similar pair of 10,000."""

from pathlib import Path
from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.engine.measure import processor, take_turns
from munjang.engine.padded import encode_padded
from munjang.nn.network import SentenceNetwork
from munjang.paper.config import PaperConfig
from munjang.paper.sets import Sets
from munjang.vectors.nearest import nearest

NUM_SENTENCES = 10_000
NUM_ROUNDS, NUM_PAIRS_SHARE = 3, 4  # a quarter as many pairs as texts are timed: each reads two


def measure_speed(model: Path, sets: Sets, config: PaperConfig) -> dict[str, Any]:
    """Time ways to batch the same sentences in turns, and a cross-encoder on pairs of them."""
    texts = _texts(sets, config)
    encoder = BiEncoder.load(model, config.device, "float32")
    actions = ways(encoder, texts)
    rates = {name: len(texts) / timing.median for name, timing in take_turns(actions, NUM_ROUNDS).items()}
    vectors = encoder.encode(texts)
    many = vectors[[row % len(vectors) for row in range(NUM_SENTENCES)]]
    device = None if encoder.device.type == "cpu" else encoder.device
    search = take_turns({"search": lambda: nearest(many, many, 2, device=device, progress=False)}, 1)["search"].median
    cross = CrossEncoder.create(model, 1, config.device, "float32")
    pairs = list(zip(texts, texts[::-1], strict=True))[: max(len(texts) // NUM_PAIRS_SHARE, 1)]
    pair_rate = len(pairs) / take_turns({"pairs": lambda: cross.predict(pairs)}, 1)["pairs"].median
    num_pairs = NUM_SENTENCES * (NUM_SENTENCES - 1) // 2
    return {
        "machine": processor(encoder.device),
        "dtype": "float32",
        "texts": len(texts),
        "tokens_per_text": round(float(encoder.tokenizer(texts).lengths.mean()), 1),
        "sentences_per_s": {name: round(rate, 1) for name, rate in rates.items()},
        "pairs_per_s": round(pair_rate, 1),
        "most_similar_of_10000_s": {
            "bi": round(NUM_SENTENCES / rates["packed"] + search, 1),
            "cross": round(num_pairs / pair_rate),
        },
        "note": "seconds of 10,000 sentences are computed from the rates; the search among 10,000 vectors is timed",
    }


def ways(encoder: BiEncoder, texts: list[str]) -> dict[str, Any]:
    """Return ways to encode: padded as texts come, padded by length (smart batching), and packed, which is ours."""
    network, executor = encoder.network, encoder._engine.executor
    found: dict[str, Any] = {}
    if isinstance(network, SentenceNetwork) and network.encoder.own is not None:
        for name, is_sorted in (("plain", False), ("smart", True)):
            found[name] = lambda is_sorted=is_sorted: encode_padded(
                network, executor, encoder.tokenizer, texts, is_sorted=is_sorted
            )
    return found | {"packed": lambda: encoder.encode(texts)}


def _texts(sets: Sets, config: PaperConfig) -> list[str]:
    """Return distinct sentences of NLI, or of whatever can be trained on; the paper's are those of STSb."""
    for name in ("nli", "sts"):
        keys = getattr(sets.language, name)
        rows = [sets.folder.examples(key) for key in keys if sets.folder.has(key)]
        texts = list(dict.fromkeys(text for part in rows for column in part.texts for text in column))
        if texts:
            return texts[: config.speed_texts]
    known = sets.folder.examples(sets.language.test)
    return list(dict.fromkeys([*known.texts[0], *known.texts[1]]))[: config.speed_texts]
