"""munjang export MODEL --to onnx -o FOLDER: a model for another runtime, in 8 bits, or for sentence-transformers.

munjang export path/to/model --to onnx --dtype int8 -o path/to/export
munjang export path/to/model --to munjang-int8 -o path/to/folder
munjang export path/to/model --to sentence-transformers -o path/to/folder
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from munjang.cli.options import option
from munjang.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Options:
    """Of `munjang export`."""

    model: str = option("folder or Hub name of a bi-encoder or cross-encoder", is_positional=True)
    to: Literal["onnx", "munjang-int8", "sentence-transformers"] = option("what to write")
    output: str = option("folder to write; a model there is replaced", short="-o", metavar="FOLDER")
    dtype: Literal["float32", "int8"] = option("of the encoder's weights; int8 is for onnx", default="float32")


def run(options: Options) -> int:
    """Load the model as what it is, write it, and say how near the result comes."""
    if options.to != "onnx" and options.dtype != "float32":
        raise InputError(f"--to {options.to} says what is stored; --dtype int8 goes with --to onnx.")
    from munjang import checkpoint  # torch comes with it: not for --help
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder

    is_cross = checkpoint.kind(options.model) == "cross"
    model = (CrossEncoder if is_cross else BiEncoder).load(options.model, device="cpu")
    target = Path(options.output)
    if options.to != "onnx":
        model.save(target, format=options.to)
        print(f"{target}: {_size(target)}")
        return 0
    from munjang.runtime.onnx import export_onnx

    activation = model.activation if isinstance(model, CrossEncoder) else None
    agreement = export_onnx(model.model, target, options.dtype, activation)
    print(f"{target}: {_size(target)}; {agreement}, against torch in float32")
    return 0


def _size(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6:,.1f} MB"
