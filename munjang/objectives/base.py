"""Define an objective: a loss computed from the network's outputs for a batch and from what is known about the batch.

B examples, D dimension of a vector, C labels, L layers, T tokens.

An objective declares what it needs, and the training step supplies it (training/step.py). It may own parameters, such
as the softmax head; it never calls or holds the encoder. To add one: a file here, and a line in OBJECTIVES. Contract
tests, documents and command line read everything else off the class; the first line of its docstring says what is
minimised.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from torch import Tensor, nn

from munjang.errors import InputError, unknown

# What the step can supply beside the network's outputs, each with one row per example:
#   labels    int64 [B]             class of the example
#   scores    float32 [B] or [B, K] how similar its texts are, 0 to 1; or a teacher's score of each candidate,
#                                   on the teacher's own scale, NaN where there is no such candidate
#   texts     int64 [B, columns]    the same number for equal texts
#   teacher   float32 [B, columns, Dt] another model's vectors of the same texts
#   guide     float32 [B, columns, Dg] a second model's unit vectors, which tell false negatives
#   targets   int64 [T]             ids to be predicted, IGNORED where nothing is; text by text
#   lengths   int64 [B]             how many of `targets` each text has
#   words     float32 [V, D]        the encoder's word embeddings
Extras: TypeAlias = Mapping[str, Tensor]

IGNORED = -100  # a target that does not count
NEEDS = ("embeddings", "logits", "layers", "token_states", "token_vectors")
Entry = TypeVar("Entry")


class Objective(nn.Module):
    """A loss, lower is better, and a declaration of its inputs."""

    # embeddings: [B, D] for each text column, pass by pass
    # logits: [B, C] for each pair: two columns are one pair; of more, the first is paired with every other
    # layers: [B, L, D] for each text column, the vectors that pooling after each layer gives, last layer last
    # token_states: [T, D], once
    # token_vectors: a list of the token vectors [T, D] of each example, for each text column
    needs: str = "embeddings"
    num_texts: tuple[int, int | None] = (2, 2)  # text columns: at least, at most (None: any number)
    extras: tuple[str, ...] = ()
    passes: int = 1  # how often every text goes through the network, with other dropout each time
    # The loss is the mean of the costs of single examples, so that a batch can be computed in micro-batches. Other
    # objectives compare examples of the batch with each other: they see all of it, from all processes.
    is_separable: bool = False
    can_be_cached: bool = True  # whether its gradient goes through the network's outputs only
    is_by_component: bool = False  # compares vectors with the teacher's component by component, not by cosines
    has_logit_per_label: bool = False  # cross-encoders: one output for each label, even for two labels
    takes_margins: bool = False  # scores may be the teacher's margins over the first candidate instead
    corruption: str | None = None  # what is done to the texts before: delete (tokens), mask (tokens)
    num_sampled: int = 0  # cross-encoders: documents of other examples that each query is paired with as well
    sampler: str = "random"  # of data/sampling.py, where the user chooses none

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        """Return the mean loss over `size` items."""
        raise NotImplementedError

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor | int:
        """Count the items that `forward` averages over, to combine the losses of micro-batches."""
        return len(outputs[0])


class Wrapper(Objective):
    """An objective around another one, with the same inputs. To add one: a file here, and a line in WRAPPERS."""

    around: tuple[str, ...] = ("embeddings",)  # what the objective inside may need

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        if objective.needs not in self.around:
            raise InputError(
                f"{type(self).__name__} is for objectives over {' or '.join(self.around)}; "
                f"{type(objective).__name__} is over {objective.needs}."
            )
        self.objective = objective
        for declaration in Objective.__annotations__:
            setattr(self, declaration, getattr(objective, declaration))

    @property
    def innermost(self) -> Objective:
        """Return the objective inside all wrappers."""
        return self.objective.innermost if isinstance(self.objective, Wrapper) else self.objective

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor | int:
        return self.objective.size(outputs, extras)


def choose(option: str, value: str, table: Mapping[str, Entry]) -> Entry:
    """Return a table's entry, or raise an error that lists all of them.

    >>> choose("sign", "minus", {"plus": 1, "minus": -1})
    -1
    """
    if value not in table:
        raise unknown(option, value, table)
    return table[value]


def positive(option: str, value: float) -> float:
    """Return a number over zero, or raise an error."""
    if not 0 < value < float("inf"):
        raise InputError(f"{option} is {value}; it has to be a number over 0.")
    return value
