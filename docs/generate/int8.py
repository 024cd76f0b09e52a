"""The table of int8 beside float32, from the record of `python -m benchmarks.int8`."""

import json
from pathlib import Path
from typing import Any

RECORD = "benchmarks/results/int8.json"
BUNDLED = "munjang/models/{}/config.json"
CORPORA = {
    "english": "English",
    "korean": "Korean",
    "english long": "English passages",
    "korean long": "Korean passages",
}


def table(root: Path, document: str) -> str:
    """Model × CPU kind × corpus: mean and smallest cosine (a re-ranker: correlation of its scores), times float32."""
    record = json.loads((root / RECORD).read_text(encoding="utf-8"))
    lines = [
        f"| model | CPU | {' | '.join(CORPORA.values())} | layers in float32 |",
        "|---|---|" + "---|" * (len(CORPORA) + 1),
    ]
    for name in next(iter(record["kinds"].values())):
        for kind, models in record["kinds"].items():
            found = models[name]
            cells = [_cell(found["corpora"][corpus]) for corpus in CORPORA]
            label = "VNNI" if kind == "as it is" else kind
            lines.append(
                f"| {name} | {label} | {' | '.join(cells)} | {found['layers_in_float32']} of {found['layers']} |"
            )
    when, machine = record["when"][:10], record["machine"]
    note = (
        "Each cell: mean and smallest cosine to float32 (for the re-ranker the correlation of its scores), and how "
        f"many times as fast as float32 in the same process. {machine}, {when}; AVX2 is emulated on the same machine "
        f"(`{record['command']}`)."
    )
    return "\n".join([*lines, "", note + _editions(root, next(iter(record["kinds"].values())))])


def _editions(root: Path, models: dict[str, Any]) -> str:
    """Say which rows are of an earlier edition of a bundled model."""
    said = ""
    for name, found in models.items():
        config = root / BUNDLED.format(name)
        layers = json.loads(config.read_text(encoding="utf-8"))["num_hidden_layers"] if config.exists() else 0
        if layers not in (0, found["layers"]):
            said += f" {name} is the edition of {found['layers']} layers there; the bundled one has {layers}."
    return said


def _cell(row: dict[str, float]) -> str:
    closeness = f"r {row['correlation']:.4f}" if "correlation" in row else f"{row['mean']:.4f} / {row['smallest']:.3f}"
    return f"{closeness}; {row['times_float32']:.1f}×"
