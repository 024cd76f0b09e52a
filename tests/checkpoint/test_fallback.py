"""Architectures that we leave to transformers: the same results, padding counted, no foreign code, clear refusals."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder as TheirCross
from sentence_transformers import SentenceTransformer
from tokenizers import AddedToken, processors

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError, InputError, UnsupportedModel
from tests.checkpoint import folders
from tests.checkpoint.folders import PAIRS, TEXTS, difference, edit
from tests.models import DECODER, SIZES, make_tokenizer, special_tokens, widen

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
DISENTANGLED = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_buckets": 8,
    "max_relative_positions": -1,
}
# config class, class to save, settings, tokenizer
ARCHITECTURES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "deberta-v2": ("DebertaV2Config", "DebertaV2Model", {**SIZES, **DISENTANGLED, "type_vocab_size": 2}, "wordpiece"),
    "t5": ("T5Config", "T5EncoderModel", T5, "unigram"),
    "t5 with its decoder": ("T5Config", "T5Model", T5, "unigram"),
    "rembert": ("RemBertConfig", "RemBertModel", {**SIZES, "input_embedding_size": 16}, "wordpiece"),
    "roberta-prelayernorm": ("RobertaPreLayerNormConfig", "RobertaPreLayerNormModel", {**SIZES}, "bytelevel"),
    "xlnet": ("XLNetConfig", "XLNetModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, "unigram"),
    "gpt2": ("GPT2Config", "GPT2Model", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}, "bytelevel"),
    "llama": ("LlamaConfig", "LlamaForCausalLM", DECODER, "bytelevel"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", DECODER, "bytelevel"),
    "eurobert": ("EuroBertConfig", "EuroBertModel", DECODER, "bytelevel"),
}


def make_plain(folder: Path, name: str, **options: Any) -> Path:
    """A tiny model of an architecture that is not ours."""
    config_class, model_class, settings, kind = ARCHITECTURES[name]
    tokenizer = make_tokenizer(kind)
    vocab = tokenizer.get_vocab()
    pad = vocab.get("[PAD]", vocab.get("<pad>"))
    config = getattr(transformers, config_class)(vocab_size=len(vocab), pad_token_id=pad, **settings)
    torch.manual_seed(5)
    model = getattr(transformers, options.get("model_class", model_class))(config)
    widen(model)
    model.save_pretrained(folder)
    special = {key: AddedToken(token) for key, token in special_tokens(vocab).items()}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=options.get("limit", 60), **special
    ).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_same_vectors(tmp_path: Path, name: str) -> None:
    folder = make_plain(tmp_path / "model", name)
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-4  # their padding changes the last digits
    is_decoder = ARCHITECTURES[name][1].endswith("ForCausalLM")
    assert ours.network.modes == (("lasttoken",) if is_decoder else ("mean",))
    assert str(ours.info()["engine"]) == "transformers (padded)"
    ours.save(tmp_path / "ours")
    assert difference(BiEncoder.load(tmp_path / "ours").encode(TEXTS), ours.encode(TEXTS)) < 1e-6
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert difference(again.encode(TEXTS), ours.encode(TEXTS)) < 1e-4


@pytest.mark.parametrize(
    ("name", "num_labels"), [("DebertaV2", 1), ("RemBert", 3), ("RobertaPreLayerNorm", 1), ("Llama", 1), ("GPT2", 3)]
)
def test_the_same_scores(tmp_path: Path, name: str, num_labels: int) -> None:
    key = next(key for key, row in ARCHITECTURES.items() if row[0] == f"{name}Config")
    config_class, _, settings, kind = ARCHITECTURES[key]
    ARCHITECTURES["labelled"] = (config_class, "", {**settings, "num_labels": num_labels}, kind)
    folder = make_plain(tmp_path / "model", "labelled", model_class=f"{name}ForSequenceClassification")
    ARCHITECTURES.pop("labelled")
    ours, theirs = CrossEncoder.load(folder), TheirCross(str(folder), device="cpu")
    logits = theirs.predict(PAIRS, activation_fn=torch.nn.Identity())
    assert np.abs(ours.predict(PAIRS, activation="Identity") - logits).max() < 1e-4 * max(1, np.abs(logits).max())
    assert logits.std() > 0.001
    ours.save(tmp_path / "ours")
    assert np.allclose(
        TheirCross(str(tmp_path / "ours"), device="cpu").predict(PAIRS), theirs.predict(PAIRS), atol=1e-4
    )


def test_a_decoder_without_a_padding_id(make: Make, tmp_path: Path) -> None:
    """transformers refuses batches then; one text at a time gives what it gives with one."""
    folder = folders.copy(make("qwen3", kind="classifier", num_labels=1), tmp_path / "model")
    expected = CrossEncoder.load(folder).predict(PAIRS)
    edit(folder / "config.json", pad_token_id=None)
    scorer = CrossEncoder.load(folder)
    assert np.allclose(scorer.predict(PAIRS), expected, atol=1e-5)
    assert scorer.network.waste == 0


def make_embedder(folder: Path) -> Path:
    """Qwen3-Embedding's layout: a decoder, its end token put behind every text, the last token as the vector."""
    make_plain(folder, "llama")
    end = make_tokenizer("bytelevel").token_to_id("</s>")
    tokenizer = folders.read(folder / "tokenizer.json")
    template = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", end)])
    tokenizer["post_processor"] = json.loads(template.__getstate__())
    folders.write(folder / "tokenizer.json", tokenizer)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    folders.write(
        folder / "modules.json",
        [
            {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for place, (path, kind) in enumerate(kinds.items())
        ],
    )
    folders.write(
        folder / "1_Pooling/config.json",
        {"word_embedding_dimension": 32, "pooling_mode_lasttoken": True, "include_prompt": True},
    )
    prompts = {"query": "Instruct: find it\nQuery:", "document": ""}
    folders.write(folder / "config_sentence_transformers.json", {"prompts": prompts, "similarity_fn_name": "cosine"})
    return folder


def test_a_decoder_with_its_end_token_and_the_last_token(tmp_path: Path) -> None:
    folder = make_embedder(tmp_path / "model")
    ours, theirs = BiEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")
    assert [row[-1] for row in ours.tokenize(["one", "two words"]).sequences] == [2, 2]
    assert difference(ours.encode(TEXTS), theirs.encode(TEXTS)) < 1e-5
    assert difference(ours.encode_query(TEXTS), theirs.encode_query(TEXTS)) < 1e-5
    long = "words and words " * 40
    assert difference(ours.encode([long]), theirs.encode([long])) < 1e-5  # the end token stays when a text is cut
    assert ours.tokenize(long).sequences[0][-1] == 2


def test_padding_is_counted(make: Make) -> None:
    model = BiEncoder.load(make("qwen3"))
    assert model.network.encoder.waste == 0
    model.encode(["one two three four five", "one"], batch_tokens=1000)
    lengths = [len(row) for row in model.tokenize(["one two three four five", "one"]).sequences]
    assert model.network.encoder.waste == pytest.approx(1 - sum(lengths) / (2 * max(lengths)))
    assert f"{model.network.encoder.waste:.1%}" in str(model.info()["padding"])


def test_texts_end_where_the_positions_do(tmp_path: Path) -> None:
    """RoBERTa's positions begin at 2, so a limit of 130 would read beyond their table."""
    folder = make_plain(tmp_path / "model", "roberta-prelayernorm", limit=100_000)
    model = BiEncoder.load(folder)
    assert model.max_length == 128
    assert np.isfinite(model.encode("word " * 500)).all()
    with pytest.raises(InputError, match="at most 128"):
        model.max_length = 129


def test_rotary_positions_go_as_far_as_the_folder_says(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    edit(folder / "sentence_bert_config.json", max_seq_length=200)
    edit(folder / "config.json", max_position_embeddings=150)
    assert BiEncoder.load(folder).max_length == 200  # as sentence-transformers has it
    edit(folder / "sentence_bert_config.json", max_seq_length=...)
    edit(folder / "tokenizer_config.json", model_max_length=1e30)
    assert BiEncoder.load(folder).max_length == 150


REMOTE = """
from pathlib import Path
Path({marker!r}).touch()
from transformers import PretrainedConfig, PreTrainedModel
class CustomConfig(PretrainedConfig):
    model_type = "custom"
class CustomModel(PreTrainedModel):
    config_class = CustomConfig
"""


@pytest.mark.parametrize("model_type", ["custom", "qwen3", "bert"])
@pytest.mark.parametrize("load", [BiEncoder.load, CrossEncoder.load])
def test_code_that_comes_with_a_folder_is_never_run(make: Make, tmp_path: Path, model_type: str, load: Any) -> None:
    source = make("bert" if model_type == "bert" else "qwen3", kind="classifier", num_labels=1)
    folder, marker = folders.copy(source, tmp_path / "model"), tmp_path / "marker"
    (folder / "custom.py").write_text(REMOTE.format(marker=str(marker)))
    names = {"AutoConfig": "CustomConfig", "AutoModel": "CustomModel", "AutoTokenizer": "CustomTokenizer"}
    names["AutoModelForSequenceClassification"] = "CustomModel"
    auto_map = {key: f"custom.{name}" for key, name in names.items()}
    edit(folder / "config.json", model_type=model_type, auto_map=auto_map, trust_remote_code=True)
    edit(folder / "tokenizer_config.json", auto_map=auto_map, tokenizer_class="CustomTokenizer")
    if model_type == "custom":
        with pytest.raises(UnsupportedModel, match=r"'custom'.*never run"):
            load(folder)
    else:
        load(folder).save(tmp_path / "saved")  # the architecture is known without that code, and it is left behind
        assert "auto_map" not in folders.read(tmp_path / "saved/config.json")
        assert not (tmp_path / "saved/custom.py").exists()
    assert not marker.exists()


def test_weights_that_do_not_fit_are_refused(make: Make, tmp_path: Path) -> None:
    """transformers itself fills them up with random numbers and a warning."""
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    name = "layers.1.mlp.up_proj.weight"
    folders.change_weights(folder, lambda found: {key: value for key, value in found.items() if key != name})
    with pytest.raises(CheckpointError, match=name):
        BiEncoder.load(folder)
    folder = folders.copy(make("qwen3"), tmp_path / "wider")
    edit(folder / "config.json", intermediate_size=50)
    with pytest.raises(CheckpointError, match="mlp"):
        BiEncoder.load(folder)
    with pytest.raises(CheckpointError, match=r"score\.weight"):  # an encoder has no head
        CrossEncoder.load(make("qwen3", kind="plain"))


def test_weights_cut_off(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("qwen3"), tmp_path / "model")
    data = (folder / "model.safetensors").read_bytes()
    for size in (0, 4, 100, len(data) // 2):
        (folder / "model.safetensors").write_bytes(data[:size])
        with pytest.raises(CheckpointError):
            BiEncoder.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="no weights"):
        BiEncoder.load(folder)


def test_without_transformers(make: Make) -> None:
    native, other = ([make(family), make(family, kind="classifier", num_labels=1)] for family in ("bert", "qwen3"))
    program = f"""
import sys
sys.modules["transformers"] = None  # as if it were not installed
from munjang import BiEncoder, CrossEncoder
from munjang.errors import MissingExtra
native, other = {[*map(str, native)]}, {[*map(str, other)]}
for kind, ours, theirs in zip((BiEncoder, CrossEncoder), native, other):
    kind.load(ours)
    try:
        kind.load(theirs)
    except MissingExtra as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("'qwen3'") == 2
    assert done.stdout.count("pip install 'munjang[transformers]'") == 2
