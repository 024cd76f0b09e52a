"""Munjang, Sentence-BERT as one system: the public names, each loaded on first use.

>>> from munjang import BiEncoder
>>> BiEncoder.load().encode(["a sentence", "another"]).shape
(2, 384)
"""

from typing import TYPE_CHECKING

from munjang.lazy import loader

__all__ = [
    "BiEncoder",
    "CrossEncoder",
    "Dataset",
    "Index",
    "MultiVectorEncoder",
    "SparseEncoder",
    "TokenIds",
    "TrainConfig",
    "__version__",
    "evaluate",
    "train",
]

__version__ = "0.1.0"

PUBLIC = {
    "BiEncoder": "munjang.bi_encoder",
    "CrossEncoder": "munjang.cross_encoder",
    "Dataset": "munjang.training.datasets",
    "Index": "munjang.index",
    "MultiVectorEncoder": "munjang.multi_vector_encoder",
    "SparseEncoder": "munjang.sparse_encoder",
    "TokenIds": "munjang.types",
    "TrainConfig": "munjang.training.config",
    "evaluate": "munjang.evaluation",
    "train": "munjang.training.train",
}

if TYPE_CHECKING:
    from munjang.bi_encoder import BiEncoder
    from munjang.cross_encoder import CrossEncoder
    from munjang.evaluation import evaluate
    from munjang.index import Index
    from munjang.multi_vector_encoder import MultiVectorEncoder
    from munjang.sparse_encoder import SparseEncoder
    from munjang.training.config import TrainConfig
    from munjang.training.datasets import Dataset
    from munjang.training.train import train
    from munjang.types import TokenIds
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)
