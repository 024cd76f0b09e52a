"""MPNet: BERT without segments, with a bias by relative position that all layers share."""

from dataclasses import replace

from munjang.nn.encoder import Architecture
from munjang.nn.families import bert
from munjang.nn.families.base import Config, Family, Names, linear


def read(config: Config) -> Architecture:
    """Read the shape of MPNet: positions as in RoBERTa, from a padding id fixed at 1."""
    shape = bert.read_roberta({**config, "pad_token_id": 1})
    return replace(shape, num_types=0, num_buckets=config.get("relative_attention_num_buckets", 32))


def names(shape: Architecture) -> Names:
    """Map our tensors to the names of MPNetModel."""
    table: Names = {
        "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
        "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
        "relative.weight": ("encoder.relative_attention_bias.weight",),
        **linear("embeddings.norm", "embeddings.LayerNorm"),
    }
    for layer in range(shape.num_layers):
        ours, theirs = f"blocks.{layer}", f"encoder.layer.{layer}"
        attention = f"{theirs}.attention.attn"
        table |= linear(f"{ours}.qkv", f"{attention}.q", f"{attention}.k", f"{attention}.v")
        table |= linear(f"{ours}.out", f"{attention}.o")
        table |= linear(f"{ours}.attention_norm", f"{theirs}.attention.LayerNorm")
        table |= linear(f"{ours}.up", f"{theirs}.intermediate.dense")
        table |= linear(f"{ours}.down", f"{theirs}.output.dense")
        table |= linear(f"{ours}.inner_norm", f"{theirs}.output.LayerNorm")
    return table


HEAD = (bert.read_roberta_head, bert.CLASSIFIER)
MPNET = Family("MPNet", "mpnet.", read, names, *HEAD, bert.read_gelu_words, bert.ROBERTA_WORDS)
