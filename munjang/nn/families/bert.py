"""BERT, and with it RoBERTa, XLM-R, CamemBERT and ELECTRA: one layout of layers under four prefixes."""

from dataclasses import replace

from munjang.nn.encoder import Architecture
from munjang.nn.families.base import Config, Family, Names, dropout_of, linear, num_labels, refuse_decoders
from munjang.nn.heads import HeadShape


def read(config: Config) -> Architecture:
    """Read the shape of BERT or ELECTRA: positions count from 0."""
    refuse_decoders(config)
    dropout = dropout_of(config, "hidden_dropout_prob")
    width = int(config["hidden_size"])
    narrow = int(config.get("embedding_size") or width)
    return Architecture(
        vocab_size=config["vocab_size"],
        width=width,
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        inner_width=config["intermediate_size"],
        activation=config.get("hidden_act", "gelu"),
        norm_eps=config.get("layer_norm_eps", 1e-12),
        max_positions=config["max_position_embeddings"],
        max_tokens=config["max_position_embeddings"],
        embedding_width=0 if narrow == width else narrow,
        num_types=config.get("type_vocab_size", 2),
        embedding_dropout=dropout,
        attention_dropout=dropout_of(config, "attention_probs_dropout_prob"),
        out_dropout=dropout,
        down_dropout=dropout,
    )


def read_roberta(config: Config) -> Architecture:
    """Read the shape of RoBERTa: positions count from pad + 1, which shortens the longest text."""
    pad = int(config.get("pad_token_id", 1))
    shape = read(config)
    return replace(shape, pad_id=pad, max_tokens=shape.max_positions - pad - 1)


def names(shape: Architecture) -> Names:
    """Map our tensors to the names of BertModel."""
    table: Names = {"embeddings.word.weight": ("embeddings.word_embeddings.weight",)}
    table["embeddings.position.weight"] = ("embeddings.position_embeddings.weight",)
    if shape.num_types:
        table["embeddings.segment.weight"] = ("embeddings.token_type_embeddings.weight",)
    table |= linear("embeddings.norm", "embeddings.LayerNorm")
    if shape.embedding_width:
        table |= linear("embeddings.project", "embeddings_project")
    for layer in range(shape.num_layers):
        ours, theirs = f"blocks.{layer}", f"encoder.layer.{layer}"
        attention = f"{theirs}.attention.self"
        table |= linear(f"{ours}.qkv", f"{attention}.query", f"{attention}.key", f"{attention}.value")
        table |= linear(f"{ours}.out", f"{theirs}.attention.output.dense")
        table |= linear(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
        table |= linear(f"{ours}.up", f"{theirs}.intermediate.dense")
        table |= linear(f"{ours}.down", f"{theirs}.output.dense")
        table |= linear(f"{ours}.inner_norm", f"{theirs}.output.LayerNorm")
    return table


def read_head(config: Config) -> HeadShape:
    """Read BERT's head: pooler (dense, tanh), dropout, projection."""
    dropout = dropout_of(config, "classifier_dropout", "hidden_dropout_prob")
    return HeadShape(config["hidden_size"], num_labels(config), "Tanh", dropout_out=dropout)


def read_roberta_head(config: Config) -> HeadShape:
    """Read RoBERTa's head: dropout, dense, tanh, dropout, projection."""
    dropout = dropout_of(config, "classifier_dropout", "hidden_dropout_prob")
    return HeadShape(config["hidden_size"], num_labels(config), "Tanh", dropout, dropout)


def read_electra_head(config: Config) -> HeadShape:
    """Read ELECTRA's head: dropout, dense, GELU, dropout, projection, as in our own head."""
    dropout = dropout_of(config, "classifier_dropout", "hidden_dropout_prob")
    return HeadShape(config["hidden_size"], num_labels(config), "GELU", dropout, dropout)


CLASSIFIER = {"dense": "classifier.dense", "out": "classifier.out_proj"}
BERT = Family("Bert", "bert.", read, names, read_head, {"dense": "bert.pooler.dense", "out": "classifier"})
ROBERTA = Family("Roberta", "roberta.", read_roberta, names, read_roberta_head, CLASSIFIER)
XLM_ROBERTA = Family("XLMRoberta", "roberta.", read_roberta, names, read_roberta_head, CLASSIFIER)
CAMEMBERT = Family("Camembert", "roberta.", read_roberta, names, read_roberta_head, CLASSIFIER)
ELECTRA = Family("Electra", "electra.", read, names, read_electra_head, CLASSIFIER)
