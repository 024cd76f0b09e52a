"""The table of kinds of evaluation, from the kinds themselves."""

from pathlib import Path

from munjang.evaluation.kinds import KINDS

MODELS = {"bi": "bi-encoder", "cross": "cross-encoder", "late": "late interaction", "sparse": "sparse"}


def table(root: Path, document: str) -> str:
    """Return all kinds with their data, their main metric and whether data for them is recognised."""
    lines = ["| kind | data | main metric | |", "|---|---|---|---|"]
    for name, kind in KINDS.items():
        title, _, data = kind.purpose.partition(": ")
        metrics = ", ".join(f"`{metric}` ({MODELS[model]})" for model, metric in kind.main.items())
        how = "`--kind`" if kind.fits is None else "recognised"
        lines.append(f"| `{name}` | {title}: {data} | {metrics} | {how} |")
    return "\n".join(lines)
