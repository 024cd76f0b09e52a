"""Token states of an encoder, which the heads of new models are fitted to.    N tokens, D width of the encoder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from munjang import checkpoint
from munjang.engine.engine import Engine
from munjang.engine.late import TokenEncoding
from munjang.engine.run import Executor
from munjang.nn.late import TokenNetwork
from munjang.types import Floats, Ids

MAX_TEXTS = 500  # some 100,000 tokens, for matrices of the encoder's width


def token_states(folder: Path, texts: Sequence[str], device: torch.device) -> tuple[Floats, list[Ids]]:
    """Return the states of the tokens of texts [N, D], and the ids of each text; of many texts, some from all over."""
    some = list(texts[:: -(-len(texts) // MAX_TEXTS)]) if texts else []
    encoder, model = checkpoint.new_encoder(folder)
    network = TokenNetwork(encoder, []).to_compute(device, torch.float32)
    engine = Engine(network, model.tokenizer, Executor(network, device, None))
    computed = engine.compute(some, TokenEncoding(), False)
    tokens = model.tokenizer(some)
    ids_of_texts = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
    rows: list[Floats] = computed.spread(computed.rows)
    return np.concatenate(rows), ids_of_texts
