"""Write late-interaction and sparse models as sentence-transformers stores them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from munjang.checkpoint.atomic import write_folder
from munjang.checkpoint.encoders import family_of, unfill
from munjang.checkpoint.files import Json, read_json
from munjang.checkpoint.model import LateSettings, Model
from munjang.checkpoint.modules import (
    Pooling,
    write_dense,
    write_json,
    write_module,
    write_pooling,
    write_tensors,
)
from munjang.checkpoint.write import NEW_PACKAGES, Rows, check_format, write_encoder, write_rows, write_tokenizer
from munjang.errors import UnsupportedModel
from munjang.nn.families.base import word_names
from munjang.nn.heads import Dense, Normalize
from munjang.nn.late import TokenNetwork
from munjang.nn.sparse import AutoEncoderHead, SparseNetwork, SpladeHead, TokenWeightHead

TOKENS = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}


def write_late(model: Model, target: Path, format: str | None = None) -> None:
    """Write a late-interaction model as sentence-transformers 6 stores it."""
    model = check_format(model, format)
    network, late = cast(TokenNetwork, model.network), model.late or LateSettings()

    def write(folder: Path) -> None:
        rows = [("Transformer", "")]
        write_encoder(model, folder, "Model", {})
        settings = read_json(folder / "sentence_bert_config.json")
        write_json(folder / "sentence_bert_config.json", {**settings, **_lengths(late, model)})
        for module in network.tail:
            path = f"{len(rows)}_{type(module).__name__}"
            rows.append((type(module).__name__, path))
            if isinstance(module, Dense):
                write_dense(folder / path, module, TOKENS)
            elif isinstance(module, Normalize):
                write_json(folder / path / "config.json", TOKENS)
            else:
                write_module(folder / path, module)
        rows.append(("MultiVectorMask", f"{len(rows)}_MultiVectorMask"))
        mask = {"skiplist_words": late.skipped_words, "skiplist_tasks": late.skipping_roles}
        write_json(folder / rows[-1][1] / "config.json", {**mask, "keep_only_token_ids": late.kept_ids})
        if late.pooling is not None:
            rows.append(("HierarchicalTokenPooling", f"{len(rows)}_HierarchicalTokenPooling"))
            write_json(folder / rows[-1][1] / "config.json", _pooling(asdict(late.pooling)))
        write_rows(
            model, folder, rows, "6.0.0", {"model_type": "MultiVectorEncoder", "similarity_fn_name": model.similarity}
        )

    write_folder(target, write)


def _lengths(late: LateSettings, model: Model) -> Json:
    lengths = {"query_length": late.query_length, "document_length": late.document_length}
    stated = {key: value for key, value in lengths.items() if value is not None}
    expansion = late.expansion
    if expansion is None:
        return stated
    return {
        **stated,
        "query_expansion": {
            "strategy": "fixed" if expansion.is_fixed else "min",
            "attend": expansion.is_seen,
            "token": model.tokenizer.rust.id_to_token(expansion.token),
            "length": expansion.length,
        },
    }


def _pooling(values: Json) -> Json:
    names = {
        "factor": "pool_factor",
        "num_protected": "num_protected_tokens",
        "is_normalized": "normalize_embeddings",
        "roles": "tasks",
    }
    return {names[key]: value for key, value in values.items()}


def write_sparse(model: Model, target: Path, format: str | None = None) -> None:
    """Write a sparse model as sentence-transformers 5 and later store it; a table for queries makes it a Router."""
    model = check_format(model, format)

    def write(folder: Path) -> None:
        if model.query is None:
            rows = _write_side(model, folder, "")
        else:
            sides = {
                "query": _write_side(model.query, folder, "query_0_SparseStaticEmbedding"),
                "document": _write_side(model, folder, "document_0_MLMTransformer"),
            }
            rows = [("Router", "")]
            types = {path: f"{NEW_PACKAGES[name]}.{name}" for side in sides.values() for name, path in side}
            structure = {role: [path for _, path in side] for role, side in sides.items()}
            parameters = {"default_route": "document", "allow_empty_key": True}
            write_json(
                folder / "router_config.json", {"types": types, "structure": structure, "parameters": parameters}
            )
        settings: Json = {"model_type": "SparseEncoder", "similarity_fn_name": model.similarity}
        if model.max_active_dims is not None:
            settings["max_active_dims"] = model.max_active_dims
        write_rows(model, folder, rows, "5.0.0", settings)

    write_folder(target, write)


def _write_side(model: Model, folder: Path, path: str) -> Rows:
    """Write what reads one kind of text into a subfolder; return its modules."""
    network = cast(SparseNetwork, model.network)
    head: Any = network.head
    where = folder / path
    where.mkdir(parents=True, exist_ok=True)
    if isinstance(head, TokenWeightHead):
        if head.linear is not None:
            raise UnsupportedModel("BGE-M3's weights of tokens have no folder of sentence-transformers: copy its own.")
        assert network.encoder.table is not None
        write_tensors(where / "model.safetensors", {"weight": network.encoder.table.weight[:, 0]})
        write_json(where / "config.json", {"frozen": False})
        write_tokenizer(model, where)
        return [("SparseStaticEmbedding", path)]
    if isinstance(head, AutoEncoderHead):
        return _write_features(model, head, folder, path)
    if isinstance(head, SpladeHead):
        write_encoder(model, where, "ForMaskedLM", {}, extra=_word_tensors(model, head), task="fill-mask")
    else:
        write_encoder(model, where, "ForMaskedLM", {}, task="fill-mask")
    rows = [("MLMTransformer", path), ("SpladePooling", _beside(path, "SpladePooling", 1))]
    settings = {"pooling_strategy": head.pooling, "activation_function": head.activation}
    write_json(folder / rows[1][1] / "config.json", {**settings, "word_embedding_dimension": head.num_outputs})
    return rows


def _beside(path: str, name: str, number: int) -> str:
    return f"{path.split('_')[0]}_{number}_{name}" if path else f"{number}_{name}"


def _word_tensors(model: Model, head: SpladeHead) -> dict[str, Tensor]:
    family = family_of(model.config)
    assert family is not None
    words = head.words
    names = word_names(words.shape, family.word_names, words.own_words is None)
    tensors = unfill(words, names)
    if words.bias is not None:  # one vector under two names
        tensors[family.word_names["words"].removesuffix("weight") + "bias"] = tensors[names["bias"][0]].clone()
    return tensors


def _write_features(model: Model, head: AutoEncoderHead, folder: Path, path: str) -> Rows:
    if path:
        raise UnsupportedModel("A CSR model behind a Router can't be saved.")
    write_encoder(model, folder, "Model", {})
    rows = [("Transformer", ""), ("Pooling", "1_Pooling")]
    pooling = Pooling(head.modes, head.includes_prompt)
    write_pooling(folder / "1_Pooling", pooling, model.network.encoder.width)
    modules: list[nn.Module] = list(head.tail)
    for module in modules:
        rows.append((type(module).__name__, f"{len(rows)}_{type(module).__name__}"))
        write_module(folder / rows[-1][1], module)
    features = head.features
    rows.append(("SparseAutoEncoder", f"{len(rows)}_SparseAutoEncoder"))
    num_features, width = features.encoder.weight.shape
    settings = {"input_dim": width, "hidden_dim": num_features, "k": features.num_active}
    more = {"k_aux": min(512, num_features), "normalize": features.is_normalized, "dead_threshold": 30}
    write_json(folder / rows[-1][1] / "config.json", {**settings, **more})
    tensors = {**features.state_dict(), "stats_last_nonzero": features.latent_bias.new_zeros(num_features).long()}
    tensors["decoder.linear.weight"] = tensors.pop("encoder.weight")  # the name under which its own save keeps the two
    write_tensors(folder / rows[-1][1] / "model.safetensors", tensors)
    return rows
