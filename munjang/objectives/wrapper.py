"""An objective around another one.    Where a new one goes: a file here, and a line in WRAPPERS."""

from collections.abc import Sequence

from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras, Objective


class Wrapper(Objective):
    """Asks for what the objective inside asks for."""

    around: tuple[str, ...] = ("embeddings",)  # what the objective inside may need

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        if objective.needs not in self.around:
            raise InputError(
                f"{type(self).__name__} is for objectives over {' or '.join(self.around)}; "
                f"{type(objective).__name__} is over {objective.needs}."
            )
        self.objective = objective
        self.needs, self.num_texts, self.extras = objective.needs, objective.num_texts, objective.extras
        self.passes, self.corruption = objective.passes, objective.corruption
        self.is_separable, self.can_be_cached = objective.is_separable, objective.can_be_cached
        self.num_sampled, self.is_by_component = objective.num_sampled, objective.is_by_component

    @property
    def innermost(self) -> Objective:
        """The objective that all wrappers are around."""
        return self.objective.innermost if isinstance(self.objective, Wrapper) else self.objective

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor | int:
        return self.objective.size(outputs, extras)
