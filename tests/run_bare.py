"""Encode, train and evaluate while no module of ours may import more than the core: python run_bare.py MODEL FOLDER."""

import builtins
import json
import sys
from pathlib import Path
from typing import Any

CORE = {"torch", "numpy", "tokenizers", "safetensors"}
ALLOWED = CORE | {"munjang"} | set(sys.stdlib_module_names)
asked: list[str] = []  # of anything else, by a module of ours
plain = builtins.__import__


def watching(name: str, given: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """As `import` does; but what is asked for by us is as if it were not there, also where others have loaded it."""
    who = (given or {}).get("__name__", "")
    if level == 0 and who.partition(".")[0] == "munjang" and name.partition(".")[0] not in ALLOWED:
        asked.append(f"{who} imports {name}")
        raise ImportError(f"No module named {name!r}")
    return plain(name, given, local, fromlist, level)


def main(model: str, folder: Path) -> None:
    builtins.__import__ = watching
    from munjang import BiEncoder, TrainConfig, evaluate, train

    encoder = BiEncoder.load(model, "cpu")
    before = encoder.encode(["hello world", "나는 오늘"])
    dev, output = str(folder / "dev.tsv"), folder / "model"
    config = TrainConfig(output=str(output), max_steps=2, device="cpu", quiet=True, evaluate=(dev,), learning_rate=1e-3)
    train(encoder, str(folder / "pairs.tsv"), "in_batch", config)
    again = BiEncoder.load(output, "cpu")
    report = evaluate(again, dev)
    facts = {
        "shape": list(before.shape),
        "moved": float(abs(encoder.encode(["hello world", "나는 오늘"]) - before).max()),
        "kept": bool((again.encode(["hello world"]) == encoder.encode(["hello world"])).all()),
        "kind": report.kind,
        "score": report.metrics[report.main],
        "files": sorted(path.name for path in output.iterdir()),
        "asked": asked,
        "extras": sorted({"transformers", "scipy", "pyarrow", "peft", "sentence_transformers"} & set(sys.modules)),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
