"""LoRA through peft: small adapters beside the encoder's weights are trained, and folded into them at the end."""

from typing import Any, TypeVar

from torch import nn

from munjang.errors import MissingExtra, UnsupportedModel
from munjang.nn.network import EncoderNetwork

N = TypeVar("N", bound=nn.Module)
# not `up`: it is computed together with its activation, before which an adapter would have to be added
TARGETS = ["qkv", "out", "down"]


def add_adapters(network: EncoderNetwork, rank: int) -> None:
    """Freeze the encoder and add adapters of this rank to its linear layers; layers after it keep learning."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise MissingExtra("peft", "lora", "Training adapters (LoRA)") from None
    encoder = network.encoder.own
    if encoder is None:
        raise UnsupportedModel("lora_rank is for encoders that Munjang computes itself.")
    encoder.requires_grad_(False)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=TARGETS, lora_dropout=0.0)
    inject_adapter_in_model(config, encoder)


def merge(network: N) -> N:
    """Fold adapters into the weights; a network without them stays as it is."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            adapted: Any = child
            if hasattr(adapted, "lora_A"):
                adapted.merge()
                setattr(parent, name, adapted.get_base_layer())
    return network
