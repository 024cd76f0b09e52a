"""munjang info MODEL: what a model is and how it will be computed."""

import json
from dataclasses import dataclass

from munjang.cli.options import option


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of `munjang info`."""

    model: str = option("folder or Hub name of a bi-encoder or cross-encoder", is_positional=True)
    json: bool = option("print one JSON object", default=False)


def run(options: Options) -> int:
    """Load the model as what it is and print its own description."""
    from munjang import checkpoint  # torch comes with it: not for --help

    if checkpoint.kind(options.model) == "cross":
        from munjang.cross_encoder import CrossEncoder

        info = CrossEncoder.load(options.model).info()
    else:
        from munjang.bi_encoder import BiEncoder

        info = BiEncoder.load(options.model).info()
    if options.json:
        print(json.dumps(info, ensure_ascii=False, indent=2, default=str))
    else:
        print("\n".join(describe(info)))
    return 0


def describe(info: dict[str, object]) -> list[str]:
    """Aligned lines, one fact each; a table inside (prompts) is indented below its name."""
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
