"""BERT, and with it RoBERTa, XLM-R, CamemBERT and ELECTRA: one layout of layers under four prefixes."""

from dataclasses import replace

from munjang.nn.encoder import Architecture
from munjang.nn.families.base import Config, Family, Names, dropout_of, linear, num_labels, refuse_decoders
from munjang.nn.heads import HeadShape
from munjang.nn.words import WordShape


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


def read_words(config: Config) -> WordShape:
    """Read BERT's word head; ELECTRA's and ALBERT's are as narrow as their embeddings."""
    return WordShape(
        config["hidden_size"],
        config.get("embedding_size") or config["hidden_size"],
        config["vocab_size"],
        config.get("hidden_act", "gelu"),
        config.get("layer_norm_eps", 1e-12),
    )


def read_gelu_words(config: Config) -> WordShape:
    """Read the word head of RoBERTa, MPNet or ELECTRA, which has GELU whatever the layers have."""
    return replace(read_words(config), activation="gelu")


def word_table(dense: str, norm: str, bias: str, words: str) -> dict[str, str]:
    """Name the parts of a word head."""
    return {"dense": dense, "norm": norm, "bias": bias, "words": words}


WORDS = word_table(
    *("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    *("cls.predictions.bias", "cls.predictions.decoder.weight"),
)
ROBERTA_WORDS = word_table("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder.weight")
ELECTRA_WORDS = word_table(
    *("generator_predictions.dense", "generator_predictions.LayerNorm"),
    *("generator_lm_head.bias", "generator_lm_head.weight"),
)
CLASSIFIER = {"dense": "classifier.dense", "out": "classifier.out_proj"}
POOLER = {"dense": "bert.pooler.dense", "out": "classifier"}
BERT = Family("Bert", "bert.", read, names, read_head, POOLER, read_words, WORDS)
ROBERTA, XLM_ROBERTA, CAMEMBERT = (
    Family(title, "roberta.", read_roberta, names, read_roberta_head, CLASSIFIER, read_gelu_words, ROBERTA_WORDS)
    for title in ("Roberta", "XLMRoberta", "Camembert")
)
ELECTRA = Family("Electra", "electra.", read, names, read_electra_head, CLASSIFIER, read_gelu_words, ELECTRA_WORDS)
