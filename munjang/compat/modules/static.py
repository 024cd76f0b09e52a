"""StaticEmbedding under their name: a table of token vectors and their mean."""

import math
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from munjang.compat.gaps import STATIC, NotCovered
from munjang.compat.modules.module import Features, InputModule


class StaticEmbedding(InputModule):
    """The mean of token vectors from a table."""

    def __init__(
        self,
        tokenizer: Any,
        embedding_weights: Any = None,
        embedding_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        tokenizer = getattr(tokenizer, "_tokenizer", tokenizer)  # of transformers
        if not isinstance(tokenizer, Tokenizer):
            raise ValueError(
                "The tokenizer must be fast (i.e. Rust-backed) to use this class. "
                "Use Tokenizer.from_pretrained() from `tokenizers` to load a fast tokenizer."
            )
        if embedding_weights is not None:
            self.embedding = nn.EmbeddingBag.from_pretrained(torch.as_tensor(embedding_weights), freeze=False)
        elif embedding_dim is not None:
            self.embedding = nn.EmbeddingBag(tokenizer.get_vocab_size(), embedding_dim)
        else:
            raise ValueError("Either `embedding_weights` or `embedding_dim` must be provided.")
        self.tokenizer = tokenizer
        self.tokenizer.no_padding()
        self.num_embeddings, self.embedding_dim = self.embedding.num_embeddings, self.embedding.embedding_dim
        self.base_model = kwargs.get("base_model")

    @classmethod
    def around(cls, tokenizer: Tokenizer, table: nn.Embedding) -> Self:
        """Put a table of ours under their name, over the same weights."""
        made = cls(tokenizer, embedding_dim=1)
        made.embedding = nn.EmbeddingBag.from_pretrained(table.weight, freeze=False)
        made.embedding.weight = table.weight
        made.num_embeddings, made.embedding_dim = table.num_embeddings, table.embedding_dim
        return made

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> Features:
        """Return the ids of all texts in a row, and where each begins."""
        texts = self._prepend_prompt(inputs, prompt) if prompt else list(inputs)
        ids = [each.ids for each in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        starts = np.cumsum([0, *(len(row) for row in ids[:-1])])
        flat = torch.tensor([token for row in ids for token in row], dtype=torch.long)
        return {"input_ids": flat, "offsets": torch.from_numpy(starts)}

    def forward(self, features: Features, **kwargs: Any) -> Features:
        vectors: Tensor = self.embedding(features["input_ids"], features["offsets"])
        features["sentence_embedding"] = vectors
        return features

    @property
    def max_seq_length(self) -> float:
        """Return the maximum number of tokens: there is none."""
        return math.inf

    def get_embedding_dimension(self) -> int:
        """Return the width of a vector."""
        return self.embedding_dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the table and the tokenizer."""
        self.save_torch_weights(output_path, safe_serialization)
        self.tokenizer.save(str(Path(output_path) / "tokenizer.json"))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:
        path = cls.load_file_path(model_name_or_path, "tokenizer.json", subfolder, **kwargs)
        weights = cls.load_torch_weights(model_name_or_path, subfolder, **kwargs)
        table = weights["embedding.weight"] if "embedding.weight" in weights else weights["embeddings"]
        return cls(Tokenizer.from_file(str(path)), embedding_weights=table)

    @classmethod
    def from_model2vec(cls, model_id_or_path: str) -> Self:
        """Read a folder of model2vec."""
        from munjang.bi_encoder import BiEncoder

        model = BiEncoder.load(model_id_or_path, dtype="float32").model
        assert model.network.encoder.table is not None
        made = cls.around(Tokenizer.from_str(model.tokenizer.rust.to_str()), model.network.encoder.table)
        made.base_model = model_id_or_path
        return made

    @classmethod
    def from_distillation(cls, model_name: str, **kwargs: Any) -> Self:
        """Refuse: our own distillation does it, with more settings."""
        raise NotCovered(f"munjang.compat does not cover StaticEmbedding.from_distillation. {STATIC}")
