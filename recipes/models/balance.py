"""The end of stage 3: what does not answer a question scores alike in either language.

In lists of one language nothing wrong is in the other one, so the re-ranker learns little about that and leans: of
unrelated passages the best one was in the other language than the question's for most questions. Here it learns its own
logits again, but for passages that have nothing to do with the question: those and their translations get the mean of
both, so that language tells nothing.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from munjang import CrossEncoder, Dataset, TrainConfig
from munjang.data.examples import Examples
from recipes.models import across
from recipes.models.reranker import all_lists, fit, trains
from recipes.models.sources import is_korean, read_table

CONFIG = TrainConfig(
    batch_size=256,
    learning_rate=1e-4,
    warmup=0.1,
    schedule="cosine",
    max_length=448,
    dropout=0.0,  # its own logits are the target
    ema=0.99,
    quiet=True,
    log_every=100,
    batch_tokens=131_072,
)
NUM_LISTS = 700  # of each source
NUM_KEPT = 3  # passages of each list: the right one and two of its negatives
NUM_UNRELATED = 4  # passages in both languages for each question
NUM_HELD = 400  # units of each source, to measure on
Pair = tuple[str, str]


def balance(model: CrossEncoder, work: Path, config: TrainConfig = CONFIG) -> None:
    """Train a re-ranker until it prefers no language."""
    data = balanced(model, work, config.seed)
    trains(model)
    fit(model, [Dataset(data=data, objective="cross_mse", sampler="random")], replace(config, epochs=1.0))


def balanced(model: CrossEncoder, work: Path, seed: int) -> Examples:
    """Return questions with passages and the logits that are wanted: first those of lists, then unrelated ones."""
    random = np.random.default_rng(seed)
    passages = _both_languages(work, is_held=False)
    kept, unrelated = list[Pair](), list[Pair]()
    for each in all_lists(work):
        for row in random.permutation(len(each.query_of_N))[:NUM_LISTS].tolist():
            query = each.queries[each.query_of_N[row]]
            kept += [(query, each.passages[at]) for at in each.passages_NK[row, :NUM_KEPT].tolist()]
            for at in random.integers(len(passages), size=NUM_UNRELATED).tolist():
                unrelated += [(query, text) for text in passages[at]]
    logits_P = model.predict(kept + unrelated, activation="Identity", progress=False).astype(np.float64)
    means_P = logits_P[len(kept) :].reshape(-1, 2).mean(1).repeat(2)
    queries, texts = zip(*kept, *unrelated, strict=True)
    wanted_P = np.concatenate([logits_P[: len(kept)], means_P])
    return Examples("balanced", (list(queries), list(texts)), ("query", "passage"), scores=wanted_P)


def measure_lean(model: CrossEncoder, work: Path, num_questions: int = 40, num_passages: int = 10) -> dict[str, float]:
    """Return how often the best of unrelated passages in both languages is English, by the question's language."""
    random, passages = np.random.default_rng(7), _both_languages(work, is_held=True)
    found = {}
    for language, in_korean in (("Korean", True), ("English", False)):
        pairs = list[Pair]()
        for folder in sorted(each for each in (work / "dev").iterdir() if "-" not in each.name):
            queries = read_table(folder / "queries.tsv", ("text",))["text"]
            for query in [text for text in queries if is_korean(text) == in_korean][:num_questions]:
                rows = random.integers(len(passages), size=num_passages).tolist()
                pairs += [(query, text) for at in rows for text in passages[at]]
        logits = model.predict(pairs, activation="Identity", progress=False).reshape(-1, num_passages, 2)
        is_english = logits[:, :, 0].max(1) > logits[:, :, 1].max(1)
        found[f"{language} questions"] = float(len(logits))
        found[f"{language} questions: best is English, %"] = round(100 * float(is_english.mean()), 1)
        found[f"{language} questions: logit, English less Korean"] = round(
            float((logits[:, :, 0] - logits[:, :, 1]).mean()), 3
        )
    return found


def _both_languages(work: Path, is_held: bool) -> list[tuple[str, str]]:
    """Return passages in English and Korean, of all sources of units: some are held back, to measure on."""
    found = list[tuple[str, str]]()
    for path in sorted((work / "pairs").glob("across-*.tsv")):
        texts = across.read_units(path)[1]
        count = len(texts) // 2
        units = list(zip(texts[:count], texts[count:], strict=True))
        found += units[:NUM_HELD] if is_held else units[NUM_HELD:]
    return found
