"""A trained model to munjang/models/NAME: 8-bit weights, tokenizer, card and notice, as the package brings it.

    python -m recipes.ship ko-en-small FOLDER [RESULTS.json [OTHERS.json ...]] [--texts texts.txt.xz]
    python -m recipes.ship ko-en-reranker FOLDER RESULTS.json

RESULTS.json has reports: {set: {"main": metric, "score": 0..1}}. Scores are those of the shipped file, so ship once
without them, measure, and give the shipped folder as FOLDER: its weights stay as they are, to the byte. --texts has
typical texts: the ranges of int8 vectors are measured on them, and what rounding changes is made up for on the first of
them (rounding.py).
"""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint.bundled import BUNDLED, FOLDER, folder_of, is_there
from munjang.checkpoint.compact import CPU_DTYPE, FILE_STEM, WORDS_OF
from munjang.checkpoint.files import read_json, words_in
from munjang.checkpoint.model import RERANK_WEIGHT
from munjang.checkpoint.modules import write_json
from munjang.data.tables import read_texts
from munjang.errors import InputError
from recipes.card import card, notice
from recipes.rounding import round_in_turn

MAX_BYTES = 80_000_000  # of all bundled models together
# What `load` computes in on an x86 CPU where no dtype is named. Vectors are kept and compared with those of other
# machines and batches, so they are exact; scores are read once, by someone who waits: twice as fast.
CPU_DTYPES = {"bi": "float32", "cross": "int8"}
# The re-ranker's weight beside the retrieval's: it knows words and names, the encoder what is meant (docs/models.md)
WEIGHT_IN_SEARCH = 0.5
MATRYOSHKA = [64, 128, 256]  # the server offers what config.json names
MAX_TEXTS, MAX_ROUNDING_TEXTS = 20_000, 2000
SHOWN = {
    "layers": "Layers",
    "width": "Width",
    "parameters": "Parameters",
    "vocabulary": "Pieces of the vocabulary",
    "dimension": "Components of a vector",
    "max_length": "Longest input in tokens",
    "similarity": "Similarity",
    "activation": "Activation",
}


def ship(
    name: str,
    source: Path,
    results: list[Path],
    texts: Path | None = None,
    models: Path = FOLDER,
    dtype: str | None = None,
) -> Path:
    """Write the folder of a bundled model, and say what each part of it takes."""
    target, found = models / name, [_read(path) for path in results]
    is_there = source.resolve() == target.resolve()  # rounded again, weights would differ from what was measured
    if is_there and texts is not None:
        raise InputError(f"{source} is rounded already: leave --texts away, or give the folder that it was made from.")
    model = _load(name, source, texts)
    model.model.config = {**model.model.config, CPU_DTYPE: dtype or CPU_DTYPES[BUNDLED[name].kind]}
    if not is_there:
        model.save(target, format="munjang-int8")
        share_words(target)
    facts = {title: _shown(model.info()[key]) for key, title in SHOWN.items() if key in model.info()}
    (target / "NOTICE").write_text(notice(name), encoding="utf-8")
    (target / "README.md").write_text(card(name, facts, size(target) / 1e6, found), encoding="utf-8")
    for path in sorted(target.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>12,}  {path.relative_to(models)}")
    print(f"{size(target):>12,}  {name}; {size(models):,} of {MAX_BYTES:,} bytes for all bundled models")
    if size(models) > MAX_BYTES:
        raise InputError(f"{models} holds {size(models):,} bytes, more than {MAX_BYTES:,}; ship a smaller model.")
    return target


def share_words(target: Path) -> None:
    """Leave the table of words to the first model of the package if that one has the same."""
    name = next(iter(BUNDLED))
    path = target / f"{FILE_STEM}.safetensors"
    if target.name == name or not is_there(name):
        return
    own, shared = load_file(path), load_file(folder_of(name) / path.name)
    names = words_in(path)
    if not all(name in shared and torch.equal(own[name], shared[name]) for name in names):
        return
    save_file({name: tensor for name, tensor in own.items() if name not in names}, path)
    config = {**read_json(target / "config.json"), WORDS_OF: name}
    write_json(target / "config.json", config)


def _load(name: str, source: Path, texts: Path | None) -> BiEncoder | CrossEncoder:
    if BUNDLED[name].kind == "cross":
        if texts is not None:
            raise InputError("--texts is for a bi-encoder: a cross-encoder has no vectors.")
        scorer = CrossEncoder.load(source, "cpu", "float32")
        scorer.model.config = {**scorer.model.config, RERANK_WEIGHT: WEIGHT_IN_SEARCH}
        scorer.model.config.pop("matryoshka_dimensions", None)  # of the encoder that it began as
        return scorer
    model = BiEncoder.load(source, "cpu", "float32")
    model.model.config = {**model.model.config, "matryoshka_dimensions": MATRYOSHKA}
    if texts is not None:
        typical = list(islice(read_texts(texts), MAX_TEXTS))
        round_in_turn(model, typical[:MAX_ROUNDING_TEXTS])
        model.calibrate(typical, one_range=True)
    return model


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    reports = found.get("reports")
    if not isinstance(reports, dict) or not all(
        isinstance(each, dict) and {"main", "score"} <= set(each) for each in reports.values()
    ):
        raise InputError(f"{path} should hold reports: each set with its main metric and its score.")
    return found


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(BUNDLED))
    parser.add_argument("source", type=Path, metavar="FOLDER")
    parser.add_argument("results", type=Path, nargs="*", metavar="RESULTS.json")
    parser.add_argument(
        "--texts", type=Path, help="typical texts, one a line: for the ranges of int8 vectors, and for rounding"
    )
    parser.add_argument("--dtype", choices=["float32", "int8"], help=f"on a CPU, by default (default: {CPU_DTYPES})")
    options = parser.parse_args()
    ship(options.name, options.source, options.results, options.texts, dtype=options.dtype)


if __name__ == "__main__":
    main()
