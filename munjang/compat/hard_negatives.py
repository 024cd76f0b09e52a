"""mine_hard_negatives of sentence-transformers: a dataset of anchors and positives gains negatives.

The same rules, columns and printed counts. `munjang.training.negatives` has fewer arguments and other rules.
Q different queries, K candidates of each, best first, P positives in all, N negatives of each query.
"""

import hashlib
import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat.negative_rows import LAYOUTS, OUT, Pairs, report, report_missing
from munjang.errors import InputError, MissingExtra

logger = logging.getLogger(__name__)
MAX_GPU_RESULTS = 2048  # of one faiss search on a GPU


def mine_hard_negatives(
    dataset: Any,
    model: Any,
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    corpus: list[str] | None = None,
    cross_encoder: Any = None,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    num_negatives: int = 3,
    sampling_strategy: str = "top",
    query_prompt_name: str | None = None,
    query_prompt: str | None = None,
    corpus_prompt_name: str | None = None,
    corpus_prompt: str | None = None,
    include_positives: bool = False,
    output_format: str = "triplet",
    output_scores: bool = False,
    batch_size: int = 32,
    faiss_batch_size: int = 16384,
    use_faiss: bool = False,
    use_multi_process: list[str] | bool = False,
    verbose: bool = True,
    cache_folder: str | None = None,
    as_triplets: bool | None = None,
    margin: float | None = None,
) -> Any:
    """Return a dataset with negatives from a corpus, or from the other positives: near the anchor, and no answer.

    range_min and range_max bound the ranks of candidates; margins compare with the lowest score among the positives
    of the anchor.
    """
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtra("datasets", "compat-train", "mine_hard_negatives") from error
    if len(dataset) == 0:
        raise InputError("The dataset is empty. Please provide a non-empty dataset.")
    if faiss_batch_size <= 0:
        raise InputError(f"faiss_batch_size must be a positive integer, got {faiss_batch_size}.")
    chosen = (range_min, range_max, max_score, margin, sampling_strategy)
    if include_positives and chosen != (0, None, None, None, "top"):
        logger.warning("With include_positives=True, ranges, max_score, margin or sampling may drop positives.")
    layout, output_scores = _layout(output_format, output_scores, as_triplets, include_positives)
    if margin is not None:
        absolute_margin = margin
        logger.warning("margin is deprecated: use absolute_margin=%s.", margin)
    names = dataset.column_names
    anchor_name = anchor_column_name if anchor_column_name in names else names[0]
    positive_name = positive_column_name if positive_column_name in names else names[1]
    pairs = Pairs(list(dataset[anchor_name]), list(dataset[positive_name]), corpus)
    is_filtered = not (absolute_margin is None and relative_margin is None and max_score is None)
    window = (range_min, range_max, num_negatives)
    range_max = _range_max(window, pairs.most, is_filtered, use_faiss, verbose)
    if verbose and len(pairs.queries) != len(dataset):
        print(f"Found {len(pairs.queries)} unique queries out of {len(dataset)} total queries.")
    if pairs.most > 1:
        print(f"Found an average of {len(dataset) / len(pairs.queries):.3f} positives per query.")

    sides = ("query", query_prompt, query_prompt_name), ("corpus", corpus_prompt, corpus_prompt_name)
    cache = None if cache_folder is None else Path(cache_folder)
    encode = _Encoder(model, cache, batch_size, use_multi_process, verbose)
    corpus_vectors, query_vectors = encode(pairs.corpus, *sides[1]), encode(pairs.queries, *sides[0])
    search = _faiss if use_faiss else _exact
    scores_QK, places_QK = search(model, query_vectors, corpus_vectors, range_max + pairs.most, faiss_batch_size)
    rows = [query for query, places in enumerate(pairs.positives) for _ in places]
    answers = [place for places in pairs.positives for place in places]
    positive_P = model.similarity_pairwise(query_vectors[rows], corpus_vectors[answers]).to(scores_QK.device)
    if cross_encoder is not None and is_filtered:
        predict = _scorer(cross_encoder, batch_size, use_multi_process, scores_QK.device)
        scores_QK, positive_P = _scored_again(predict, pairs, places_QK, list(zip(rows, answers, strict=True)))
    scores_QK[places_QK == -1] = OUT
    if not include_positives:
        for query, places in enumerate(pairs.positives):
            scores_QK[query, torch.isin(places_QK[query], torch.tensor(places, device=places_QK.device))] = OUT

    per_query = positive_P.split([len(places) for places in pairs.positives])
    lowest_Q1 = torch.stack([scores.min() for scores in per_query])[:, None]
    limits = {
        "absolute_margin": absolute_margin,
        "relative_margin": relative_margin,
        "max_score": max_score,
        "min_score": min_score,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    skipped = _leave_out(scores_QK, lowest_Q1, given)
    found = _pick(scores_QK, places_QK, (range_min, range_max), num_negatives, sampling_strategy)
    if verbose:
        print("Negative candidates mined, preparing dataset...")
    made = LAYOUTS[layout](pairs, positive_P.tolist(), *found, output_scores)
    columns = {name: made[place] for place, name in enumerate((anchor_name, positive_name))}
    result = Dataset.from_dict(columns | {name: values for name, values in made.items() if isinstance(name, str)})
    if verbose:
        report(positive_P, found[0], per_query, skipped, given)
        report_missing(layout, pairs, num_negatives, len(result), len(dataset), range_min, given)
    return result


def _layout(
    output_format: str, output_scores: bool, as_triplets: bool | None, include_positives: bool
) -> tuple[str, bool]:
    """Return the layout of the rows and whether it has scores, from newer and older arguments."""
    if as_triplets is not None:
        output_format = "triplet" if as_triplets else "n-tuple"
        logger.warning("as_triplets is deprecated: use output_format=%r.", output_format)
    if include_positives:
        output_format = "n-tuple"  # keeps the order
    if output_format == "n-tuple-scores":
        logger.warning('output_format="n-tuple-scores" is deprecated: use "n-tuple" with output_scores=True.')
        output_format, output_scores = "n-tuple", True
    if output_format not in LAYOUTS:
        raise InputError(f"Invalid output_format: {output_format}. Must be one of {', '.join(LAYOUTS)}.")
    return output_format, output_scores


def _scored_again(
    predict: Callable[[list[Any]], Tensor], pairs: Pairs, places_QK: Tensor, positives: list[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """Return a cross-encoder's scores of the candidates and of the positives."""
    candidates = [[(q, pairs.corpus[k]) for k in ks] for q, ks in zip(pairs.queries, places_QK.tolist(), strict=True)]
    scores_QK = torch.stack([predict(texts) for texts in candidates])
    return scores_QK, predict([(pairs.queries[q], pairs.corpus[k]) for q, k in positives])


def _leave_out(scores_QK: Tensor, lowest_Q1: Tensor, limits: dict[str, float]) -> dict[str, tuple[int, int]]:
    """Mark candidates beyond the limits as OUT, and return how many of how many each limit took."""
    rules: dict[str, Callable[[float], Tensor]] = {
        "absolute_margin": lambda margin: scores_QK + margin > lowest_Q1,
        "relative_margin": lambda part: scores_QK > lowest_Q1 - lowest_Q1.abs() * part,
        "max_score": lambda most: scores_QK > most,
        "min_score": lambda least: scores_QK < least,
    }
    skipped = {}
    for name, value in limits.items():
        is_out_QK = rules[name](value)
        scores_QK[is_out_QK] = OUT
        skipped[name] = (int(is_out_QK.sum()), is_out_QK.numel())
    return skipped


def _range_max(
    window: tuple[int, int | None, int], most: int, is_filtered: bool, use_faiss: bool, verbose: bool
) -> int:
    """Return the last rank that is searched; raise an error if that many negatives can't come from there."""
    range_min, range_max, num_negatives = window
    note = ""
    if num_negatives < 1:
        raise InputError(f"num_negatives must be at least 1, got num_negatives={num_negatives}.")
    if range_max is None:
        range_max = range_min + num_negatives * 10 + most if is_filtered else range_min + num_negatives + most
        if use_faiss and range_max + most > MAX_GPU_RESULTS and getattr(_import_faiss(), "get_num_gpus", int)() > 0:
            range_max = MAX_GPU_RESULTS - most
            note = (
                f" Note that range_max was capped to {range_max} because FAISS on GPU can only retrieve up to "
                f"{MAX_GPU_RESULTS} documents per query; use_faiss=False lifts that."
            )
        if verbose:
            print(f"Setting range_max to {range_max} based on the provided parameters.{note}")
    if range_min < 0:
        raise InputError(f"range_min must be non-negative, got range_min={range_min}.")
    if range_min >= range_max:
        raise InputError(
            f"range_min must be smaller than range_max, got range_min={range_min} and range_max={range_max}.{note}"
        )
    if num_negatives > range_max - range_min:
        raise InputError(
            f"Cannot mine {num_negatives} negatives per query: only {range_max - range_min} candidates remain after "
            f"skipping the first range_min={range_min} of range_max={range_max}.{note}"
        )
    return range_max


class _Encoder:
    """Encodes queries and texts, in processes if asked for; keeps vectors in files of a folder."""

    def __init__(self, model: Any, cache: Path | None, batch_size: int, processes: Any, verbose: bool) -> None:
        self.model, self.cache, self.verbose = model, cache, verbose
        self.batch_size, self.processes = batch_size, processes

    def __call__(self, texts: list[str], side: str, prompt: str | None, prompt_name: str | None) -> Any:
        path = None
        if self.cache is not None:
            self.cache.mkdir(parents=True, exist_ok=True)
            parts = (self.model.model_card_data.base_model or "", prompt, prompt_name, texts)
            digest = hashlib.sha256(repr(parts).encode(), usedforsecurity=False).hexdigest()
            path = self.cache / f"{side}_embeddings_{digest}.npy"
            if path.is_file():
                vectors = np.load(path)
                if self.verbose:
                    print(f"[Cache] Loaded {side} embeddings from {path} (shape={vectors.shape})")
                return vectors
        encode = self.model.encode_query if side == "query" else self.model.encode_document
        with _Pool(self.model, self.processes) as pool:
            vectors = encode(
                texts,
                pool=pool,
                batch_size=self.batch_size,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=self.verbose,
                prompt_name=prompt_name,
                prompt=prompt,
            )
        if path is not None:
            partial = path.with_suffix(f".{os.getpid()}.npy")  # another process may do the same
            np.save(partial, vectors)
            partial.replace(path)
            if self.verbose:
                print(f"[Cache] Saved {side} embeddings to {path}")
        return vectors


class _Pool:
    """A pool of processes of a model inside a block; none if `processes` is False."""

    def __init__(self, model: Any, processes: list[str] | bool) -> None:
        self.model, self.processes, self.pool = model, processes, None

    def __enter__(self) -> Any:
        if self.processes:
            devices = None if isinstance(self.processes, bool) else self.processes
            self.pool = self.model.start_multi_process_pool(target_devices=devices)
        return self.pool

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.model.stop_multi_process_pool(self.pool)


def _scorer(cross_encoder: Any, batch_size: int, processes: Any, device: Any) -> Callable[[list[Any]], Tensor]:
    def predict(texts: list[Any]) -> Tensor:
        with _Pool(cross_encoder, processes) as pool:
            options = {"batch_size": batch_size, "convert_to_tensor": True, "pool": pool}
            scores: Tensor = cross_encoder.predict(texts, **options).to(device)
        return scores

    return predict


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("use_faiss=True needs faiss: pip install faiss-cpu") from error
    return faiss


def _exact(model: Any, queries: Any, corpus: Any, num: int, batch_rows: int) -> tuple[Tensor, Tensor]:
    """Return the scores and places of the nearest; -1 where there are fewer texts than asked for."""
    texts = torch.as_tensor(corpus)
    blocks = [
        model.similarity(queries[start : start + batch_rows], texts).to(model.device).topk(min(num, len(texts)), dim=1)
        for start in range(0, len(queries), batch_rows)
    ]
    scores, places = torch.cat([block.values for block in blocks]), torch.cat([block.indices for block in blocks])
    missing = (0, num - scores.shape[1])
    return torch.nn.functional.pad(scores, missing, value=OUT), torch.nn.functional.pad(places, missing, value=-1)


def _faiss(model: Any, queries: Any, corpus: Any, num: int, batch_rows: int) -> tuple[Tensor, Tensor]:
    """Return the same, found by faiss."""
    faiss = _import_faiss()
    index = faiss.IndexFlatIP(corpus.shape[1])
    if getattr(faiss, "GpuMultipleClonerOptions", None) is not None and faiss.get_num_gpus() > 0:
        options = faiss.GpuMultipleClonerOptions()
        options.shard = options.useFloat16 = True
        index = faiss.index_cpu_to_all_gpus(index, co=options)
    index.add(corpus)
    blocks = [index.search(queries[start : start + batch_rows], k=num) for start in range(0, len(queries), batch_rows)]
    scores = torch.cat([torch.from_numpy(block[0]) for block in blocks])
    places = torch.cat([torch.from_numpy(block[1]) for block in blocks])
    return scores.to(model.device), places.to(model.device)


def _pick(
    scores_QK: Tensor, places_QK: Tensor, ranks: tuple[int, int], num: int, strategy: str
) -> tuple[list[list[float]], list[list[int]]]:
    """Return scores and places of the negatives of each query, best first; OUT where there is none."""
    first, last = ranks
    best_QK, order_QK = scores_QK.topk(last, dim=1)
    best_QK, places_QK = best_QK[:, first:], places_QK.gather(1, order_QK)[:, first:]
    if strategy == "random":
        num_left = (best_QK != OUT).sum(1).clamp(min=num).tolist()
        chosen = torch.tensor([sorted(random.sample(range(left), k=num)) for left in num_left]).to(best_QK.device)
        best_QK, places_QK = best_QK.gather(1, chosen), places_QK.gather(1, chosen)
    return best_QK[:, :num].tolist(), places_QK[:, :num].tolist()
