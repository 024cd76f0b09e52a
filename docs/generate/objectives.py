"""The table of objectives, from the classes themselves."""

from pathlib import Path

from munjang.objectives import OBJECTIVES, options_of

SHOWN = {"labels": "labels", "scores": "scores", "teacher": "a teacher"}  # what data has to bring; the rest is made


def table(root: Path, document: str) -> str:
    """Return all objectives with what they do, take and can be set to."""
    lines = ["| objective | model | what is minimised | data: text columns, and | settings |", "|---|---|---|---|---|"]
    for name, kind in OBJECTIVES.items():
        least, most = kind.num_texts
        count = str(least) if least == most else f"{least} or more"
        takes = ", ".join([count, *(SHOWN[extra] for extra in kind.extras if extra in SHOWN)])
        first = (kind.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")
        own = ", ".join(f"`{option}={each.default}`".replace("|", "\\|") for option, each in options_of(kind).items())
        model = "cross" if kind.needs == "logits" else "bi"
        lines.append(f"| `{name}` | {model} | {first} | {takes} | {own} |")
    return "\n".join(lines)
