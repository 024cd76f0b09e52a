"""Tiny random late-interaction and sparse models in every layout, written by sentence-transformers or by hand."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from sentence_transformers import MultiVectorEncoder, SparseEncoder
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling, MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder, SparseStaticEmbedding, SpladePooling
from tokenizers import AddedToken

from tests.models import FAMILIES, make_model, make_tokenizer, special_tokens, widen

EXPANSION = {"strategy": "fixed", "attend": False, "length": 24}


def make_late(folder: Path, family: str = "bert", **options: Any) -> Path:
    """Write a MultiVectorEncoder of sentence-transformers 6."""
    make_model(family, folder, "plain")
    lengths = {key: options[key] for key in ("query_length", "document_length", "query_expansion") if key in options}
    encoder = Transformer(str(folder), **lengths)
    torch.manual_seed(2)
    dense = Dense(32, 16, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings")
    modules = [encoder, dense, MultiVectorMask(options.get("words")), Normalize("token_embeddings")]
    if "pool_factor" in options:
        modules.append(HierarchicalTokenPooling(options["pool_factor"]))
    prompts = options.get("prompts", {"query": "q: ", "document": "d: "})
    MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").save(str(folder), create_model_card=False)
    return folder


def make_pylate(folder: Path, **stated: Any) -> Path:
    """Write a folder as PyLate 1.x does: markers and lengths in one file, its own Dense, nothing behind it."""
    make_model("bert", folder, "plain")
    write(folder / "sentence_bert_config.json", {"max_seq_length": 63, "do_lower_case": False})
    torch.manual_seed(2)
    dense = Dense(32, 16, bias=False, activation_function=torch.nn.Identity())
    (folder / "1_Dense").mkdir()
    dense.save(str(folder / "1_Dense"))
    keys = ("in_features", "out_features", "bias", "activation_function")
    config = json.loads((folder / "1_Dense/config.json").read_text())
    write(folder / "1_Dense/config.json", {key: config[key] for key in keys})
    rows = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    write(folder / "modules.json", rows)
    settings = {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 24, "document_length": 40}
    write(folder / "config_sentence_transformers.json", {"similarity_fn_name": "MaxSim", **settings, **stated})
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["[Q] ", "[D] "])  # PyLate adds them so, and the table grows
    tokenizer.save_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    widen(model)
    model.save_pretrained(folder)
    return folder


def make_colbert(folder: Path, **stated: Any) -> Path:
    """Write a folder as Stanford's ColBERT does: one file of weights, markers among BERT's unused words."""
    make_model("bert", folder, "plain")
    path = folder / "tokenizer.json"
    spec = json.loads(path.read_text())
    spec["model"]["vocab"] |= {"[unused0]": len(spec["model"]["vocab"]), "[unused1]": len(spec["model"]["vocab"]) + 1}
    path.write_text(json.dumps(spec))
    model = transformers.AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(len(spec["model"]["vocab"]))
    widen(model)
    tensors = {f"bert.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    torch.manual_seed(4)
    tensors["linear.weight"] = torch.randn(16, 32)
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    config = json.loads((folder / "config.json").read_text())
    write(
        folder / "config.json", {**config, "architectures": ["HF_ColBERT"], "vocab_size": len(spec["model"]["vocab"])}
    )
    write(folder / "artifact.metadata", {"query_maxlen": 24, "doc_maxlen": 50, "mask_punctuation": True, **stated})
    return folder


def make_masked(family: str, folder: Path) -> Path:
    """Write ...ForMaskedLM by transformers."""
    title, kind, settings = FAMILIES[family]
    tokenizer = make_tokenizer(kind)
    vocab = tokenizer.get_vocab()
    pad = vocab.get("[PAD]", vocab.get("<pad>"))
    torch.manual_seed(5)
    config = getattr(transformers, f"{title}Config")(vocab_size=len(vocab), pad_token_id=pad, **settings)
    model = getattr(transformers, f"{title}ForMaskedLM")(config)
    widen(model)
    model.tie_weights()
    model.save_pretrained(folder)
    special = {key: AddedToken(token) for key, token in special_tokens(vocab).items()}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=100, **special)
    fast.save_pretrained(folder)
    return folder


def make_splade(folder: Path, family: str = "bert", pooling: str = "max", activation: str = "relu") -> Path:
    """Write SPLADE by sentence-transformers."""
    make_masked(family, folder)
    modules = [Transformer(str(folder), transformer_task="fill-mask"), SpladePooling(pooling, activation)]
    SparseEncoder(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def make_inference_free(folder: Path) -> Path:
    """Write a router: queries by a table of weights, documents by SPLADE."""
    source = make_masked("bert", folder / "source")
    encoder = Transformer(str(source), transformer_task="fill-mask")
    torch.manual_seed(6)
    table = SparseStaticEmbedding(encoder.tokenizer, torch.rand(len(encoder.tokenizer)))
    router = Router.for_query_document([table], [encoder, SpladePooling("max", "log1p_relu")])
    target = folder / "model"
    SparseEncoder(modules=[router], device="cpu").save(str(target), create_model_card=False)
    return target


def make_csr(folder: Path, **options: Any) -> Path:
    """Write CSR by sentence-transformers: a bi-encoder and its strongest features."""
    make_model("bert", folder, "plain")
    torch.manual_seed(7)
    features = SparseAutoEncoder(32, 64, k=8, k_aux=8, normalize=options.get("normalize", False))
    torch.nn.init.normal_(features.latent_bias)
    modules = [Transformer(str(folder)), Pooling(32, "mean"), features]
    SparseEncoder(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def make_m3(folder: Path) -> Path:
    """Write BGE-M3's folder: a bi-encoder with two layers more beside it."""
    make_model("xlm-roberta", folder, "bi", "cls")
    torch.manual_seed(8)
    torch.save(torch.nn.Linear(32, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(32, 32).state_dict(), folder / "colbert_linear.pt")
    return folder


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))
