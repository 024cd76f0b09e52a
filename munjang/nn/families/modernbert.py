"""ModernBERT: rotary positions, local and global layers, gated feed-forward parts, norms in front."""

from munjang.nn.encoder import Architecture
from munjang.nn.families.base import Config, Family, Names, linear, num_labels
from munjang.nn.families.bert import word_table
from munjang.nn.heads import HeadShape
from munjang.nn.words import WordShape

HEAD_ACTIVATIONS = {"gelu": "GELU", "relu": "ReLU", "silu": "SiLU", "tanh": "Tanh"}


def read(config: Config) -> Architecture:
    """Read the shape of ModernBERT: global and local layers, each kind with a rotary base of its own."""
    layers = int(config["num_hidden_layers"])
    every = int(config.get("global_attn_every_n_layers", 3))
    kinds = config.get("layer_types") or ["sliding_attention" if i % every else "full_attention" for i in range(layers)]
    rope = config.get("rope_parameters") or {}
    bases = {
        "full_attention": rope.get("full_attention", {}).get("rope_theta", config.get("global_rope_theta", 160_000.0)),
        "sliding_attention": rope.get("sliding_attention", {}).get(
            "rope_theta", config.get("local_rope_theta") or 10_000.0
        ),
    }
    window = int(config.get("local_attention", 128)) // 2
    attention_dropout = float(config.get("attention_dropout", 0.0))
    return Architecture(
        vocab_size=config["vocab_size"],
        width=config["hidden_size"],
        num_layers=layers,
        num_heads=config["num_attention_heads"],
        inner_width=config["intermediate_size"],
        activation=config.get("hidden_activation", "gelu"),
        norm_eps=config.get("norm_eps", 1e-5),
        max_positions=config["max_position_embeddings"],
        max_tokens=config["max_position_embeddings"],
        has_positions=False,
        is_pre_norm=True,
        has_gate=True,
        has_norm_bias=config.get("norm_bias", False),
        has_attention_bias=config.get("attention_bias", False),
        has_inner_bias=config.get("mlp_bias", False),
        rotary_bases=tuple(float(bases[kind]) for kind in kinds),
        windows=tuple(window if kind == "sliding_attention" else None for kind in kinds),
        embedding_dropout=float(config.get("embedding_dropout", 0.0)),
        attention_dropout=attention_dropout,
        out_dropout=attention_dropout,
        inner_dropout=float(config.get("mlp_dropout", 0.0)),
    )


def names(shape: Architecture) -> Names:
    """Map our tensors to the names of ModernBertModel, which fuses query, key and value as we do."""
    table: Names = {"embeddings.word.weight": ("embeddings.tok_embeddings.weight",)}
    table |= linear("embeddings.norm", "embeddings.norm", bias=shape.has_norm_bias)
    for layer in range(shape.num_layers):
        ours, theirs = f"blocks.{layer}", f"layers.{layer}"
        table |= linear(f"{ours}.qkv", f"{theirs}.attn.Wqkv", bias=shape.has_attention_bias)
        table |= linear(f"{ours}.out", f"{theirs}.attn.Wo", bias=shape.has_attention_bias)
        if layer:
            table |= linear(f"{ours}.attention_norm", f"{theirs}.attn_norm", bias=shape.has_norm_bias)
        table |= linear(f"{ours}.up", f"{theirs}.mlp.Wi", bias=shape.has_inner_bias)
        table |= linear(f"{ours}.down", f"{theirs}.mlp.Wo", bias=shape.has_inner_bias)
        table |= linear(f"{ours}.inner_norm", f"{theirs}.mlp_norm", bias=shape.has_norm_bias)
    return table | linear("final_norm", "final_norm", bias=shape.has_norm_bias)


def read_head(config: Config) -> HeadShape:
    """Read the head: dense, activation, norm, dropout, projection, over CLS or the mean."""
    return HeadShape(
        config["hidden_size"],
        num_labels(config),
        HEAD_ACTIVATIONS[config.get("classifier_activation", "gelu")],
        dropout_out=float(config.get("classifier_dropout", 0.0)),
        pooling=config.get("classifier_pooling", "cls"),
        has_dense_bias=config.get("classifier_bias", False),
        has_norm=True,
        has_norm_bias=config.get("norm_bias", False),
        norm_eps=config.get("norm_eps", 1e-5),
    )


def read_words(config: Config) -> WordShape:
    """Read the word head, whose first half is that of the classifier."""
    return WordShape(
        config["hidden_size"],
        config["hidden_size"],
        config["vocab_size"],
        config.get("classifier_activation", "gelu"),
        config.get("norm_eps", 1e-5),
        has_dense_bias=config.get("classifier_bias", False),
        has_norm_bias=config.get("norm_bias", False),
        has_bias=config.get("decoder_bias", True),
    )


HEAD = {"dense": "head.dense", "norm": "head.norm", "out": "classifier"}
WORDS = word_table("head.dense", "head.norm", "decoder.bias", "decoder.weight")
MODERNBERT = Family("ModernBert", "model.", read, names, read_head, HEAD, read_words, WORDS)
