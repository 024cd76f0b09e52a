"""GISTEmbedLoss: a second model tells which in-batch negatives are false."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from munjang.compat.losses.base import Loss, embed
from munjang.compat.util import batch_to_device


class Guided(Loss):
    """A loss whose guide reads the same texts."""

    guide: Any

    def __init__(self, model: Any, guide: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, guide, *args, **kwargs)
        self.guide = guide
        self._vectors: Tensor | None = None
        same = model.tokenizer.get_vocab() == guide.tokenizer.get_vocab()
        self.must_retokenize = not same or guide.max_seq_length < model.max_seq_length

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        columns = list(sentence_features)
        with torch.no_grad():
            found = [self._guided(dict(column)) for column in columns]
        self._vectors = torch.stack(found, dim=1)
        return super().forward(columns, labels)

    def _guided(self, features: dict[str, Any]) -> Tensor:
        if self.must_retokenize:
            texts = self.model.tokenizer.batch_decode(features["input_ids"], skip_special_tokens=True)
            features = batch_to_device(self.guide.preprocess(texts), self.guide.device)
        return embed(self.guide, features)

    def extras(self, embeddings: Sequence[Tensor], labels: Tensor | None) -> Mapping[str, Tensor]:
        assert self._vectors is not None
        return {**super().extras(embeddings, labels), "guide": self._vectors.to(embeddings[0].device)}
