"""Load the tokenizer of a model folder, with the settings that other files of the folder have for it."""

import json
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import normalizers

from munjang.checkpoint.encoders import read_shape
from munjang.checkpoint.files import Json, read_json_if, whole
from munjang.checkpoint.settings import EncoderSettings, read_limit
from munjang.errors import CheckpointError
from munjang.text.bounds import MAX_TOKEN_CHARS
from munjang.text.tokenizer import Tokenizer

# The class that transformers takes where a folder names none
DEFAULT_CLASSES = {
    **dict.fromkeys(("bert", "electra", "distilbert"), "BertTokenizer"),
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
}


def load_tokenizer(
    folder: Path, config: Json, settings: EncoderSettings, has_special: bool = True
) -> tuple[Tokenizer, Json]:
    """Load the tokenizer and tokenizer_config.json. `config` is the encoder's, empty for static embeddings."""
    path = folder / "tokenizer_config.json"
    stated = read_json_if(path)
    default = DEFAULT_CLASSES.get(str(config.get("model_type")))
    name = stated.get("tokenizer_class") or config.get("tokenizer_class") or default
    tokenizer = Tokenizer.load(folder, {**stated, "tokenizer_class": name}, None, has_special)
    if settings.is_lowered:
        lower(tokenizer.rust)
        tokenizer = Tokenizer(tokenizer.rust, None, has_special)
    tokenizer.max_length = _max_length(folder, config, settings, stated)
    tokenizer.has_types = _has_types(config, stated, tokenizer)
    return tokenizer, stated


def lower(rust: RustTokenizer) -> None:
    """Lower-case texts before everything else, as do_lower_case of sentence_bert_config.json asks."""
    before = rust.normalizer
    spec = {} if before is None else json.loads(before.__getstate__())
    if spec.get("type") == "BertNormalizer":
        # Lower-casing commutes with its other steps (tests/checkpoint/test_tokenizers.py tries all characters), and as
        # part of it the structure stays one that the look-up knows
        strips = spec["lowercase"] if spec["strip_accents"] is None else spec["strip_accents"]
        rust.normalizer = normalizers.BertNormalizer(spec["clean_text"], spec["handle_chinese_chars"], strips, True)
        return
    kinds = [step.get("type") for step in spec.get("normalizers", [spec])]
    if "Lowercase" not in kinds:
        steps = [normalizers.Lowercase(), *([] if before is None else [before])]
        rust.normalizer = normalizers.Sequence(steps)


def _has_types(config: Json, stated: Json, tokenizer: Tokenizer) -> bool:
    """Tell whether pairs reach the model with segment ids: as the tokenizer says, else as its class does."""
    num_types = whole(config.get("type_vocab_size", 2), "config.json: type_vocab_size", 0)
    segments = [*tokenizer.pair.types, *(int(kind) for _, kinds in tokenizer.pair.parts for kind in kinds)]
    if max(segments) >= num_types:
        return False
    names = stated.get("model_input_names")
    if names is None:  # the generic class of transformers 5 leaves them out, all older ones pass them
        return bool(stated.get("tokenizer_class") != "TokenizersBackend")
    if not isinstance(names, list):
        raise CheckpointError(f"tokenizer_config.json: model_input_names should be a list, not {names!r:.60}.")
    return "token_type_ids" in names


def _max_length(folder: Path, config: Json, settings: EncoderSettings, stated: Json) -> int | None:
    """Return the stated limit, never beyond what the positions allow."""
    shape = read_shape(folder, config)
    limit = read_limit(stated.get("model_max_length", stated.get("max_len")), folder / "tokenizer_config.json")
    if shape is not None:
        limits = [settings.max_length or limit, shape.max_tokens]
    elif settings.max_length is not None:  # rotary positions may go on; a table of them is checked once it is loaded
        limits = [settings.max_length]
    else:
        allowed = config.get("max_position_embeddings")
        limits = [limit, None if allowed == -1 else read_limit(allowed, folder / "config.json")]  # -1: XLNet, any
    return min((limit for limit in limits if limit is not None), default=None)


def check_vocabulary(folder: Path, tokenizer: Tokenizer, num_rows: int) -> None:
    """Refuse a tokenizer with ids that the embedding table does not have, or with tokens of any length."""
    vocab = tokenizer.rust.get_vocab(with_added_tokens=True)
    longest = max(map(len, vocab), default=0)
    if longest > MAX_TOKEN_CHARS:
        raise CheckpointError(
            f"{folder}: the tokenizer has a token of {longest:,} characters; at most {MAX_TOKEN_CHARS:,} is allowed."
        )
    vocab_size = max(vocab.values(), default=-1) + 1
    if vocab_size > num_rows:
        first = min((token for token in vocab if vocab[token] >= num_rows), key=vocab.__getitem__)
        raise CheckpointError(
            f"{folder}: the tokenizer has ids up to {vocab_size - 1} (the first one too many is {first!r}), "
            f"but the embedding table has {num_rows} rows; they are not of one model."
        )
