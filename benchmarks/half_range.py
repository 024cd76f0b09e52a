"""Measure how near the activations of models come to the largest number of float16, 65,504.

    python -m benchmarks.half_range OUT.json FOLDER... [--texts FILE...] [--count 200]

Computes in float32, on a CPU too: the largest absolute output of every linear layer and norm, which are what float16
would have to hold (scores, sums and norms are float32 inside our kernels). Besides the texts, token ids are drawn at
random, and single tokens are repeated up to the longest text: nothing in a vocabulary is left out.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from munjang import BiEncoder, checkpoint
from munjang.cross_encoder import CrossEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.text.packing import pack
from munjang.types import Ints

LARGEST = float(torch.finfo(torch.float16).max)
TOKENS_AT_ONCE = 4096
NUM_DRAWN = 16  # texts of random ids
NUM_REPEATED = 16  # texts of one id


def largest_outputs(model: Any, texts: list[Ints]) -> dict[str, float]:
    """Return the largest absolute output of each kind of layer."""
    found: dict[str, float] = {}

    def watch(name: str) -> Any:
        def note(module: nn.Module, given: Any, output: Tensor) -> None:
            found[name] = max(found.get(name, 0.0), float(output.abs().max()))

        return note

    encoder = model.network.encoder
    hooks = [
        module.register_forward_hook(watch(name.rpartition(".")[2]))
        for name, module in encoder.named_modules()
        if isinstance(module, nn.Linear | nn.LayerNorm)
    ]
    order = sorted(texts, key=len, reverse=True)
    with torch.inference_mode():
        while order:
            num = max(1, TOKENS_AT_ONCE // max(len(order[0]), 1))
            part, order = order[:num], order[num:]
            encoder(pack(np.concatenate(part), np.array(list(map(len, part)))))
    for hook in hooks:
        hook.remove()
    return found


def check(folder: str, texts: list[str]) -> dict[str, Any]:
    """Measure one model over texts, random ids and repeated ids."""
    kind = BiEncoder if checkpoint.kind(checkpoint.resolve(folder)) == "bi" else CrossEncoder
    model = kind.load(folder, "cpu", "float32")
    for module in model.network.modules():
        if hasattr(module, "prepacked"):
            module.prepacked = None  # their outputs would not be seen
    random, longest = np.random.default_rng(5), model.max_length or 512
    size = model.network.encoder.vocab_size
    tokens = model.tokenizer(texts)
    own = np.split(tokens.ids.astype(np.int64), np.cumsum(tokens.lengths)[:-1])
    drawn = [random.integers(0, size, longest) for _ in range(NUM_DRAWN)]
    repeated = [np.full(longest, token) for token in random.integers(0, size, NUM_REPEATED)]
    short = [random.integers(0, size, 3) for _ in range(1000)]
    record: dict[str, Any] = {"model": Path(folder).name}
    for name, given in (("texts", own), ("random ids", drawn + short), ("repeated ids", repeated)):
        found = largest_outputs(model, given)
        record[name] = {layer: round(value, 1) for layer, value in sorted(found.items())}
    weights = max(float(weight.abs().max()) for weight in model.network.encoder.parameters())
    record["largest weight"] = round(weights, 2)
    highest = max(max(values.values()) for values in record.values() if isinstance(values, dict))
    record["room"] = round(LARGEST / max(highest, weights), 1)
    print(json.dumps(record), flush=True)
    return record


def main() -> None:
    """Measure all models and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--texts", type=Path, nargs="+", default=[], help="files of texts")
    parser.add_argument("--count", type=int, default=200, help="texts of each file")
    options = parser.parse_args()
    texts = [text for path in options.texts for text, _ in zip(read_texts(path), range(options.count), strict=False)]
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.half_range", *sys.argv[1:]]),
        "machine": processor(torch.device("cpu")),
        "torch": torch.__version__,
        "num_texts": len(texts),
        "models": [check(folder, texts) for folder in options.folders],
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
