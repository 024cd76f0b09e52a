"""Scores of the bundled models, from the record of exactly the weights that are shipped."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from docs.generate.part import Stale
from recipes.card import scores

RECORD = "benchmarks/results/2026-11-20-scores.json"
PROMPTS = "benchmarks/results/2026-11-16-ko-en-last.json"  # multilingual-e5-small with its prompts
WEIGHTS = "munjang/models/{}/munjang_int8.safetensors"
MODELS = {  # in the record: in the tables
    "ko-en-small, float32": "ko-en-small (37M)",
    "ko-en-small, int8": "ko-en-small in int8",
    "e5-small, int8": "multilingual-e5-small (118M)",
    "minilm-l6, int8": "all-MiniLM-L6-v2 (23M)",
    "mpnet-base, int8": "all-mpnet-base-v2 (109M)",
}
OURS = next(iter(MODELS))
LEVELLED = "benchmarks/results/2026-11-20-levelled.json"  # each model before and after --level
LEVELLED_SETS = {
    "stsb-dev": "STSb dev",
    "korsts-dev": "KorSTS dev",
    "sick-dev": "SICK-R dev",
    "crossed-dev": "crossed dev",
    "stackoverflow": "StackOverflow",
}
TITLES = {"ko-en-small": "`ko-en-small`", "e5-small": "multilingual-e5-small", "minilm-l6": "all-MiniLM-L6-v2"}
# Rows of docs/models.md: set, metric, title, the floor that we set before the training.
ROWS = (
    ("korsts-test", "spearman_cosine", "KorSTS test", "83"),
    ("klue-sts-dev", "spearman_cosine", "KLUE-STS dev (nothing was chosen on it)", ""),
    ("klue-nli-dev", "ap_cosine", "KLUE-NLI dev, entailed or contradicted: average precision", ""),
    ("stsb-test", "spearman_cosine", "STSb test", "86.5"),
    ("crossed-dev", "spearman_cosine", "STSb English-Korean crossed, dev", "79"),
    ("sick-dev", "spearman_cosine", "SICK-R dev (never trained on)", "77"),
    ("sts12", "spearman_cosine", "STS12", ""),
    ("sts13", "spearman_cosine", "STS13", ""),
    ("sts14", "spearman_cosine", "STS14", ""),
    ("korquad", "ndcg@10", "KorQuAD, 964 passages, 5,774 questions: nDCG@10", ""),
    ("korquad", "recall@10", "KorQuAD, recall@10", "above e5-small"),
    ("cranfield", "ndcg@10", "Cranfield nDCG@10", "36.18"),
    ("stackoverflow", "v_measure", "StackOverflow, 5,000 titles, V-measure", "65.78"),
    (
        "mixed-dev",
        "recall@10",
        "Korean sentences, English translations, 3 Korean distractors for each: recall@10",
        "",
    ),
)
UNRELATED = "cosine of unrelated sentences: Korean / English / one of each"
RERANKED = {
    "korquad": "KorQuAD",
    "korean-pages": "long Korean pages",
    "cranfield": "Cranfield",
    "cacm": "CACM",
    "pubmedqa": "PubMedQA",
    "pubmedqa-ko-en": "PubMedQA, 60 questions in Korean",
}
SHARES = {  # weight of the re-ranker in the record: in the tables
    "0.0": "`ko-en-small` alone",
    "0.5": "**both by half**",
    "1.0": "re-ranker alone",
}


def record(root: Path) -> dict[str, Any]:
    """Read the record; weights other than those that were measured are an error."""
    found: dict[str, Any] = json.loads((root / RECORD).read_text(encoding="utf-8"))
    for model, measured in found["weights"].items():
        path = root / WEIGHTS.format(model)
        if digest(path, path.stat().st_mtime_ns) != measured:
            raise Stale(
                f"{RECORD} was measured with other weights than {path.relative_to(root)}; measure these "
                "(python -m recipes.models.scores), which records the sha256 of the files"
            )
    return found


@cache
def digest(path: Path, modified_ns: int) -> str:
    """Return the sha256 of a file, computed once as long as it doesn't change."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows_of(lines: list[list[str]]) -> str:
    """Return a Markdown table; the first line is its head."""
    head, *rest = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rest])


