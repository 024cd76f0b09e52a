"""DistilBERT: BERT without segments, half as deep, under names of its own."""

from munjang.nn.encoder import Architecture
from munjang.nn.families.base import Config, Family, Names, dropout_of, linear, num_labels
from munjang.nn.families.bert import word_table
from munjang.nn.heads import HeadShape
from munjang.nn.words import WordShape


def read(config: Config) -> Architecture:
    """Read the shape of DistilBERT, whose config.json has key names of its own."""
    dropout = dropout_of(config, "dropout")
    return Architecture(
        vocab_size=config["vocab_size"],
        width=config["dim"],
        num_layers=config["n_layers"],
        num_heads=config["n_heads"],
        inner_width=config["hidden_dim"],
        activation=config.get("activation", "gelu"),
        norm_eps=1e-12,
        max_positions=config["max_position_embeddings"],
        max_tokens=config["max_position_embeddings"],
        embedding_dropout=dropout,
        attention_dropout=dropout_of(config, "attention_dropout"),
        down_dropout=dropout,
    )


def names(shape: Architecture) -> Names:
    """Map our tensors to the names of DistilBertModel."""
    table: Names = {
        "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
        "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
        **linear("embeddings.norm", "embeddings.LayerNorm"),
    }
    for layer in range(shape.num_layers):
        ours, theirs = f"blocks.{layer}", f"transformer.layer.{layer}"
        attention = f"{theirs}.attention"
        table |= linear(f"{ours}.qkv", f"{attention}.q_lin", f"{attention}.k_lin", f"{attention}.v_lin")
        table |= linear(f"{ours}.out", f"{attention}.out_lin")
        table |= linear(f"{ours}.attention_norm", f"{theirs}.sa_layer_norm")
        table |= linear(f"{ours}.up", f"{theirs}.ffn.lin1")
        table |= linear(f"{ours}.down", f"{theirs}.ffn.lin2")
        table |= linear(f"{ours}.inner_norm", f"{theirs}.output_layer_norm")
    return table


def read_head(config: Config) -> HeadShape:
    """Read the head: dense, ReLU, dropout, projection."""
    dropout = float(config.get("seq_classif_dropout", 0.2))
    return HeadShape(config["dim"], num_labels(config), "ReLU", dropout_out=dropout)


def read_words(config: Config) -> WordShape:
    """Read the word head."""
    return WordShape(config["dim"], config["dim"], config["vocab_size"], config.get("activation", "gelu"))


HEAD = {"dense": "pre_classifier", "out": "classifier"}
WORDS = word_table("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector.weight")
DISTILBERT = Family("DistilBert", "distilbert.", read, names, read_head, HEAD, read_words, WORDS)
