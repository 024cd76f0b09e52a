"""AdamW with rates by layer, the schedule of the rate, and a moving average of the weights."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from munjang.training.config import TrainConfig

Named = list[tuple[str, nn.Parameter]]


def linear(done: float) -> float:
    """Fall from 1 to 0."""
    return 1 - done


def cosine(done: float) -> float:
    """Fall from 1 to 0, slowly at both ends."""
    return (1 + math.cos(math.pi * done)) / 2


SCHEDULES: dict[str, Callable[[float], float]] = {"linear": linear, "cosine": cosine, "constant": lambda done: 1.0}


def rate_at(step: int, num_steps: int, config: TrainConfig) -> float:
    """Return the fraction of the peak learning rate in update `step` (from 0).

    >>> [round(rate_at(step, 10, TrainConfig(warmup=0.2)), 2) for step in range(10)]
    [0.5, 1.0, 1.0, 0.88, 0.75, 0.62, 0.5, 0.38, 0.25, 0.12]
    """
    num_warmup = math.ceil(config.warmup * num_steps)
    if step < num_warmup:
        return (step + 1) / num_warmup
    return SCHEDULES[config.schedule]((step - num_warmup) / max(num_steps - num_warmup, 1))


class Optimizer:
    """AdamW over the network and the objectives' own parameters."""

    def __init__(self, network: nn.Module, objectives: Sequence[nn.Module], config: TrainConfig) -> None:
        self.config = config
        self.norm: Tensor | None = None  # of the last gradient, where it is clipped
        # of an update and the number of updates, as a fraction of the peak
        self.rate_at: Callable[[int, int], float] = partial(rate_at, config=config)
        self.named: Named = [(f"network.{name}", p) for name, p in network.named_parameters() if p.requires_grad]
        for place, objective in enumerate(objectives):
            self.named += [(f"objectives.{place}.{name}", p) for name, p in objective.named_parameters()]
        depths = _depths(network)
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for name, parameter in self.named:
            rate = config.learning_rate * config.layer_decay ** depths.get(id(parameter), 0)
            if name.startswith(("objectives.", "network.head.")):  # the second: a cross-encoder's own
                rate = config.learning_rate if config.head_rate is None else config.head_rate
            decay = config.weight_decay if parameter.ndim > 1 else 0.0  # biases and norms are left alone
            groups.setdefault((rate, decay), []).append(parameter)
        # one pass over the weights instead of ten; a third of an update's time on a CPU with small batches
        is_fused = all(p.device.type in ("cpu", "cuda") for _, p in self.named)
        self.adam = torch.optim.AdamW(
            [
                {"params": parameters, "peak_rate": rate, "weight_decay": decay}
                for (rate, decay), parameters in groups.items()
            ],
            lr=config.learning_rate,
            fused=is_fused,
            foreach=None if is_fused else True,
        )

    def update(self, step: int, num_steps: int) -> None:
        """Update the parameters, and clear the gradients."""
        if self.config.clip is not None:
            self.norm = nn.utils.clip_grad_norm_([p for _, p in self.named], self.config.clip, foreach=True)
        fraction = self.rate_at(step, num_steps)
        for group in self.adam.param_groups:
            group["lr"] = group["peak_rate"] * fraction
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return AdamW's state by parameter name."""
        return {
            f"{key}.{name}": value
            for name, parameter in self.named
            for key, value in self.adam.state.get(parameter, {}).items()
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Load what `state` returned."""
        for name, parameter in self.named:
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = state.get(f"{key}.{name}")
                if value is not None:
                    # AdamW counts on the host, unless it is fused
                    where = parameter.device if key != "step" or self.adam.defaults["fused"] else torch.device("cpu")
                    self.adam.state[parameter][key] = value.to(where)


def _depths(network: nn.Module) -> dict[int, int]:
    """Count the layers above each parameter of the encoder."""
    encoder = getattr(getattr(network, "encoder", None), "own", None)
    if encoder is None:
        return {}
    top = len(encoder.blocks)
    depths = {id(p): top for p in encoder.parameters()}  # embeddings, until a block says otherwise
    for at, block in enumerate(encoder.blocks):
        depths |= {id(p): top - 1 - at for p in block.parameters()}
    if encoder.final_norm is not None:
        depths |= {id(p): 0 for p in encoder.final_norm.parameters()}
    return depths


class Average:
    """A moving average of the network's weights, which is evaluated and saved."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.network = network
        self.weights = {name: p.detach().clone() for name, p in network.named_parameters()}

    def update(self, step: int) -> None:
        """Follow an update; young averages forget faster, or the start would dominate a short run."""
        decay = min(self.decay, (1 + step) / (10 + step))
        parameters = [p.detach() for _, p in self.network.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), parameters, 1 - decay)
