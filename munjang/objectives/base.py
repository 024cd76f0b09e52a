"""What an objective is: a function of what the network made of a batch and of what is known about it.

B examples, D width of a vector, C labels, L layers, T tokens.

It declares what it needs and the training step supplies it (training/step.py). It may own parameters, such as the
softmax head; it never calls or holds the encoder. To add one: a file here, and a line in OBJECTIVES.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from torch import Tensor, nn

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
NEEDS = ("embeddings", "logits", "layers", "token_states")


class Objective(nn.Module):
    """A loss, lower is better, and what it has to be given."""

    # embeddings: [B, D] for each text column, pass by pass
    # logits: [B, C] for each pair: two columns are one pair; of more, the first is paired with every other
    # layers: [B, L, D] for each text column, the vectors that pooling after each layer gives, last layer last
    # token_states: [T, D], once
    needs: str = "embeddings"
    num_texts: tuple[int, int | None] = (2, 2)  # text columns: at least, at most (None: any number)
    extras: tuple[str, ...] = ()
    passes: int = 1  # how often every text goes through the network, with other dropout each time
    # The loss is the mean of what each example costs by itself, so that a batch can be computed part by part. Others
    # compare examples of the batch with each other: they see all of it, from all processes.
    is_separable: bool = False
    can_be_cached: bool = True  # whether the network's outputs are all that its gradient goes through
    is_by_component: bool = False  # whether vectors meet the teacher's component by component, not by cosines
    corruption: str | None = None  # what is done to the texts before: delete (tokens), mask (tokens)
    num_sampled: int = 0  # cross-encoders: documents of other examples that each query is paired with as well

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        """The mean loss over `size` items."""
        raise NotImplementedError

    def size(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor | int:
        """How many items `forward` averages over, to put the parts of a batch together."""
        return len(outputs[0])
