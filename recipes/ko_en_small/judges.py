"""Korean pairs that nobody has scored and that have no English side: who scores them, and how well.

Cross-encoders from a plain Korean encoder reach 87 on KorSTS dev (Spearman * 100), the encoder of the first rounds 86;
they have nothing in common but the training data, and together they are better than either. Their scores teach the last
round. The tutor does the same for English: all-mpnet-base-v2, trained on people's scores.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig, evaluate, train
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.writing import columns_of, write_table
from munjang.evaluation.metrics.correlation import spearman
from munjang.index.rerank import standard
from munjang.types import Doubles
from recipes.ko_en_small.both import cosines
from recipes.ko_en_small.data import alone_of, documented, everyday, file, headlines, joined, reported, scored
from recipes.ko_en_small.silver import Finder, near

TUTOR = TrainConfig(
    max_steps=300,
    accumulate=2,
    mixing="round_robin",
    together=True,
    learning_rate=2e-5,
    warmup=0.1,
    max_length=96,
    save_every=100_000,
    seed=7,
)
NLI = TrainConfig(batch_size=32, head_rate=1e-3, quiet=True)
STS = TrainConfig(epochs=4, batch_size=32, learning_rate=5e-5, quiet=True)
JUDGED = 0.5  # weight of the cross-encoders in a score
RANKS = (1, 2, 4, 8)
MAX_REVIEWS, MAX_DOCS = 12_000, 12_000


def judge(model: Path, data: Path, out: Path, seed: int) -> None:
    """Train a Korean cross-encoder on NLI, then its encoder with a new head on STS."""
    avoid = [scored(data, f"sts/korsts-{part}", part) for part in ("dev", "test")]
    nli = read_examples(file(data, "nli/klue-nli-train"), target="labels")
    sts = [drop_overlap(scored(data, f"sts/{name}-train", name), avoid) for name in ("korsts", "klue-sts")]
    cross = _cross(model, 3, drop_overlap(nli, avoid), "cross_entropy", replace(NLI, seed=seed))
    with TemporaryDirectory() as folder:
        cross.save(folder)
        cross = _cross(Path(folder), 1, joined("STS", sts), "cross_bce", replace(STS, seed=seed))
    cross.save(out)
    dev = evaluate(cross, file(data, "sts/korsts-dev"), kind="sts")
    print(f"judge {seed}: KorSTS dev {100 * dev.score:.2f}", flush=True)


def _cross(model: Path, num_labels: int, data: Examples, objective: str, config: TrainConfig) -> CrossEncoder:
    torch.manual_seed(config.seed)  # of the head
    cross = CrossEncoder.create(model, num_labels, dtype="float32")
    train(cross, data, objective, config)
    return cross


def tutor(model: Path, data: Path, out: Path) -> None:
    """Train the English teacher on people's scores."""
    avoid = reported(data)
    pairs = drop_overlap(scored(data, "sts/stsb-train", "STSb"), avoid)
    triplets = drop_overlap(read_examples(file(data, "triplets/nli-train"), num_texts=(3, 3)), avoid)
    encoder = BiEncoder.load(model, dtype="float32")
    sets = [
        Dataset(data=pairs, objective="cosent", batch_size=64),
        Dataset(data=triplets, objective="in_batch", batch_size=64),
    ]
    train(encoder, sets, config=replace(TUTOR, output=str(out)))
    dev = evaluate(encoder, file(data, "sts/stsb-dev"), kind="sts")
    print(f"tutor: STSb dev {100 * dev.score:.2f}", flush=True)


def korean_silver(own: Path, *paths: Path) -> None:
    """Pairs of Korean sentences with the scores of all judges and the encoder, as a table."""
    *judges, data, out = paths
    encoder, crosses = BiEncoder.load(own), [CrossEncoder.load(path) for path in judges]
    dev = scored(data, "sts/korsts-dev", "KorSTS dev")
    assert dev.scores is not None
    for name, scores in together(encoder, crosses, dev).items():
        print(f"KorSTS dev, {name}: {100 * spearman(scores, dev.scores):.2f}", flush=True)
    parts = [pairs_of(encoder, texts, place) for place, texts in enumerate(korean_texts(data))]
    table = joined("Korean silver", [*parts, entailed_korean(data)])
    table = drop_overlap(table, reported(data))
    table = replace(table, scores=together(encoder, crosses, table)["together"])
    write_table(out, columns_of(table))
    print(f"{len(table):,} Korean pairs", flush=True)


def together(encoder: BiEncoder, crosses: list[CrossEncoder], pairs: Examples) -> dict[str, Doubles]:
    """Return what each kind of judge says of the pairs, and all of them, in standard deviations from the mean."""
    asked = list(zip(*pairs.texts, strict=True))
    judged = np.mean([cross.predict(asked, activation="Sigmoid", progress=True) for cross in crosses], axis=0).astype(
        np.float64
    )
    own = cosines(encoder, pairs)
    both = JUDGED * standard(judged) + (1 - JUDGED) * standard(own)
    return {"cross-encoders": judged, "encoder": own, "together": both}


def korean_texts(data: Path) -> list[list[str]]:
    """Sentences by kind; neighbours are looked for within a kind."""
    sts = [scored(data, f"sts/{name}-train", name) for name in ("korsts", "klue-sts")]
    nli = read_examples(file(data, "nli/klue-nli-train"), texts=("premise", "hypothesis"))
    questions = read_examples(file(data, "paraphrase/korean-questions"), texts=("question1", "question2"))
    _, general = everyday(data)
    _, docs = documented(data, MAX_DOCS, np.random.default_rng(4))
    kinds = [
        [*sts[0].texts[0], *sts[0].texts[1], *general],
        [*sts[1].texts[0], *sts[1].texts[1]],
        [*nli.texts[0], *nli.texts[1]],
        [*questions.texts[0], *questions.texts[1]],
        [text for text in alone_of(data, "ko-reviews", 60_000).texts[0] if len(text) > 20][:MAX_REVIEWS],
        docs,
        headlines(data),
    ]
    return [list(dict.fromkeys(texts)) for texts in kinds if texts]


def pairs_of(finder: Finder, texts: list[str], seed: int) -> Examples:
    """Each sentence with some of its neighbours and with one at random."""
    found = near(finder, texts, None, seed=seed, ranks=RANKS)
    columns = tuple([found.english[row] for row in rows.tolist()] for rows in (found.first, found.second))
    return Examples("neighbours", columns, ("sentence1", "sentence2"))


def entailed_korean(data: Path) -> Examples:
    """Premises with what follows from them, contradicts them or neither."""
    nli = read_examples(file(data, "nli/klue-nli-train"), texts=("premise", "hypothesis"))
    return Examples("NLI", nli.texts, ("sentence1", "sentence2"))


def read_korean_silver(path: Path) -> Examples:
    """The table of `korean_silver`; only the order of its scores matters."""
    return read_examples(path, texts=("sentence1", "sentence2"), target="scores", score_range=(-10.0, 10.0))
