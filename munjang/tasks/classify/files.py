"""A classifier as a folder: head.safetensors, classifier.json and, where it was trained, the encoder. Never pickles."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from munjang.bi_encoder import BiEncoder
from munjang.checkpoint.atomic import replacing_folder
from munjang.errors import CheckpointError, InputError
from munjang.index import ModelMismatch
from munjang.tasks.classify.calibration import Calibration
from munjang.tasks.classify.linear_head import Head

Loader = Callable[[str | os.PathLike[str]], BiEncoder]

FORMAT = 1
FACTS, NUMBERS, ENCODER = "classifier.json", "head.safetensors", "encoder"
SHAPES = {"weights": 2, "bias": 1, "scale": 1, "offset": 1}
JSON_FIELDS = ("labels", "threshold", "is_multi_label", "method", "fingerprint", "is_unit", "report")


def check_place(folder: Path, replace: bool) -> None:
    """Refuse a place that no classifier may be written to: a file, a folder of something else, an older classifier."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / FACTS).is_file():
        raise InputError(f"{folder} exists already and does not hold a classifier; choose another name.")
    if not replace:
        raise InputError(f"{folder} is there already; choose another name, or replace it (replace=True, --replace).")


def save(
    folder: Path, fields: dict[str, Any], model: BiEncoder | None, with_model: bool, replace: bool = False
) -> None:
    """Write the fields of a classifier, and its model if asked, beside the place; then move all there in one step."""
    check_place(folder, replace)
    if with_model and model is None:
        raise InputError("This classifier was fitted on vectors and has no model to save.")
    with replacing_folder(folder) as made:
        _write(made, fields, model, with_model)


def load(folder: Path, model: BiEncoder | None, load_model: Loader) -> tuple[dict[str, Any], BiEncoder | None]:
    """Return the fields of a classifier, and its model: the one given, in the folder, or where it was."""
    facts, numbers = _read(folder)
    if model is None and facts["fingerprint"] is not None:
        model = _model(folder, facts, load_model)
        if facts["model"] == ENCODER:  # its own; saved in another precision than it had, it has another fingerprint
            facts["fingerprint"] = model.fingerprint
    if model is not None and facts["fingerprint"] not in (None, model.fingerprint):
        raise ModelMismatch(
            f"{folder} classifies vectors of {facts['model']} ({facts['fingerprint'][:12]}), not of this model "
            f"({model.fingerprint[:12]}). Load it without a model, or fit a classifier on this one."
        )
    fields = {
        **{name: facts[name] for name in JSON_FIELDS},
        "labels": tuple(facts["labels"]),
        "head": Head(numbers["weights"], numbers["bias"]),
        "calibration": Calibration(numbers["scale"], numbers["offset"]),
    }
    return fields, model


def _write(made: Path, fields: dict[str, Any], model: BiEncoder | None, with_model: bool) -> None:
    numbers = {
        "weights": fields["head"].weights_CD,
        "bias": fields["head"].bias_C,
        "scale": fields["calibration"].scale_C,
        "offset": fields["calibration"].offset_C,
    }
    save_file({name: np.ascontiguousarray(value) for name, value in numbers.items()}, made / NUMBERS)
    if with_model and model is not None:
        model.save(made / ENCODER)
    facts = {"format": FORMAT, "model": ENCODER if with_model else _place(model)}
    facts |= {name: fields[name] for name in JSON_FIELDS} | {"labels": list(fields["labels"])}
    # in ASCII: a label may hold half of a surrogate pair
    (made / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _place(model: BiEncoder | None) -> str | None:
    """Return where a model was loaded from: a folder's full path, or a name."""
    if model is None:
        return None
    return str(model._options[0]) if model._options else os.path.abspath(model.model.folder)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        numbers = load_file(folder / NUMBERS)
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{folder} is not a classifier: {Path(error.filename or FACTS).name} is missing."
        ) from None
    except (ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder} can't be read as a classifier ({error}); copy it again.") from None
    if not isinstance(facts, dict) or facts.get("format", 0) > FORMAT:
        raise CheckpointError(f"{folder} was written by a newer version of Munjang; update this one.")
    shapes = {name: numbers[name].ndim for name in SHAPES if name in numbers}
    sizes = {len(value) for value in numbers.values()} | {len(facts.get("labels", ()))}
    if {*JSON_FIELDS, "model"} - facts.keys() or shapes != SHAPES or len(sizes) != 1:
        raise CheckpointError(f"{folder}: {FACTS} and {NUMBERS} are damaged, or not of one classifier; copy it again.")
    return facts, numbers


def _model(folder: Path, facts: dict[str, Any], load_model: Loader) -> BiEncoder:
    inside = folder / ENCODER
    if facts["model"] == ENCODER:
        return load_model(inside)
    try:
        return load_model(facts["model"])
    except CheckpointError as error:
        raise CheckpointError(f"{folder} needs its model: {error} Give the model that it was fitted on.") from error
