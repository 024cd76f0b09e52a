"""Measure models side by side on the sets of docs/models.md, in one run, with 95 % intervals.

    python -u -m recipes.models.scores DATA OUT.json MODEL [MODEL ...] [--sets korsts-test ...] [--dtype int8]

A set that OUT.json has for a model is not measured again, so that a stopped run resumes.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from munjang import BiEncoder, evaluate
from munjang.evaluation.kinds.corpus import Retrieval
from munjang.evaluation.report import Report
from recipes.models.sources import crossed, file, read_table

STS = ("korsts-test", "stsb-test", "stsb-dev", "korsts-dev", "klue-sts-dev", "sick-dev", "sts12", "sts13", "sts14")
Measure = Callable[[BiEncoder, Path], Report]


def _sts(name: str) -> Measure:
    scale = (1.0, 5.0) if name.startswith("sick") else (0.0, 5.0)
    texts = ("sentence1", "sentence2")
    return lambda model, data: evaluate(model, file(data, f"sts/{name}"), kind="sts", texts=texts, score_range=scale)


def _retrieval(name: str) -> Measure:
    return lambda model, data: evaluate(model, data / "retrieval" / name, kind="retrieval")


SETS: dict[str, Measure] = {
    **{name: _sts(name) for name in STS},
    "crossed-dev": lambda model, data: evaluate(model, crossed(data, "dev"), kind="sts"),
    "klue-nli-dev": lambda model, data: evaluate(model, entailed(data), kind="pairs"),
    "korquad": _retrieval("korquad"),
    "cranfield": _retrieval("cranfield"),
    "mixed-dev": lambda model, data: evaluate(model, mixed(data), kind="retrieval"),
    "stackoverflow": lambda model, data: evaluate(
        model, file(data, "clustering/stackoverflow"), kind="clustering", max_rows=5000
    ),
}


def entailed(data: Path) -> list[tuple[str, str, int]]:
    """Return premises with hypotheses that follow (1) or are contradicted (0), as MTEB takes KLUE-NLI."""
    table = read_table(file(data, "nli/klue-nli-dev"), ("premise", "hypothesis", "label"))
    rows = zip(table["premise"], table["hypothesis"], table["label"], strict=True)
    return [(first, second, int(label == "entailment")) for first, second, label in rows if label != "neutral"]


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


def measure(models: list[str], sets: list[str], data: Path, out: Path, dtype: str | None) -> dict[str, Any]:
    """Write the report of each model on each set, and say it in a line."""
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    for name in models:
        model = BiEncoder.load(name, dtype=dtype)
        key = f"{Path(name).name}, {dtype or 'float32'}"
        reports = found.setdefault(key, {})
        for each in sets:
            if each in reports:
                continue
            report = SETS[each](model, data)
            reports[each] = report.to_json()
            out.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
            print(f"{key:32} {each:14} {report.main} {100 * report.score:.2f}, {report.seconds:.0f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--dtype", choices=["float32", "int8"])
    options = parser.parse_args()
    measure(options.models, options.sets, options.data, options.out, options.dtype)


if __name__ == "__main__":
    main()
