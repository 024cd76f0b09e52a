"""The API of sentence-transformers over ours: code written for it runs after changing the import.

>>> from munjang.compat import SentenceTransformer, CrossEncoder, util   # was: from sentence_transformers import ...
>>> model = SentenceTransformer("ko-en-small")  # a folder or a Hub name as well
>>> model.similarity(model.encode(["A cat sleeps."]), model.encode(["The kitten is napping."]))
tensor([[0.90...]])

Names that are not covered raise an error with the alternative (gaps.py). `model.facade` is the BiEncoder or
CrossEncoder behind a model, with everything that sentence-transformers does not have.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from munjang.compat import gaps, paths, util
from munjang.compat.card import CrossEncoderModelCardData, SentenceTransformerModelCardData
from munjang.compat.cross_encoder import CrossEncoder
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.sentence_transformer import SentenceTransformer
from munjang.compat.similarity_functions import SimilarityFunction
from munjang.compat.util import LoggingHandler

__version__ = "6.2.0"  # of the sentence-transformers that it stands for; munjang.__version__ is ours

__all__ = [
    "CrossEncoder",
    "CrossEncoderModelCardData",
    "LoggingHandler",
    "SentenceTransformer",
    "SentenceTransformerModelCardData",
    "SimilarityFunction",
    "quantize_embeddings",
    "util",
]

# Names that need an extra (transformers, datasets), or that not everybody needs: the file that has them
LAZY = {
    "SentenceTransformerTrainer": "training.trainer",
    "SentenceTransformerTrainingArguments": "training.arguments",
    "CrossEncoderTrainer": "training.cross",
    "CrossEncoderTrainingArguments": "training.arguments",
    "DefaultBatchSampler": "training.samplers",
    "MultiDatasetDefaultBatchSampler": "training.samplers",
    "CrossEncoderModelCardData": "card",
    "SentenceTransformerModelCardData": "card",
    "InputExample": "examples",
    "SentencesDataset": "examples",
    "mine_hard_negatives": "hard_negatives",
    "resolve_ids": "lookups",
}
paths.install()
gaps.explain_imports()

if not TYPE_CHECKING:  # hidden from type checkers, which would accept any misspelt name

    def __getattr__(name):
        if name in LAZY:
            return getattr(import_module(f"munjang.compat.{LAZY[name]}"), name)
        raise gaps.missing_name("munjang.compat", name)
