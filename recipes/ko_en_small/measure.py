"""Measure ko-en-small on every reported set."""

import json
from pathlib import Path
from typing import Any

from munjang import BiEncoder, evaluate
from munjang.evaluation.kinds.corpus import Retrieval
from recipes.ko_en_small.data import crossed, file, read_table


def measure(model: Path, data: Path, out: Path, device: str | None, dtype: str | None = None) -> None:
    """Evaluate every reported set, as `munjang evaluate` does."""
    encoder = BiEncoder.load(model, device, dtype)
    found: dict[str, Any] = {}
    for name in ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sts12", "sts13", "sts14", "sick-dev"):
        ranges = {"score_range": (1.0, 5.0)} if name.startswith("sick") else {}
        texts = {"texts": ("sentence1", "sentence2")}
        found[name] = evaluate(encoder, file(data, f"sts/{name}"), kind="sts", **ranges, **texts)
    found["crossed-dev"] = evaluate(encoder, crossed(data, "dev"), kind="sts")
    for name in ("korquad", "cranfield"):
        found[name] = evaluate(encoder, data / "retrieval" / name, kind="retrieval")
    found["mixed-dev"] = evaluate(encoder, mixed(data), kind="retrieval")
    found["stackoverflow"] = evaluate(encoder, file(data, "clustering/stackoverflow"), kind="clustering", max_rows=5000)
    record = {name: {**report.to_json(), "score": report.score} for name, report in found.items()}
    out.write_text(
        json.dumps({"model": model.name, "dtype": dtype or "as loaded", "reports": record}, indent=1, default=str)
    )
    for name, report in found.items():
        print(f"{name:14} {report.main} {100 * report.score:.2f}", flush=True)


def mixed(data: Path, count: int = 500) -> Retrieval:
    """Let Korean sentences look for their English translations among Korean distractors, three for each.

    A model that first of all asks for the language finds Korean sentences about something else.
    """
    table = read_table(file(data, "sts/stsb-en-ko-dev"), ("sentence1_en", "sentence1_ko", "sentence2_ko"))
    english = dict(zip(table["sentence1_ko"], table["sentence1_en"], strict=True))
    asked = [text for text in english if text not in table["sentence2_ko"]][:count]
    distractors = [text for text in dict.fromkeys([*english, *table["sentence2_ko"]]) if text not in set(asked)]
    corpus = {f"en{place}": english[text] for place, text in enumerate(asked)}
    corpus |= {f"ko{place}": text for place, text in enumerate(distractors[: 3 * count])}
    queries = {str(place): text for place, text in enumerate(asked)}
    right = {place: {f"en{place}": 1.0} for place in queries}
    return Retrieval("Korean questions, English answers, Korean distractors", corpus, queries, right)
