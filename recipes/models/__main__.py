"""Make both bundled models in four stages: gather lists, train a teacher, the re-ranker, the encoder; and ship them.

    python -u -m recipes.models DATA WORK [--seed 5] [--start ko-en-small]

DATA is the data folder (docs/recipe.md says what is in it). WORK keeps what each stage made (WORK/pairs, lists, scores,
the model folders WORK/reranker and WORK/encoder, and in 8 bits WORK/models) and run.json: options, seconds, and the
sha256 of every table. The same command goes on with the stage that a stopped run was in; --stages runs some of them
again.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.models import minilm
from munjang import BiEncoder, CrossEncoder, evaluate
from munjang.checkpoint.bundled import BUNDLED
from munjang.checkpoint.modules import write_json
from recipes.models.balance import CONFIG as BALANCE
from recipes.models.balance import balance, measure_lean
from recipes.models.encoder import CONFIG as ENCODER
from recipes.models.encoder import blend, learn_encoder
from recipes.models.lists import mine
from recipes.models.measure import measure_all
from recipes.models.nli import CONFIG as NLI_CONFIG
from recipes.models.nli import measure_nli, new_nli, nli_data
from recipes.models.pairs import LAST, collect, typical
from recipes.models.reranker import CONFIG, NUM_LAYERS, fit, learn, teach
from recipes.models.scores import SETS
from recipes.ship import ship


def _lists(options: argparse.Namespace) -> None:
    if not (options.work / LAST).exists():  # else made before, maybe on another machine
        collect(options.data, options.work)
    mine(_start(options), options.work)


def _teacher(options: argparse.Namespace) -> None:
    teach(_start(options, "float32"), options.work, options.teacher_updates, options.teacher_rate, options.seed)
    _measure(options, "teacher")


def _reranker(options: argparse.Namespace) -> None:
    out = options.work / options.name
    config = replace(CONFIG, max_steps=options.updates, learning_rate=options.rate, seed=options.seed)
    learn(_start(options), options.work, NUM_LAYERS, config, out)
    balanced = CrossEncoder.load(out, options.device, "float32")
    balance(balanced, options.work, replace(BALANCE, max_steps=options.balance_updates, seed=options.seed))
    balanced.save(out)
    _measure(options, options.name)


def _encoder(options: argparse.Namespace) -> None:
    """Train the encoder, and measure it on the dev sets alone."""
    start, config = _start(options, "float32"), replace(ENCODER, max_steps=options.encoder_updates, seed=options.seed)
    trained = learn_encoder(start, _named(options), _guide(options), options.work, config)
    blend(start, trained, options.share).save(options.work / "encoder")
    encoder = BiEncoder.load(options.work / "encoder", options.device)
    reports = {name: SETS[name](encoder, options.data) for name in DEV}
    reports |= {each.name: evaluate(encoder, each, kind="retrieval") for each in _dev_sets(options)}
    for name, report in reports.items():
        print(f"{name:24} {report.main} {100 * report.score:.2f}", flush=True)
    found = {name: report.to_json() for name, report in reports.items()}
    (options.work / "encoder-dev.json").write_text(json.dumps(found, default=str) + "\n", encoding="utf-8")


def _ship(options: argparse.Namespace) -> None:
    """Write both models as the package brings them."""
    texts, models = options.work / "typical.txt", options.work / "models"
    texts.write_text("\n".join(typical(options.work)) + "\n", encoding="utf-8")
    for name, folder in zip(BUNDLED, (options.work / "encoder", options.work / options.name), strict=True):
        ship(name, folder, [], texts if BUNDLED[name].kind == "bi" else None, models)


def _nli(options: argparse.Namespace) -> None:
    """Train three labels on the layers of the re-ranker, a by-product, and measure them."""
    model = new_nli(options.work / options.name, str(_start(options).device))
    config = replace(NLI_CONFIG, max_steps=options.nli_updates, seed=options.seed)
    fit(model, nli_data(options.data), config)
    measure_nli(model, options.data, options.work / "nli.json")


DEV = ("stsb-dev", "korsts-dev", "sick-dev", "crossed-dev", "mixed-dev")
STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "lists": _lists,
    "teacher": _teacher,
    "reranker": _reranker,
    "encoder": _encoder,
    "ship": _ship,
    "nli": _nli,
}
MADE = ("lists", "teacher", "reranker", "encoder", "ship")  # by default


def _start(options: argparse.Namespace, dtype: str | None = None) -> BiEncoder:
    return BiEncoder.load(options.start, options.device, dtype)


def _guide(options: argparse.Namespace) -> BiEncoder:
    """Load the encoder that knows English best."""
    return BiEncoder.load(options.guide or minilm(), options.device)


def _measure(options: argparse.Namespace, name: str) -> None:
    """Measure on the dev sets alone."""
    model = CrossEncoder.load(options.work / name, options.device)
    measure_all(model, _start(options), _dev_sets(options), options.work / f"{name}-dev.json")
    print(json.dumps(measure_lean(model, options.work)), flush=True)


def _dev_sets(options: argparse.Namespace) -> list[Path]:
    return sorted(each for each in (options.work / "dev").iterdir() if each.is_dir())


def _named(options: argparse.Namespace) -> CrossEncoder:
    folder = options.work / options.name
    return CrossEncoder.load(folder if folder.is_dir() else options.name, options.device)


def _hashes(folder: Path) -> dict[str, str]:
    """Return the sha256 of the tables that a run began with."""
    tables = [*sorted(folder.glob("pairs/*")), folder / "decisions.tsv", folder / LAST]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tables}


def _begin(options: argparse.Namespace) -> dict[str, Any]:
    """Return the record of this run, or of one that was stopped, which has to have the same options."""
    chosen = {key: str(value) for key, value in vars(options).items() if key not in ("data", "work", "stages")}
    path = options.work / "run.json"
    if not path.exists():
        return {"options": chosen, "seconds": {}, "began": {}}
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = {key for key, value in chosen.items() if record["options"].get(key) != value}
    if others:
        raise SystemExit(
            f"{path} is of a run with another {', '.join(sorted(others))}: give its options, or another WORK."
        )
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument(
        "--stages", nargs="+", choices=list(STAGES), help=f"default: {' '.join(MADE)}, as far as they are not done"
    )
    parser.add_argument("--start", default="ko-en-small", help="the encoder")
    parser.add_argument("--guide", type=Path, help="an English encoder (default: all-MiniLM-L6-v2 from its package)")
    parser.add_argument("--device", help="default: the best there is")
    parser.add_argument("--teacher-updates", type=int, default=2200)
    parser.add_argument("--teacher-rate", type=float, default=1e-4)
    parser.add_argument("--updates", type=int, default=3700)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--balance-updates", type=int, help="default: one epoch")
    parser.add_argument("--encoder-updates", type=int, default=400)
    parser.add_argument("--share", type=float, default=0.5, help="of the way from the start to the trained encoder")
    parser.add_argument("--nli-updates", type=int, default=600)
    parser.add_argument("--name", default="reranker")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    record = _begin(options)
    for name in options.stages or [each for each in MADE if each not in record["seconds"]]:
        record["began"][name] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z"
        started = time.monotonic()
        for later in MADE[MADE.index(name) + 1 :] if name in MADE else ():  # made of what is made anew now
            record["seconds"].pop(later, None)
        STAGES[name](options)
        record["seconds"][name] = round(time.monotonic() - started)
        record["tables"] = _hashes(options.work)
        print(f"{name}: {record['seconds'][name]} s", flush=True)
        write_json(options.work / "run.json", record)


if __name__ == "__main__":
    main()
