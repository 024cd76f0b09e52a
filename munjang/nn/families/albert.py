"""ALBERT: factorised embeddings, and a few blocks that all layers share."""

from dataclasses import replace

from munjang.nn.encoder import Architecture
from munjang.nn.families import bert
from munjang.nn.families.base import Config, Family, Names, dropout_of, linear, num_labels
from munjang.nn.heads import HeadShape
from munjang.nn.words import WordShape


def read(config: Config) -> Architecture:
    """Read the shape of ALBERT: BERT with a projection after the embeddings."""
    layers, groups = int(config["num_hidden_layers"]), int(config.get("num_hidden_groups", 1))
    inner = int(config.get("inner_group_num", 1))
    shape = bert.read({**config, "hidden_act": config.get("hidden_act", "gelu_new")})
    order = [
        group * inner + j for layer in range(layers) for group in [int(layer / (layers / groups))] for j in range(inner)
    ]
    return replace(
        shape,
        embedding_width=int(config.get("embedding_size", 128)),
        shared=tuple(order),
        num_layers=len(order),
        blocks_per_group=inner,
        down_dropout=0.0,  # transformers defines this dropout and never applies it
    )


def names(shape: Architecture) -> Names:
    """Map our tensors to the names of AlbertModel."""
    table: Names = {
        "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
        "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
        "embeddings.segment.weight": ("embeddings.token_type_embeddings.weight",),
        **linear("embeddings.norm", "embeddings.LayerNorm"),
        **linear("embeddings.project", "encoder.embedding_hidden_mapping_in"),
    }
    inner = shape.blocks_per_group
    for block in range(max(shape.shared) + 1):
        ours = f"blocks.{block}"
        theirs = f"encoder.albert_layer_groups.{block // inner}.albert_layers.{block % inner}"
        attention = f"{theirs}.attention"
        table |= linear(f"{ours}.qkv", f"{attention}.query", f"{attention}.key", f"{attention}.value")
        table |= linear(f"{ours}.out", f"{attention}.dense")
        table |= linear(f"{ours}.attention_norm", f"{attention}.LayerNorm")
        table |= linear(f"{ours}.up", f"{theirs}.ffn")
        table |= linear(f"{ours}.down", f"{theirs}.ffn_output")
        table |= linear(f"{ours}.inner_norm", f"{theirs}.full_layer_layer_norm")
    return table


def read_head(config: Config) -> HeadShape:
    """Read the head: pooler (dense, tanh), dropout, projection."""
    dropout = dropout_of(config, "classifier_dropout_prob")
    return HeadShape(config["hidden_size"], num_labels(config), "Tanh", dropout_out=dropout)


def read_words(config: Config) -> WordShape:
    """Read the word head, as narrow as the embeddings."""
    return bert.read_words({"hidden_act": "gelu_new", "embedding_size": 128, **config})


HEAD = {"dense": "albert.pooler", "out": "classifier"}
WORDS = bert.word_table(
    *("predictions.dense", "predictions.LayerNorm", "predictions.bias", "predictions.decoder.weight")
)
ALBERT = Family("Albert", "albert.", read, names, read_head, HEAD, read_words, WORDS)
