"""What a cross-encoder's logit goes through before an objective looks at it."""

from collections.abc import Callable

import torch
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"identity": lambda logits: logits, "sigmoid": torch.sigmoid}
