"""Building a `tokenizers.Tokenizer` from the files of a model folder.

tokenizer.json is taken as it is, except where tokenizer_config.json overrules it in every version of transformers.
Older folders (KoELECTRA, KLUE) bring only vocab.txt, or vocab.json and merges.txt, from which the same tokenizer is put
together that transformers makes of them.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from munjang.errors import CheckpointError
from munjang.text.bounds import check_steps, read_file

Settings = Mapping[str, Any]
SPECIAL_KEYS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
BRACKETS = {key: f"[{key[:-6].upper()}]" for key in SPECIAL_KEYS[2:]}
ANGLES = {**{key: f"<{key[:-6]}>" for key in SPECIAL_KEYS}, "bos_token": "<s>", "cls_token": "<s>"} | dict.fromkeys(
    ("eos_token", "sep_token"), "</s>"
)
# What the classes do on top of tokenizer.json
LIKE_BERT = (
    "BertTokenizer",
    "ElectraTokenizer",
    "MPNetTokenizer",
)  # the normalizer is the one of tokenizer_config.json
LIKE_ROBERTA = ("RobertaTokenizer",)  # add_prefix_space is the one of tokenizer_config.json


def build(folder: Path, settings: Settings) -> Tokenizer:
    """Build the tokenizer of a folder; `settings` is tokenizer_config.json."""
    if (folder / "tokenizer.json").is_file():
        return _overrule(_read(folder / "tokenizer.json"), settings)
    try:
        if (folder / "vocab.txt").is_file():
            return word_piece(folder / "vocab.txt", _with_special(folder, settings))
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            return byte_level(folder, _with_special(folder, settings))
    except CheckpointError:
        raise
    except Exception as error:  # tokenizers raises a bare Exception, the files may hold anything
        raise CheckpointError(
            f"No tokenizer can be made of the files in {folder} ({error!r:.200}); copy them again."
        ) from error
    if list(folder.glob("*.model")):
        raise CheckpointError(
            f"{folder} has a SentencePiece file but no tokenizer.json. Write one once with transformers: "
            f"AutoTokenizer.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
        )
    raise CheckpointError(
        f"{folder} has no tokenizer: tokenizer.json, vocab.txt, or vocab.json with merges.txt is needed."
    )


def _read(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(read_file(path))
        check_steps(tokenizer, path)
        tokenizer.encode("a", "b")  # steps that name what is not there show only when they run
    except (KeyboardInterrupt, SystemExit, CheckpointError):
        raise
    except BaseException as error:  # tokenizers raises a bare Exception, and Rust's panics are none
        raise CheckpointError(f"{path} can't be read as a tokenizer ({error}); copy the file again.") from error
    return tokenizer


def _overrule(tokenizer: Tokenizer, settings: Settings) -> Tokenizer:
    """Replace the steps that transformers sets up anew from tokenizer_config.json."""
    name = _class(settings)
    if name in LIKE_BERT and isinstance(tokenizer.normalizer, normalizers.BertNormalizer):
        tokenizer.normalizer = _bert_normalizer(settings)
    if name in LIKE_ROBERTA and isinstance(tokenizer.pre_tokenizer, pre_tokenizers.ByteLevel):
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(bool(settings.get("add_prefix_space", False)))
    return tokenizer


def _class(settings: Settings) -> str:
    return str(settings.get("tokenizer_class")).removesuffix("Fast")


def _bert_normalizer(settings: Settings) -> normalizers.BertNormalizer:
    strips = settings.get("strip_accents")
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=None if strips is None else bool(strips),
        lowercase=bool(settings.get("do_lower_case", True)),
    )


def _with_special(folder: Path, settings: Settings) -> dict[str, Any]:
    """Add to tokenizer_config.json what two files said before 2023: which tokens are special or added."""
    merged = dict(settings)
    if "added_tokens_decoder" not in merged:
        merged |= _json(folder / "special_tokens_map.json")
        extra = [_content(token) for token in _extra(merged)]
        special = {_content(merged[key]) for key in SPECIAL_KEYS if merged.get(key)} | set(extra)
        merged["added_tokens_decoder"] = {
            place: {"content": token, "special": token in special, "normalized": token not in special}
            for token, place in _json(folder / "added_tokens.json").items()
        }
    return merged


def _json(path: Path) -> dict[str, Any]:
    value = json.loads(read_file(path)) if path.is_file() else {}
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} should hold a JSON object, not a {type(value).__name__}.")
    return value


def _extra(settings: Settings) -> Iterable[Any]:
    return settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or ()


def _content(value: Any) -> str:
    """Return the spelling of a token, which the files give as a string or as a record."""
    return str(value["content"] if isinstance(value, Mapping) else value)


def _token(value: Any) -> AddedToken:
    """Return a token as it is added; one that is only spelled is special."""
    if not isinstance(value, Mapping):
        return AddedToken(str(value), special=True)
    flags = {key: bool(value[key]) for key in ("single_word", "lstrip", "rstrip", "normalized") if key in value}
    return AddedToken(_content(value), special=bool(value.get("special", True)), **flags)


def _add_tokens(tokenizer: Tokenizer, settings: Settings, defaults: Mapping[str, str]) -> None:
    """Add tokens in the order in which transformers gives them ids."""
    recorded = settings.get("added_tokens_decoder") or {}
    tokens = [_token(recorded[place]) for place in sorted(recorded, key=int)]
    spelled = [settings.get(key) or defaults[key] for key in SPECIAL_KEYS if settings.get(key) or key in defaults]
    for token in [*spelled, *_extra(settings)]:
        if _content(token) not in {known.content for known in tokens}:
            tokens.append(_token(token))
    tokenizer.add_tokens(tokens)


def _ends(tokenizer: Tokenizer, settings: Settings, defaults: Mapping[str, str], path: Path) -> list[tuple[str, int]]:
    """Return the first and the last token of every text, with their ids."""
    ends = []
    for key in ("cls_token", "sep_token"):
        token = _content(settings.get(key) or defaults[key])
        place = tokenizer.token_to_id(token)
        if place is None:
            raise CheckpointError(f"{path} does not list {token!r}; set its spelling in tokenizer_config.json.")
        ends.append((token, place))
    return ends


def word_piece(path: Path, settings: Settings) -> Tokenizer:
    """Build BERT's tokenizer from vocab.txt; MPNet's has RoBERTa's special tokens."""
    lines = read_file(path).split("\n")
    vocab = {line: place for place, line in enumerate(lines) if line or place < len(lines) - 1}
    is_mpnet = _class(settings) == "MPNetTokenizer"
    defaults = {**ANGLES, "unk_token": "[UNK]"} if is_mpnet else BRACKETS
    unknown = _content(settings.get("unk_token") or defaults["unk_token"])
    if unknown not in vocab:
        raise CheckpointError(f"{path} does not list {unknown!r}; set its spelling in tokenizer_config.json.")
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=100))
    cls, sep = _ends(tokenizer, settings, defaults, path)
    tokenizer.normalizer = _bert_normalizer(settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.RobertaProcessing(sep, cls) if is_mpnet else _bert_ends(sep, cls)
    tokenizer.decoder = decoders.WordPiece()
    _add_tokens(tokenizer, settings, {key: token for key, token in defaults.items() if token in vocab})
    return tokenizer


def _bert_ends(sep: tuple[str, int], cls: tuple[str, int]) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=f"{cls[0]}:0 $A:0 {sep[0]}:0",
        pair=f"{cls[0]}:0 $A:0 {sep[0]}:0 $B:1 {sep[0]}:1",
        special_tokens=[cls, sep],
    )


def byte_level(folder: Path, settings: Settings) -> Tokenizer:
    """Build RoBERTa's tokenizer from vocab.json and merges.txt."""
    vocab = _json(folder / "vocab.json")
    lines = read_file(folder / "merges.txt").split("\n")
    merges = [(a, b) for line in lines if line and not line.startswith("#version") for a, _, b in [line.partition(" ")]]
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    has_prefix_space = bool(settings.get("add_prefix_space", False))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=has_prefix_space)
    cls, sep = _ends(tokenizer, settings, ANGLES, folder / "vocab.json")
    tokenizer.post_processor = processors.RobertaProcessing(sep, cls, add_prefix_space=has_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    _add_tokens(tokenizer, settings, {key: token for key, token in ANGLES.items() if token in vocab})
    return tokenizer
