"""Index: a model, a chunker and a store; texts in, hits out, re-ranked; export and import."""

from munjang.index.hits import Hit
from munjang.index.index import Index, ModelMismatch

__all__ = ["Hit", "Index", "ModelMismatch"]
