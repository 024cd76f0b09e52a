"""munjang info [MODEL]: describe a model and how it will be computed; without one, list the bundled models.

munjang info MODEL
munjang info ko-en-small
"""

import json
from dataclasses import asdict, dataclass

from munjang.cli.models import load_any
from munjang.cli.options import option

SUMMARY_KO = "모델 살펴보기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang info`."""

    model: str | None = option(
        "folder or Hub name of any model (default: list the bundled models)",
        default=None,
        is_positional=True,
    )
    json: bool = option("print one JSON object", default=False)


def run(options: Options) -> int:
    """Load the model and print its description."""
    if options.model is None:
        return _list(options)
    info = load_any(options.model).info()
    if options.json:
        print(json.dumps(info, ensure_ascii=False, indent=2, default=str))
    else:
        print("\n".join(describe(info)))
    return 0


def _list(options: Options) -> int:
    """List the bundled models without loading them."""
    from munjang.checkpoint.bundled import BUNDLED, FOLDER, is_there

    rows = []
    for name, model in BUNDLED.items():
        size = sum(path.stat().st_size for path in (FOLDER / name).rglob("*") if path.is_file())
        folder = str(FOLDER / name) if is_there(name) else None
        rows.append({"name": name, **asdict(model), "folder": folder, "megabytes": round(size / 1e6, 1)})
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for row in rows:
        place = f"{row['megabytes']} MB in {row['folder']}" if row["folder"] else "its weights are not in this copy"
        print(f"{row['name']} ({row['kind']}-encoder): {row['description']}; {place}")
    return 0


def describe(info: dict[str, object]) -> list[str]:
    """Return aligned lines, one fact each; a nested table (prompts) is indented below its name."""
    width = max((len(name) for name in info), default=0)
    lines = []
    for name, value in info.items():
        shown = name.replace("_", " ")
        if isinstance(value, dict):
            lines.append(f"{shown:{width}}  {'' if value else '-'}".rstrip())
            lines.extend("  " + line for line in describe(value))
        elif isinstance(value, (list, tuple)):
            lines.append(f"{shown:{width}}  {', '.join(map(str, value)) or '-'}")
        else:
            lines.append(f"{shown:{width}}  {_plain(value)}")
    return lines


def _plain(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value if value == value.strip() and value else repr(value)  # a prompt's last space matters
    return f"{value:,}" if isinstance(value, int) else str(value)
