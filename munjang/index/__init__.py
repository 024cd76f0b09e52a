"""Index: a model, passages and a store; texts in, hits out, re-ranked; export and import."""

from munjang.index.encoders import ModelMismatch
from munjang.index.index import Index
from munjang.types import Hit

__all__ = ["Hit", "Index", "ModelMismatch"]
