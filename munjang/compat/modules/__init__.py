"""Building blocks under their names: SentenceTransformer(modules=[Transformer(...), Pooling(...), Dense(...)])."""

from munjang.compat.modules.layers import Dense, Dropout, LayerNorm, Normalize
from munjang.compat.modules.module import InputModule, Module
from munjang.compat.modules.pooling import Pooling
from munjang.compat.modules.router import Asym, Router
from munjang.compat.modules.static import StaticEmbedding
from munjang.compat.modules.transformer import Transformer

__all__ = [
    "Asym",
    "Dense",
    "Dropout",
    "InputModule",
    "LayerNorm",
    "Module",
    "Normalize",
    "Pooling",
    "Router",
    "StaticEmbedding",
    "Transformer",
]
