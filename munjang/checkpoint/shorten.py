"""Take layers out of a model, to make a smaller one that then learns from the larger one."""

from dataclasses import replace

from torch import nn

from munjang.checkpoint.model import Model
from munjang.errors import InputError, UnsupportedModel
from munjang.nn.encoder import Block

NUM_LAYERS_KEYS = ("num_hidden_layers", "n_layers")  # of config.json; the second is DistilBERT's


def shorten(model: Model, num_layers: int) -> tuple[int, ...]:
    """Keep so many layers, evenly spaced, the last one among them; return their numbers, from 0.

    The network is changed in place. Its vectors are poor until it is trained.
    """
    encoder = model.network.encoder.own
    if encoder is None or encoder.shape.windows or encoder.shape.shared:
        raise UnsupportedModel("Layers can be taken out only of encoders of the BERT family that do not share layers.")
    shape = encoder.shape
    if not 1 <= num_layers <= shape.num_layers:
        raise InputError(f"layers must be between 1 and the model's {shape.num_layers}, not {num_layers}.")
    kept = tuple((number + 1) * shape.num_layers // num_layers - 1 for number in range(num_layers))
    encoder.blocks = nn.ModuleList(encoder.blocks[layer] for layer in kept)
    encoder.order = tuple(range(num_layers))
    encoder.shape = replace(shape, num_layers=num_layers)
    for block in encoder.blocks:
        assert isinstance(block, Block)
        block.shape = encoder.shape
    model.config = {key: num_layers if key in NUM_LAYERS_KEYS else value for key, value in model.config.items()}
    return kept
