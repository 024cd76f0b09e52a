"""Networks as small as can be, and the batches that go through them."""

from concurrent.futures import Future

import numpy as np
import torch
from torch import Tensor

from munjang.engine.pack import Batch
from munjang.engine.run import Executor, Forward, Result
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.text.packing import Packed, pack

CPU = torch.device("cpu")


def mean_of_ids() -> SentenceNetwork:
    """The mean of a text's ids."""
    return SentenceNetwork(StaticEncoder(torch.arange(1000.0)[:, None]), ("mean",), [])


def first_ids(batch: Packed) -> Tensor:
    """The first id of each text."""
    return batch.ids_T[batch.starts_B[:-1].long()].float()[:, None]


def batch_of(lengths: list[int]) -> Packed:
    return pack(np.arange(sum(lengths), dtype=np.int32), np.array(lengths, np.int64))


def submit(executor: Executor, packed: Packed, forward: Forward, is_one_of_many: bool = False) -> "Future[Result]":
    return executor.submit(Batch(np.arange(len(packed.lengths)), packed, is_one_of_many), forward)