def encoder_table(root: Path, document: str) -> str:
    """Return the table of docs/models.md: models beside each other, in int8 with 95 % intervals."""
    models = record(root)["models"]
    lines = [["set", *(title.replace("ko-en-small", "`ko-en-small`") for title in MODELS.values()), "our floor"]]
    for name, metric, title, floor in ROWS:
        lines.append([title, *(_with_interval(models[model].get(name), metric) for model in MODELS), floor])
    lines.append([UNRELATED, *(_unrelated(models[model]) for model in MODELS), ""])
    return rows_of(lines)


def levelled_table(root: Path, document: str) -> str:
    """Return what levelling does to scores and to cosines of unrelated sentences."""
    models = json.loads((root / LEVELLED).read_text(encoding="utf-8"))["models"]
    lines = [["", *LEVELLED_SETS.values(), UNRELATED]]
    for key, found in models.items():
        name, _, dtype = key.partition(", ")
        before = models.get(f"{name.removesuffix('-level')}, {dtype}")
        if not name.endswith("-level") or before is None:
            continue
        for title, row in ((TITLES[name.removesuffix("-level")], before), ("levelled", found)):
            values = [f"{row[each][row[each]['main']]:.2f}" for each in LEVELLED_SETS]
            lines.append([title, *values, _unrelated(row)])
    return rows_of(lines)


def _unrelated(found: dict[str, Any]) -> str:
    """Return a model's mean cosines of unrelated sentences."""
    return " / ".join(f"{mean:.2f}" for mean in found["unrelated"].values())


def _with_interval(found: dict[str, Any] | None, metric: str) -> str:
    """Return a score, and in brackets its interval if it is of the set's main metric and in int8."""
    if found is None:
        return ""
    low, high = found["interval"] if found["main"] == metric and "interval" in found else (None, None)
    return f"{found[metric]:.2f}" if low is None else f"{found[metric]:.2f} ({low:.1f} to {high:.1f})"


def encoder_card(root: Path, document: str) -> str:
    """Return the table of the encoder's card: the main metric of every set."""
    models = record(root)["models"]
    results = []
    for name, title in MODELS.items():
        measured = {each: row for each, row in models[name].items() if each != "unrelated"}
        found = {each: {"main": row["main"], "score": row[row["main"]] / 100} for each, row in measured.items()}
        results.append({"model": title, "reports": found})
    return scores("ko-en-small", results)


def reranker_card(root: Path, document: str) -> str:
    """Return the table of the re-ranker: each set with both alone and together, with 95 % intervals of the gain."""
    lines = [["set", "metric", *SHARES.values()]]
    for name, title in RERANKED.items():
        for metric in ("ndcg@10", "mrr@10"):
            by_weight = record(root)["sets"][name][metric]
            cells = [_with_gain(by_weight[weight]) for weight in SHARES]
            lines.append([title, metric, *cells])
    return rows_of(lines)


def _with_gain(found: list[float]) -> str:
    """Return a value of the record, and in brackets its gain over the encoder alone with the interval."""
    value, _, _, gain, low, high = found
    return f"{value:.2f}" if gain == low == high == 0 else f"{value:.2f} ({gain:+.2f}; {low:+.2f} to {high:+.2f})"


def components_table(root: Path, document: str) -> str:
    """Return the scores of shorter and smaller vectors."""
    found = record(root)["components"]
    heads = {"int8": "384 in int8", "one bit": "384 in one bit each"}
    lines = [["", *(heads.get(key, key) for key in found["stsb-test"])]]
    for name, title in (("stsb-test", "STSb test"), ("korsts-test", "KorSTS test")):
        lines.append([title, *(f"{value:.2f}" for value in found[name].values())])
    return rows_of(lines)


def headline(root: Path) -> tuple[str, ...]:
    """Return KorSTS and STSb test of ours, then of multilingual-e5-small with its prompts."""
    ours = record(root)["models"][OURS]
    theirs = json.loads((root / PROMPTS).read_text(encoding="utf-8"))["e5-small with its prompts, float32"]
    sets = ("korsts-test", "stsb-test")
    values = [*(ours[name]["spearman_cosine"] for name in sets), *(theirs[name] for name in sets)]
    return tuple(f"{value:.2f}" for value in values)
