"""Whom we measure: one row an encoder. A venv's packages are pinned in the file of its name beside this one.

`make bench-peers` makes the venvs under .venv-peers/. They are apart because their requirements clash: optimum wants
an older transformers, infinity an older numpy.
"""

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENVS = ROOT / ".venv-peers"
OWN = ""  # the venv that runs the benchmark


@dataclass(frozen=True)
class Peer:
    """An encoder: where its packages are, which function of loaders.py loads it, and with what."""

    name: str
    loader: str
    venv: str = OWN
    options: dict[str, str] = field(default_factory=dict)


REFERENCE = "sentence-transformers"  # what cosines are to, and what times are divided by
PEERS = [
    Peer(REFERENCE, "sentence_transformers", options={"backend": "torch"}),
    Peer("munjang float32", "munjang", options={"dtype": "float32"}),
    Peer("munjang bfloat16", "munjang", options={"dtype": "bfloat16"}),
    Peer("munjang int8", "munjang", options={"dtype": "int8"}),
    Peer("sentence-transformers onnx", "sentence_transformers", "onnx", {"backend": "onnx"}),
    Peer("sentence-transformers onnx-int8", "sentence_transformers", "onnx", {"backend": "onnx-int8"}),
    Peer("sentence-transformers openvino", "sentence_transformers", "openvino", {"backend": "openvino"}),
    Peer("ctranslate2 float32", "ctranslate2", "ctranslate2", {"compute_type": "float32"}),
    Peer("ctranslate2 int8", "ctranslate2", "ctranslate2", {"compute_type": "int8"}),
    Peer("onnxruntime", "onnxruntime", "onnx"),
    Peer("fastembed", "fastembed", "fastembed"),
    Peer("infinity", "infinity", "infinity"),
]


def python_of(peer: Peer, own: str) -> Path:
    """The interpreter that has the peer's packages."""
    return Path(own) if peer.venv == OWN else VENVS / peer.venv / "bin" / "python"
