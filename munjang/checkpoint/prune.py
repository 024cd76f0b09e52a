"""Prune a vocabulary to the tokens that some texts use, with the same vectors for those texts.

V tokens before, W tokens after, D width.

    model = checkpoint.load_bi(Path("path/to/model"))
    print(prune(model, texts))
    checkpoint.save_bi(model, Path("path/to/smaller"))
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer as RustTokenizer
from torch import Tensor, nn

from munjang.checkpoint.files import Json, read_json_if
from munjang.checkpoint.model import Model
from munjang.checkpoint.vocabulary import needed, rewrite, vocab_of
from munjang.errors import CheckpointError, InputError, UnsupportedModel
from munjang.text.tokenizer import Tokenizer
from munjang.types import Ids, Ints

TEXTS_AT_ONCE = 16_384


@dataclass(frozen=True)
class Pruned:
    """Sizes before and after, and how many texts have the same tokens. A text with each prompt counts too."""

    num_rows: int  # of the embedding table, before
    num_kept: int  # and after
    num_used: int  # tokens that the texts use
    num_parameters: int  # of the whole network, before
    num_kept_parameters: int
    num_texts: int
    num_unchanged: int  # texts whose tokens are the same as before

    @property
    def unchanged(self) -> float:
        """Return the fraction of unchanged texts; 1.0 unless min_count dropped tokens that some of them use."""
        return self.num_unchanged / max(self.num_texts, 1)

    def __str__(self) -> str:
        before, after = (number * 4 / 1e6 for number in (self.num_parameters, self.num_kept_parameters))
        return (
            f"{self.num_rows:,} tokens before, {self.num_kept:,} after ({self.num_used:,} are used); float32 weights "
            f"{before:,.1f} MB before, {after:,.1f} MB after; {self.unchanged:.4%} of {self.num_texts:,} texts have "
            "the same tokens as before"
        )


def prune(model: Model, texts: Iterable[str], keep: Iterable[str] = (), min_count: int = 1) -> Pruned:
    """Keep the tokens that the texts use at least `min_count` times, and those of `keep`; the model is changed.

    Special tokens, single characters of kept tokens and, for byte-level BPE, all bytes stay too, so every text still
    encodes. Vectors are the same for a text whose tokens are all kept. Another text is cut into smaller tokens, or
    into unknown ones where it has characters that the texts never had.
    """
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, not {min_count}.")
    table_VD = _table(model)
    spec = json.loads(model.tokenizer.rust.to_str())
    vocab = vocab_of(spec)
    corpus = list(texts)
    if not corpus:
        raise InputError("Pruning needs texts: it keeps the tokens that they use.")
    num_rows, num_before = len(table_VD), model.network.num_parameters
    counts_V = np.zeros(num_rows, np.int64)
    for ids, _ in _tokenize(model, model.tokenizer, corpus):
        counts_V += np.bincount(ids, minlength=num_rows)
    used = {token for token, token_id in vocab.items() if counts_V[token_id] >= min_count}
    kept = needed(spec, used | _spelled(keep, vocab))
    old_W = _order(model, {vocab[token] for token in kept}, num_rows)
    new_V = np.full(num_rows, -1, np.int64)
    new_V[old_W] = np.arange(len(old_W))
    names = {token_id: token for token, token_id in vocab.items()}
    new_ids = {names[old]: int(new_V[old]) for old in old_W.tolist() if old in names}
    tokenizer = _tokenizer(model, rewrite(spec, new_ids), new_V)
    num_texts, num_unchanged = _compare(model, tokenizer, corpus, new_V)
    _put(model, tokenizer, table_VD[old_W], new_V)
    num_after = model.network.num_parameters
    return Pruned(num_rows, len(old_W), len(used), num_before, num_after, num_texts, num_unchanged)


def _table(model: Model) -> Tensor:
    """Return the embedding table of a network that we compute ourselves."""
    encoder = model.network.encoder
    if encoder.table is None:
        raise UnsupportedModel(
            f"A vocabulary is pruned in encoders that Munjang computes itself, not {type(encoder).__name__}."
        )
    return encoder.table.weight.detach()


def _spelled(keep: Iterable[str], vocab: dict[str, int]) -> set[str]:
    if isinstance(keep, str):
        raise InputError(f"keep should be a list of tokens, not the string {keep!r:.40}.")
    wanted = set(keep)
    for token in sorted(wanted - vocab.keys()):
        raise InputError(f"The vocabulary has no token {token!r} to keep; spell it as tokenizer.json does.")
    return wanted


def _order(model: Model, kept: set[int], num_rows: int) -> Ints:
    """Return the old ids in the order of their new ones: ascending, so that special tokens in front stay there.

    Where positions are counted from the padding id, nothing up to that id may move.
    """
    pad_id = model.network.encoder.uncounted_id
    kept = kept | set(range(0 if pad_id is None else pad_id + 1)) | set(_config_ids(model.config))
    return np.array(sorted(token_id for token_id in kept if 0 <= token_id < num_rows), np.int64)


def _config_ids(config: Json) -> Iterator[int]:
    """Yield the ids that config.json names."""
    for key, value in config.items():
        if key.endswith("_token_id"):
            values = value if isinstance(value, list) else [value]
            yield from (token_id for token_id in values if isinstance(token_id, int))


def _tokenize(model: Model, tokenizer: Tokenizer, texts: list[str]) -> Iterator[tuple[Ids, Ints]]:
    """Yield ids and lengths of some texts at a time, as they are and with each prompt of the model in front."""
    prompts = dict.fromkeys(["", *model.prompts.values()])
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        batch = texts[start : start + TEXTS_AT_ONCE]
        for prompt in prompts:
            yield tokenizer.bodies([prompt + text for text in batch] if prompt else batch)


def _tokenizer(model: Model, spec: Json, new_V: Ints) -> Tokenizer:
    old = model.tokenizer
    tokenizer = Tokenizer(
        RustTokenizer.from_str(json.dumps(spec, ensure_ascii=False)),
        old.max_length,
        has_special=old.has_special,
    )
    wanted = vocab_of(spec)
    if tokenizer.rust.get_vocab(with_added_tokens=True) != wanted:
        raise CheckpointError("The added tokens of this tokenizer can't be given new ids; it can't be pruned.")
    tokenizer.has_types = old.has_types
    tokenizer.dropped = None if old.dropped is None else int(new_V[old.dropped])
    return tokenizer


def _compare(model: Model, tokenizer: Tokenizer, texts: list[str], new_V: Ints) -> tuple[int, int]:
    """Count the texts, and those that have the same tokens before and after."""
    num_texts = num_unchanged = 0
    both = zip(_tokenize(model, model.tokenizer, texts), _tokenize(model, tokenizer, texts), strict=True)
    for (old, old_lengths), (new, new_lengths) in both:
        num_texts += len(old_lengths)
        same = np.flatnonzero(old_lengths == new_lengths)
        is_same = np.zeros(len(old_lengths), bool)
        is_same[same] = True
        text_of_old = np.repeat(np.arange(len(old_lengths)), old_lengths)
        text_of_new = np.repeat(np.arange(len(new_lengths)), new_lengths)
        left, right = is_same[text_of_old], is_same[text_of_new]
        wrong = text_of_old[left][new_V[old[left]] != new[right]]
        is_same[wrong] = False
        num_unchanged += int(is_same.sum())
    return num_texts, num_unchanged


def _put(model: Model, tokenizer: Tokenizer, table_WD: Tensor, new_V: Ints) -> None:
    """Give a model its new tokenizer and table, and every id that it names elsewhere."""
    table = nn.Embedding(table_WD.shape[0], table_WD.shape[1], _weight=table_WD.clone())
    model.network.encoder.put_table(table)
    model.tokenizer = tokenizer
    model.config = {key: _renumbered(key, value, new_V) for key, value in model.config.items()}
    if "vocab_size" in model.config:
        model.config["vocab_size"] = len(table_WD)
    settings = {**read_json_if(model.folder / "special_tokens_map.json"), **model.tokenizer_config}
    if "added_tokens_decoder" in settings:
        entries = settings["added_tokens_decoder"].values()
        by_id = [(tokenizer.rust.token_to_id(entry["content"]), entry) for entry in entries]
        settings["added_tokens_decoder"] = {str(token_id): entry for token_id, entry in by_id if token_id is not None}
    model.tokenizer_config = settings
    # files of the old vocabulary (vocab.txt, *.model) lie there, and saving would copy them
    model.folder = model.folder.with_name(f"{model.folder.resolve().name} (pruned)")


def _renumbered(key: str, value: Any, new_V: Ints) -> Any:
    if not key.endswith("_token_id"):
        return value
    if isinstance(value, list):
        return [_renumbered(key, item, new_V) for item in value]
    return int(new_V[value]) if isinstance(value, int) and 0 <= value < len(new_V) else value
