"""Measure the bundled models for the tables of docs/models.md, in one run: encoders side by side, and the re-ranker.

    python -u -m recipes.models.scores DATA OUT.json MODEL [MODEL ...] [--reranker ko-en-reranker] [--dtype int8]

OUT.json is the record that `make docs` makes the tables from: metrics with 95 % intervals and cosines of unrelated
sentences, the first model's shorter and smaller vectors, and what re-ranking its best texts gains. What OUT.json
has already is not measured again, so that a stopped run resumes, unless the weights are others.
"""

import argparse
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from munjang import BiEncoder, CrossEncoder, evaluate
from munjang.checkpoint.bundled import BUNDLED, FOLDER
from munjang.checkpoint.compact import FILE_STEM
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.correlation import spearman
from munjang.evaluation.report import Report
from munjang.types import Floats
from recipes.models.measure import WEIGHTS, measure_reranking, summary
from recipes.models.sources import crossed, file, read_table, scored
from recipes.models.translated import translate

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
    """Write the main metrics of each model on each set, and say them in a line."""
    record = begin(out)
    for name in models:
        model = BiEncoder.load(name, dtype=dtype)
        key = f"{Path(name).name}, {str(model.dtype).removeprefix('torch.')}"
        reports = record["models"].setdefault(key, {})
        for each in sets:
            if each in reports:
                continue
            report = SETS[each](model, data)
            reports[each] = _points(report)
            _write(record, out, model)
            print(f"{key:32} {each:14} {report.main} {100 * report.score:.2f}, {report.seconds:.0f} s", flush=True)
        if "unrelated" not in reports:
            reports["unrelated"] = unrelated(model, data)
            _write(record, out, model)
            print(f"{key:32} unrelated      {reports['unrelated']}", flush=True)
    return record


def measure_components(encoder: BiEncoder, data: Path, out: Path) -> None:
    """Write the scores of shorter and smaller vectors."""
    record = begin(out)
    if "components" in record:
        return
    record["components"] = {name: components(encoder, data, name) for name in ("stsb-test", "korsts-test")}
    print(record["components"], flush=True)
    _write(record, out, encoder)


def measure_reranked(scorer: CrossEncoder, encoder: BiEncoder, data: Path, work: Path, out: Path) -> None:
    """Write what the re-ranker gains over the encoder's best texts on the sets that nothing was chosen on."""
    record = begin(out)
    for name in (*RERANKED, *ASKED_ACROSS):
        folder = data / "retrieval" / ASKED_ACROSS.get(name, name)
        if name in record["sets"] or not folder.is_dir():
            continue
        if name in ASKED_ACROSS:
            translate(folder, name, folder := work / name)
        record["sets"][name] = found = summary(measure_reranking(scorer, encoder, read_retrieval(folder)))
        _write(record, out, encoder)
        line = "  ".join(f"{weight}: {found['ndcg@10'][str(weight)][0]:.2f}" for weight in WEIGHTS)
        print(f"{name:16} {line}", flush=True)


RERANKED = ("korquad", "korean-pages", "cranfield", "cacm", "pubmedqa")
ASKED_ACROSS = {"pubmedqa-ko-en": "pubmedqa"}  # questions translated by hand: of which set


def components(model: BiEncoder, data: Path, name: str) -> dict[str, float]:
    """Return Spearman x 100 by the number of components kept, in int8, and in one bit each."""
    examples = scored(data, f"sts/{name}", name)
    assert examples.scores is not None
    sides = [list(column) for column in examples.texts]
    whole, bytes_, bits = (
        [model.encode(texts, precision=precision, progress=False) for texts in sides]
        for precision in ("float32", "int8", "ubinary")
    )
    vectors: dict[str, list[Floats]] = {
        str(size): [side[:, :size] for side in whole] for size in (384, 256, 128, 64) if size <= whole[0].shape[1]
    }
    vectors["int8"] = [side.astype(np.float32) for side in bytes_]
    vectors["one bit"] = [2 * np.unpackbits(side, axis=1).astype(np.float32) - 1 for side in bits]
    return {
        key: round(100 * spearman(_cosines(first, second), np.asarray(examples.scores)), 2)
        for key, (first, second) in vectors.items()
    }


def unrelated(model: BiEncoder, data: Path) -> dict[str, float]:
    """Return the mean cosine of different sentences of STSb dev: Korean, English, and one of each."""
    table = read_table(file(data, "sts/stsb-en-ko-dev"), ("sentence1_en", "sentence1_ko"))
    rows = dict(zip(table["sentence1_ko"], table["sentence1_en"], strict=True))  # each once, with its translation
    korean, english = (model.encode(list(side), normalize=True, progress=False) for side in (rows, rows.values()))
    different = ~np.eye(len(rows), dtype=bool)
    pairs = {"Korean": (korean, korean), "English": (english, english), "across": (korean, english)}
    return {name: round(float((one @ other.T)[different].mean()), 3) for name, (one, other) in pairs.items()}


def _cosines(first_BD: Floats, second_BD: Floats) -> Floats:
    lengths_B = np.linalg.norm(first_BD, axis=1) * np.linalg.norm(second_BD, axis=1)
    found: Floats = (first_BD * second_BD).sum(1) / np.maximum(lengths_B, 1e-12)
    return found


def begin(out: Path) -> dict[str, Any]:
    """Read what was measured before; what the bundled models of other weights reached is dropped."""
    weights = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name in BUNDLED
        if (path := FOLDER / name / f"{FILE_STEM}.safetensors").exists()
    }
    record: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    kept = {key: value for key, value in record.get("models", {}).items() if key.split(",")[0] not in BUNDLED}
    if record.get("weights") != weights:
        record = {"weights": weights, "machines": {}, "models": kept, "sets": {}}
    return record


def _write(record: dict[str, Any], out: Path, model: BiEncoder) -> None:
    record["machines"][str(model.device)] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}Z"
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _points(report: Report) -> dict[str, Any]:
    """Return the metrics in points, and the interval of the main one."""
    found = {name: round(100 * value, 2) for name, value in report.metrics.items() if name in SHOWN}
    between = {"interval": [round(100 * end, 2) for end in report.interval]} if report.interval else {}
    return {"main": report.main, **found, **between}


SHOWN = ("spearman_cosine", "pearson_cosine", "ap_cosine", "ndcg@10", "recall@10", "mrr@10", "v_measure")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", help="encoders; the re-ranker orders what the first one finds")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="for the encoders")
    parser.add_argument("--dtype", choices=["float32", "int8"], help="of the encoders")
    parser.add_argument("--reranker", help="also measure this re-ranker, and the first encoder's smaller vectors")
    options = parser.parse_args()
    measure(options.models, options.sets, options.data, options.out, options.dtype)
    if options.reranker:
        encoder = BiEncoder.load(options.models[0])
        measure_components(encoder, options.data, options.out)
        folder = options.out.with_suffix("")
        measure_reranked(CrossEncoder.load(options.reranker), encoder, options.data, folder, options.out)


if __name__ == "__main__":
    main()
