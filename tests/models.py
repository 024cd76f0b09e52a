"""Tiny random models of every family, written by transformers and sentence-transformers themselves.

Weights are drawn wide (std 0.2, random biases and norms), so that different texts get different vectors and a swapped
layer or a forgotten norm shows.
"""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.texts import ENGLISH, KOREAN

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 130,
}
DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 128}
MODERN = {**SIZES, "local_attention": 8, "global_attn_every_n_layers": 2, "max_position_embeddings": 128}
DECODER = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128}
# family: (class prefix in transformers, tokenizer, settings)
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("Bert", "wordpiece", {**SIZES, "max_position_embeddings": 128}),
    "roberta": ("Roberta", "bytelevel", {**SIZES, "type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", "unigram", {**SIZES, "type_vocab_size": 1}),
    "camembert": ("Camembert", "unigram", {**SIZES, "type_vocab_size": 1}),
    "electra": ("Electra", "wordpiece", {**SIZES, "embedding_size": 16, "max_position_embeddings": 128}),
    "albert": ("Albert", "wordpiece", {**SIZES, "embedding_size": 16, "max_position_embeddings": 128}),
    "albert-groups": (
        "Albert",
        "wordpiece",
        {**SIZES, "embedding_size": 16, "num_hidden_layers": 2, "num_hidden_groups": 2, "inner_group_num": 2},
    ),
    "distilbert": ("DistilBert", "wordpiece", DISTIL),
    "mpnet": ("MPNet", "wordpiece", SIZES),
    "modernbert": ("ModernBert", "bytelevel", MODERN),
    "qwen3": ("Qwen3", "bytelevel", DECODER),  # no family of ours: goes through transformers
    "nomic-like": ("RobertaPreLayerNorm", "bytelevel", {**SIZES, "type_vocab_size": 1}),
}
SEEDS = {"electra": 7, "albert-groups": 1}  # so small a network can draw weights that send all texts one way
NATIVE = [name for name in FAMILIES if name not in ("qwen3", "nomic-like")]


def make_model(family: str, folder: Path, kind: str = "bi", pooling: Any = "mean", **options: Any) -> Path:
    """Write a model folder: `bi` and `cross` by sentence-transformers, `plain` and `classifier` by transformers."""
    import transformers

    title, tokenizer_kind, settings = FAMILIES[family]
    tokenizer = make_tokenizer(tokenizer_kind)
    vocab = tokenizer.get_vocab()
    pad = vocab.get("[PAD]", vocab.get("<pad>"))
    labels = {"num_labels": options["num_labels"]} if "num_labels" in options else {}
    config = getattr(transformers, f"{title}Config")(vocab_size=len(vocab), pad_token_id=pad, **settings, **labels)
    suffix = "ForSequenceClassification" if kind in ("cross", "classifier") else "Model"
    torch.manual_seed(options.get("seed", SEEDS.get(family, 3)))
    model = getattr(transformers, title + suffix)(config)
    widen(model)
    limit = options.get("max_length", 100)
    special = {key: AddedToken(token) for key, token in special_tokens(vocab).items()}
    inputs = ["input_ids", *(["token_type_ids"] if settings.get("type_vocab_size", 2) > 1 else []), "attention_mask"]
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=limit, model_input_names=inputs, **special
    )
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    if kind in ("plain", "classifier", "cross"):
        return folder
    return _with_modules(folder, family, pooling, options)


def _with_modules(folder: Path, family: str, pooling: Any, options: dict[str, Any]) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Normalize, Pooling, Transformer

    width = 32
    encoder = Transformer(str(folder))
    pool = Pooling(width, pooling, include_prompt=options.get("include_prompt", True))
    modules = [encoder, pool]
    torch.manual_seed(1)
    if options.get("dense"):
        modules.append(Dense(pool.get_embedding_dimension(), options["dense"], activation_function=torch.nn.Tanh()))
    if options.get("norm"):
        modules.append(LayerNorm(modules[-1].get_embedding_dimension()))
    if options.get("normalize", True):
        modules.append(Normalize())
    prompts = json.loads(options["prompts"]) if "prompts" in options else None
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save(str(folder), create_model_card=False)
    return folder


def widen(model: torch.nn.Module, std: float = 0.2) -> None:
    """Random weights, biases and norms, none of them near its usual start."""
    words = ("word_embeddings", "tok_embeddings", "embed_tokens")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name.lower() and name.endswith("weight")
            # words and matrices are wider still, so that the vectors of different texts point apart
            wide = (
                10 if any(word in name for word in words) else 2 if parameter.ndim == 2 and "embed" not in name else 1
            )
            parameter.normal_(1.0 if is_norm else 0.0, wide * std)


def special_tokens(vocab: dict[str, int]) -> dict[str, str]:
    """The special tokens of a vocabulary by transformers' keys."""
    brackets = {
        key: f"[{key[:-6].upper()}]" for key in ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token")
    }
    angles = {
        "unk_token": "<unk>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    }
    return brackets if "[CLS]" in vocab else {**angles, "bos_token": "<s>", "eos_token": "</s>"}


def make_tokenizer(kind: str) -> Tokenizer:
    """A tokenizer of one of the three structures, as `train_tokenizers` made it once.

    Training gives another vocabulary every time, and so another model: what differs by a hair would fail now and then.
    """
    return Tokenizer.from_file(str(Path(__file__).parent / "tokenizers" / f"{kind}.json"))


def train_tokenizers() -> None:
    """Write tests/tokenizers/ anew: python -c "from tests.models import *; train_tokenizers()"."""
    corpus = [" ".join(ENGLISH), " ".join(KOREAN), "각한글 자모 0123456789 abcdefghijklmnopqrstuvwxyz"] * 3
    for kind, train in (("wordpiece", _wordpiece), ("unigram", _unigram), ("bytelevel", _bytelevel)):
        train(corpus).save(str(Path(__file__).parent / "tokenizers" / f"{kind}.json"), pretty=False)


def _wordpiece(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        corpus, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ids)
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _unigram(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    collapse = normalizers.Replace(__import__("tokenizers").Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), collapse])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return _roberta_ends(tokenizer)


def _bytelevel(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.decoder = decoders.ByteLevel()
    return _roberta_ends(tokenizer)


def _roberta_ends(tokenizer: Tokenizer) -> Tokenizer:
    ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", ids)
    return tokenizer
