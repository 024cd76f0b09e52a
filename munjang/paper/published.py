"""The paper's own figures (Reimers and Gurevych 2019, arXiv 1908.10084), times 100, by line and set.

Each was compared with the text of the paper on 2026-11-19: `similarity` is its table 1, `supervised` 2, `arguments` 3
(Spearman), `sections` 4 (mean vectors and SBERT), `transfer` 5, `pooling` and `concatenation` 6, sentences a second 7,
and the seconds of 10,000 sentences are of its section 8. English ones, with BERT-base. In the tables of another
language those of STSb stand beside ours, to compare the order.
"""

from munjang.evaluation.catalogue import SENTEVAL_SETS, STS_SETS

Figures = dict[str, dict[str, float]]


def _row(sets: tuple[str, ...], *values: float) -> dict[str, float]:
    return dict(zip(sets, values, strict=True))


FIGURES: dict[str, Figures] = {
    "similarity": {
        "static": _row(STS_SETS, 55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76),  # GloVe
        "untrained_mean": _row(STS_SETS, 38.78, 57.98, 57.98, 63.15, 61.06, 46.35, 58.40),
        "untrained_cls": _row(STS_SETS, 20.16, 30.01, 20.09, 36.88, 38.08, 16.50, 42.63),
        "nli": _row(STS_SETS, 70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91),
    },
    "supervised": {
        "sts": {"stsb-test": 84.67},
        "nli_sts": {"stsb-test": 85.35},
        "cross_sts": {"stsb-test": 84.30},
        "cross_nli_sts": {"stsb-test": 88.33},
    },
    "arguments": {
        "afs_bi_folds": {"afs": 74.13},
        "afs_cross_folds": {"afs": 74.84},
        "afs_bi_topics": {"afs": 50.65},
        "afs_cross_topics": {"afs": 57.23},
    },
    "sections": {"static": {"sections-test": 65.0}, "sections_triplet": {"sections-test": 80.42}},
    "transfer": {
        "static": _row(SENTEVAL_SETS, 77.25, 78.30, 91.17, 87.85, 80.18, 83.0, 72.87),  # GloVe
        "untrained_mean": _row(SENTEVAL_SETS, 78.66, 86.25, 94.37, 88.66, 84.40, 92.8, 69.45),
        "untrained_cls": _row(SENTEVAL_SETS, 78.68, 84.85, 94.21, 88.23, 84.13, 91.4, 71.13),
        "nli": _row(SENTEVAL_SETS, 83.64, 89.43, 94.39, 89.86, 88.96, 89.6, 76.00),
    },
    "pooling": {
        "nli": {"stsb-dev": 80.78},
        "nli_max": {"stsb-dev": 79.07},
        "nli_cls": {"stsb-dev": 79.80},
        "sts": {"stsb-dev": 87.44},
        "sts_max": {"stsb-dev": 69.92},
        "sts_cls": {"stsb-dev": 86.62},
    },
    "concatenation": {
        "concat_0": {"stsb-dev": 66.04},
        "concat_1": {"stsb-dev": 69.78},
        "concat_2": {"stsb-dev": 70.54},
        "concat_3": {"stsb-dev": 78.37},
        "concat_4": {"stsb-dev": 77.44},
        "nli": {"stsb-dev": 80.78},
        "concat_6": {"stsb-dev": 80.44},
    },
}
SENTENCES_PER_S = {"plain": (44.0, 1378.0), "smart": (83.0, 2042.0)}  # on a CPU, on a V100
PAIR_SECONDS = {"bi": 5.0, "cross": 65 * 3600.0}  # "about", for 10,000 sentences
EQUIVALENTS = {"korsts-test": "stsb-test", "korsts-dev": "stsb-dev"}


def figure(table: str, line: str, known_set: str) -> float | None:
    """Return the paper's figure, of the English set that a Korean one translates."""
    return FIGURES.get(table, {}).get(line, {}).get(EQUIVALENTS.get(known_set, known_set))
