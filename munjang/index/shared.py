"""Dense, sparse and token vectors from one pass through the encoder that three heads share, as BGE-M3's do.

T tokens of a block, D dimensions.
"""

from collections.abc import Sequence

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.nn.network import SentenceNetwork
from munjang.nn.threads import run_in_thread
from munjang.sparse_encoder import SparseEncoder
from munjang.text.packing import pack
from munjang.types import Floats
from munjang.vectors.sparse import SparseVectors, join

SHARING_LAYOUT = "bge-m3"
BLOCK_TEXTS = 32  # a row of the sparse head is as wide as the vocabulary


def is_shared(dense: BiEncoder, sparse: SparseEncoder | None, late: MultiVectorEncoder | None) -> bool:
    """Tell whether three models are the heads of one encoder on one device, and their texts the same."""
    if sparse is None or late is None or not isinstance(dense.network, SentenceNetwork):
        return False
    others = (sparse, late)
    return all(
        other.model.layout == SHARING_LAYOUT
        and other.model.folder == dense.model.folder
        and (other.device, other.dtype, other.max_length) == (dense.device, dense.dtype, dense.max_length)
        and not any(other.prompts.values())
        for other in others
    ) and not any(dense.prompts.values())


def encode_once(
    dense: BiEncoder, sparse: SparseEncoder, late: MultiVectorEncoder, texts: Sequence[str], progress: bool | None
) -> tuple[Floats, SparseVectors, list[Floats]]:
    """Return what `encode_document` of each of the three gives."""
    states = dense.encode(list(texts), prompt="", output="tokens", progress=progress)
    ids = dense.tokenize(list(texts)).sequences
    dropped = late.dropped("document")
    vectors, rows, tokens = [np.zeros((0, dense.width), np.float32)], list[SparseVectors](), list[Floats]()

    def heads(block: slice) -> None:
        own, lengths = ids[block], np.array([len(each) for each in ids[block]], np.int64)
        batch = pack(np.concatenate([np.asarray(each, np.int32) for each in own]), lengths).to(dense.device)
        states_TD = torch.from_numpy(np.concatenate(states[block])).to(dense.device)
        with torch.inference_mode():
            network = dense.network
            assert isinstance(network, SentenceNetwork)
            vectors.append(network.head(states_TD, batch).float().cpu().numpy())
            rows.append(
                SparseVectors.of_dense(sparse.network.head(states_TD, batch, sparse.network.encoder).cpu().numpy())
            )
            projected_TD = late.network.project(states_TD).cpu().numpy()
        for each, vectors_TD in zip(own, np.split(projected_TD, np.cumsum(lengths)[:-1]), strict=True):
            tokens.append(vectors_TD[~np.isin(np.asarray(each), dropped)])

    for start in range(0, len(texts), BLOCK_TEXTS):
        run_in_thread(lambda start=start: heads(slice(start, start + BLOCK_TEXTS)))  # type: ignore[misc]
    return np.concatenate(vectors)[:, : dense.dimension], join(rows, sparse.dimension), tokens
