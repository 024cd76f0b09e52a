"""Let KeyBERT and BERTopic take a SentenceTransformer of ours as it is.

Both take subclasses of their own BaseEmbedder and replace what they don't know by a default model, silently. They are
optional and may be imported before or after a model is made, so a model answers isinstance when it is asked.
"""

import sys
from functools import cache
from typing import Any

from munjang.types import Floats

PACKAGES = ("keybert.backend", "bertopic.backend")


class Embedder:
    """The methods of BaseEmbedder, over `encode`."""

    word_embedding_model = None

    @property  # type: ignore[misc]  # isinstance asks for it after the type itself
    def __class__(self) -> Any:
        names = [name for name in PACKAGES if hasattr(sys.modules.get(name), "BaseEmbedder")]
        kind: Any = type(self)
        return _as_subclass(kind, *(sys.modules[name].BaseEmbedder for name in names)) if names else kind

    @property
    def embedding_model(self) -> Any:
        """Return the model: it is its own embedder."""
        return self

    def embed(self, documents: Any, verbose: bool = False) -> Floats:
        """Return vectors of texts, given as a list or an array."""
        vectors: Floats = self.encode([str(text) for text in documents], show_progress_bar=verbose)  # type: ignore[attr-defined]
        return vectors

    def embed_documents(self, document: Any, verbose: bool = False) -> Floats:
        """Return vectors of documents."""
        return self.embed(document, verbose)

    def embed_words(self, words: Any, verbose: bool = False) -> Floats:
        """Return vectors of words."""
        return self.embed(words, verbose)

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        # pickle refuses objects whose __class__ is not their type
        return _new, (type(self),), self.__getstate__()


@cache
def _as_subclass(kind: Any, *bases: Any) -> Any:
    return type(kind.__name__, (kind, *bases), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def _new(kind: type) -> Any:
    return object.__new__(kind)
