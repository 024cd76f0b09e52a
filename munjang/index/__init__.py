"""Index: a model, passages and a store; texts in, hits out, re-ranked; export and import."""

from munjang.index.index import Index, ModelMismatch
from munjang.types import Hit

__all__ = ["Hit", "Index", "ModelMismatch"]
