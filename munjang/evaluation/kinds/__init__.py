"""Kinds of evaluation, one file each: read the data, measure a model on it."""

from munjang.evaluation.kinds import (
    classification,
    clustering,
    nli,
    pairs,
    paraphrase_mining,
    reranking,
    retrieval,
    sts,
    translation,
    triplets,
)
from munjang.evaluation.kinds.base import Kind

KINDS: dict[str, Kind] = {
    "sts": sts.KIND,
    "nli": nli.KIND,
    "triplets": triplets.KIND,
    "pairs": pairs.KIND,
    "retrieval": retrieval.KIND,
    "reranking": reranking.KIND,
    "clustering": clustering.KIND,
    "classification": classification.KIND,
    "paraphrase_mining": paraphrase_mining.KIND,
    "translation": translation.KIND,
}
