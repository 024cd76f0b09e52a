"""Tokenizers put together from old files, and what other files say about them, against transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import normalizers

from munjang.checkpoint.settings import EncoderSettings
from munjang.checkpoint.tokenizer import load_tokenizer, lower
from munjang.errors import CheckpointError
from munjang.text.tokenizer import Tokenizer
from tests.checkpoint import folders
from tests.models import make_tokenizer
from tests.texts import HOSTILE, mixed

pytestmark = pytest.mark.filterwarnings("ignore")
SHORT = [text.encode("utf-8", "replace").decode() for text in HOSTILE if len(text) < 3000]  # no lone surrogates
TEXTS = [*SHORT, *mixed(20), "a [NEW] 서울 서울은 CAFÉ Ärger"]
SIZES = {"vocab_size": 600, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4}
SIZES |= {"max_position_embeddings": 130, "type_vocab_size": 2}
VOCAB = make_tokenizer("wordpiece").get_vocab()


def write_vocab(folder: Path, vocab: dict[str, int] = VOCAB) -> None:
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.__getitem__)) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folders.write(tmp_path / "config.json", {"model_type": "bert", **SIZES})
    return tmp_path


def load(folder: Path) -> Tokenizer:
    return load_tokenizer(folder, folders.read(folder / "config.json"), EncoderSettings())[0]


def assert_same(folder: Path, has_types: bool | None = None) -> Tokenizer:
    """Ids of texts and pairs, and the segments of pairs, as transformers has them."""
    ours, theirs = load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert isinstance(theirs, transformers.PreTrainedTokenizerFast)
    limit = {"truncation": True, "max_length": ours.max_length}
    tokens = ours(TEXTS)
    rows = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
    for text, mine, other in zip(TEXTS, rows, theirs(TEXTS, **limit)["input_ids"], strict=True):
        assert mine.tolist() == other, text
    pairs, others = ours.pairs(TEXTS, TEXTS[::-1]), theirs(TEXTS, TEXTS[::-1], **limit)
    assert pairs.ids.tolist() == [number for row in others["input_ids"] for number in row]
    if has_types is not False:
        segments = others.get("token_type_ids", [[0]])
        flat = [number for row in segments for number in row]
        assert (pairs.types is not None) == any(flat)
        assert pairs.types is None or pairs.types.tolist() == flat
    return ours


CONFIGS: dict[str, Any] = {
    "nothing": None,
    "KoELECTRA": {"do_lower_case": False, "model_max_length": 512},
    "strips accents": {"do_lower_case": False, "strip_accents": True},
    "keeps accents": {"do_lower_case": True, "strip_accents": False},
    "no ideographs": {"tokenize_chinese_chars": False},
    "class": {"tokenizer_class": "BertTokenizer", "do_lower_case": False},
    "fast class": {"tokenizer_class": "BertTokenizerFast", "never_split": ["hello"], "do_basic_tokenize": True},
    "extra": {"additional_special_tokens": ["각", "[NEW]"]},
    "added": {
        "added_tokens_decoder": {
            "400": {"content": "[NEW]", "lstrip": True, "normalized": False, "special": True},
            "401": {"content": "서울", "single_word": True, "normalized": True, "special": False},
        }
    },
}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("model_type", ["bert", "electra"])
def test_vocab_txt(folder: Path, name: str, model_type: str) -> None:
    write_vocab(folder)
    folders.edit(folder / "config.json", model_type=model_type)
    if CONFIGS[name] is not None:
        folders.write(folder / "tokenizer_config.json", CONFIGS[name])
    assert assert_same(folder).path.startswith("look-up")


def test_klue_has_berts_vocabulary_and_a_roberta_model(folder: Path) -> None:
    write_vocab(folder)
    folders.edit(folder / "config.json", model_type="roberta", type_vocab_size=1, pad_token_id=1)
    folders.write(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": False})
    ours = assert_same(folder, has_types=False)
    assert ours.pairs(["a"], ["b"]).types is None  # they give segments, the model has none
    assert ours.max_length == 130 - 2  # positions begin at the padding id + 1


def test_class_in_config_json(folder: Path) -> None:
    write_vocab(folder)
    folders.edit(folder / "config.json", model_type="roberta", type_vocab_size=1, tokenizer_class="BertTokenizer")
    assert_same(folder, has_types=False)


def test_added_tokens_json_and_special_tokens_map(folder: Path) -> None:
    write_vocab(folder)
    folders.write(folder / "added_tokens.json", {"서울": 401, "[NEW]": 400})
    special = {"cls_token": "[CLS]", "mask_token": {"content": "[MASK]", "lstrip": True}}
    folders.write(folder / "special_tokens_map.json", {**special, "additional_special_tokens": ["[NEW]"]})
    ours = assert_same(folder)
    assert (ours.rust.token_to_id("[NEW]"), ours.rust.token_to_id("서울")) == (400, 401)


def test_special_tokens_under_other_names(folder: Path) -> None:
    renamed = {"[CLS]": "<cls>", "[SEP]": "<sep>", "[UNK]": "<unk>", "[PAD]": "<pad>"}
    write_vocab(folder, {renamed.get(token, token): place for token, place in VOCAB.items()})
    with pytest.raises(CheckpointError, match=r"does not list '\[UNK\]'; set its spelling in tokenizer_config.json"):
        load(folder)
    names = {f"{name}_token": f"<{name}>" for name in ("cls", "sep", "unk", "pad")}
    folders.write(folder / "special_tokens_map.json", names)
    assert_same(folder)


def test_mpnet(folder: Path) -> None:
    renamed = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
    write_vocab(folder, {renamed.get(token, token): place for token, place in VOCAB.items()})
    folders.edit(folder / "config.json", model_type="mpnet")
    assert_same(folder, has_types=False)


BYTE_LEVEL: dict[str, Any] = {
    "nothing": None,
    "class": {"tokenizer_class": "RobertaTokenizer"},
    "prefix": {"add_prefix_space": True, "model_max_length": 64},
    "mask": {
        "added_tokens_decoder": {"500": {"content": "<mask>", "lstrip": True, "normalized": True, "special": True}},
        "mask_token": "<mask>",
    },
}


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_vocab_json_and_merges_txt(folder: Path, name: str) -> None:
    spec = json.loads(make_tokenizer("bytelevel").to_str())
    vocab = {**spec["model"]["vocab"], "<mask>": 500}
    folders.write(folder / "vocab.json", vocab)
    merges = "\n".join(" ".join(pair) for pair in spec["model"]["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    folders.edit(folder / "config.json", model_type="roberta", type_vocab_size=1)
    if BYTE_LEVEL[name] is not None:
        folders.write(folder / "tokenizer_config.json", BYTE_LEVEL[name])
    assert_same(folder)


@pytest.mark.parametrize("given", [{}, {"do_lower_case": True}, {"do_lower_case": False, "strip_accents": True}])
@pytest.mark.parametrize(
    "name", [None, "BertTokenizer", "BertTokenizerFast", "ElectraTokenizerFast", "TokenizersBackend"]
)
def test_tokenizer_config_overrules_tokenizer_json(folder: Path, given: dict[str, Any], name: str | None) -> None:
    spec = json.loads(make_tokenizer("wordpiece").to_str())
    spec["normalizer"]["lowercase"] = False
    folders.write(folder / "tokenizer.json", spec)
    folders.write(folder / "tokenizer_config.json", {**given, **({} if name is None else {"tokenizer_class": name})})
    assert_same(folder)


@pytest.mark.parametrize("has_space", [True, False])
def test_prefix_space_overrules_tokenizer_json(folder: Path, has_space: bool) -> None:
    make_tokenizer("bytelevel").save(str(folder / "tokenizer.json"))
    folders.edit(folder / "config.json", model_type="roberta", type_vocab_size=1)
    settings = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": has_space}
    folders.write(folder / "tokenizer_config.json", settings)
    assert_same(folder)


def test_segments_that_the_model_does_not_have_are_left_out(folder: Path) -> None:
    spec = json.loads(make_tokenizer("wordpiece").to_str())
    for part in spec["post_processor"]["pair"]:
        for value in part.values():
            value["type_id"] *= 2
    folders.write(folder / "tokenizer.json", spec)
    assert load(folder).pairs(["a"], ["b"]).types is None
    folders.edit(folder / "config.json", type_vocab_size=3)
    assert load(folder).pairs(["a"], ["b"]).types.tolist()[-1] == 2


@pytest.mark.parametrize("content", ["", "\n\n", "a\nb", "[UNK]\n"])
def test_a_vocab_txt_without_special_tokens(folder: Path, content: str) -> None:
    (folder / "vocab.txt").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match="does not list"):
        load(folder)


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.json", "merges.txt"])
def test_files_that_are_damaged(folder: Path, name: str) -> None:
    for other in ("vocab.json", "merges.txt") if name != "vocab.txt" else ():
        (folder / other).write_text("{}", encoding="utf-8")
    (folder / name).write_bytes(b"\xff\xfe\x00 not UTF-8")
    with pytest.raises(CheckpointError, match="copy them again"):
        load(folder)


def _rust(normalizer: Any) -> RustTokenizer:
    tokenizer = make_tokenizer("wordpiece")
    tokenizer.normalizer = normalizer
    return tokenizer


CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("strips", [None, True, False])
@pytest.mark.parametrize("lowers", [True, False])
@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_lower_casing_as_part_of_berts_normalizer(strips: bool | None, lowers: bool, step: int) -> None:
    """What sentence-transformers does for do_lower_case, in one step: the same for every character."""
    plain = normalizers.BertNormalizer(True, True, strips, lowers)
    tokenizer = _rust(plain)
    lower(tokenizer)
    assert isinstance(tokenizer.normalizer, normalizers.BertNormalizer)
    theirs = normalizers.Sequence([normalizers.Lowercase(), plain])
    for character in CHARACTERS[::step]:
        assert tokenizer.normalizer.normalize_str(character) == theirs.normalize_str(character)


def test_lower_casing_in_front_of_other_normalizers() -> None:
    for steps in (None, normalizers.NFC(), normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])):
        tokenizer = _rust(steps)
        lower(tokenizer)
        assert tokenizer.normalizer.normalize_str("CAFÉ ") in ("café ", "café")
    kept = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer = _rust(kept)
    lower(tokenizer)
    assert json.loads(tokenizer.to_str())["normalizer"] == json.loads(_rust(kept).to_str())["normalizer"]
