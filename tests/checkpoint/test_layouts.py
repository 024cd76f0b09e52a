"""Every layout of bi-encoders that DESIGN.md lists, against sentence-transformers on the same folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

from munjang import BiEncoder
from munjang.checkpoint.modules import POOLING_KEYS
from munjang.errors import CheckpointError, UnsupportedModel
from munjang.nn.pooling import POOLERS
from tests.checkpoint import folders
from tests.checkpoint.folders import TEXTS, difference, edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]


def assert_same(folder: Path, texts: list[str] = TEXTS) -> BiEncoder:
    """Vectors as theirs; gives our model."""
    ours = BiEncoder.load(folder)
    assert difference(ours.encode(texts), SentenceTransformer(str(folder), device="cpu").encode(texts)) < 1e-5
    return ours


@pytest.fixture
def folder(make: Make, tmp_path: Path) -> Path:
    """A copy of a tiny BERT in the layout of 6.x, to be changed."""
    return folders.copy(make("bert"), tmp_path / "model")


@pytest.mark.parametrize("inner", ["", "0_Transformer"])
@pytest.mark.parametrize("version", [1, 2])
def test_1x_and_2x(folder: Path, inner: str, version: int) -> None:
    folders.old_layout(folder, inner, version=version)
    folders.as_bin(folder)
    assert assert_same(folder).max_length == 64


@pytest.mark.parametrize("booleans", [("cls",), ("max",), ("mean", "cls"), ("lasttoken", "weightedmean", "max"), ()])
def test_pooling_as_booleans(folder: Path, booleans: tuple[str, ...]) -> None:
    folders.old_layout(folder, booleans=booleans)
    ours = assert_same(folder)
    assert ours.network.modes == (tuple(mode for mode in POOLING_KEYS.values() if mode in booleans) or ("mean",))


def test_every_pooling_mode_has_a_key_and_a_function() -> None:
    assert set(POOLING_KEYS.values()) == set(Pooling.POOLING_MODES) <= set(POOLERS)


@pytest.mark.parametrize("mode", ["cls", ["cls"], ["max", "cls"], ["mean", "mean"]])
def test_pooling_as_a_string_or_a_list(folder: Path, mode: Any) -> None:
    edit(folder / "1_Pooling/config.json", pooling_mode=mode)
    assert_same(folder)


def test_3x_to_5x(folder: Path) -> None:
    """Their class names without the module in front, and settings in config_sentence_transformers.json."""
    folders.old_layout(folder)
    settings = {"query": "query: ", "passage": "passage: ", "empty": ""}
    edit(
        folder / "config_sentence_transformers.json",
        prompts=settings,
        default_prompt_name="passage",
        similarity_fn_name="dot",
        truncate_dim=7,
    )
    ours, theirs = assert_same(folder), SentenceTransformer(str(folder), device="cpu")
    assert ours.prompts.items() >= settings.items()
    assert (ours.default_prompt_name, ours.similarity_name, ours.dimension) == ("passage", "dot", 7)
    assert difference(ours.encode_query(TEXTS), theirs.encode_query(TEXTS)) < 1e-5
    left, right = theirs.encode(TEXTS[:4]), theirs.encode(TEXTS[4:9])
    assert difference(ours.similarity(left, right), theirs.similarity(left, right).numpy()) < 1e-5


def test_a_prompt_without_a_text_is_an_empty_one(folder: Path) -> None:
    edit(folder / "config_sentence_transformers.json", prompts={"query": None}, default_prompt_name="query")
    assert assert_same(folder).prompts["query"] == ""


@pytest.mark.parametrize("name", ["roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])
def test_sentence_bert_config_under_its_other_names(folder: Path, name: str) -> None:
    folders.old_layout(folder)
    (folder / "sentence_bert_config.json").rename(folder / f"sentence_{name}_config.json")
    edit(folder / f"sentence_{name}_config.json", max_seq_length=9)
    assert BiEncoder.load(folder).max_length == 9


@pytest.mark.parametrize("case", [True, False])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_do_lower_case(make: Make, tmp_path: Path, family: str, case: bool) -> None:
    folder = folders.copy(make(family), tmp_path / "model")
    if family == "bert":  # a tokenizer that keeps case by itself
        tokenizer = folders.read(folder / "tokenizer.json")
        tokenizer["normalizer"] |= {"lowercase": False, "strip_accents": None}
        folders.write(folder / "tokenizer.json", tokenizer)
    folders.old_layout(folder)
    edit(folder / "sentence_bert_config.json", do_lower_case=case)
    ours = assert_same(folder)
    assert ours.tokenizer.path.startswith("look-up") or family != "bert"
    ours.save(tmp_path / "saved")
    np.testing.assert_allclose(assert_same(tmp_path / "saved").encode(TEXTS), ours.encode(TEXTS), atol=2e-6)


def test_the_smallest_of_all_limits_counts(folder: Path) -> None:
    assert assert_same(folder).max_length == 100  # model_max_length of tokenizer_config.json
    edit(folder / "tokenizer_config.json", model_max_length=1e30)
    assert assert_same(folder).max_length == 128  # max_position_embeddings
    edit(folder / "tokenizer_config.json", model_max_length=..., max_len=33)  # its name before 2020
    assert assert_same(folder).max_length == 33
    edit(folder / "sentence_bert_config.json", max_seq_length=20)
    assert assert_same(folder, [*TEXTS, "long " * 50]).max_length == 20
    edit(folder / "sentence_bert_config.json", max_seq_length=4000)  # they crash beyond 128 tokens
    assert BiEncoder.load(folder).max_length == 128


def test_arguments_for_transformers(folder: Path) -> None:
    edit(
        folder / "sentence_bert_config.json",
        model_args={"add_pooling_layer": False, "attn_implementation": "eager"},
        tokenizer_args={"model_max_length": 12, "use_fast": True},
        config_args={"layer_norm_eps": 0.3},
    )
    ours = assert_same(folder, [*TEXTS, "long " * 50])
    assert ours.max_length == 12
    assert ours.network.encoder.shape.norm_eps == 0.3


@pytest.mark.parametrize(
    "setting",
    [
        {"processing_kwargs": {"text": {"max_length": 3}}},
        {"query_length": 4},
        {"query_expansion": {"length": 32}},
        {"model_args": {"num_hidden_layers": 1}},
        {"tokenizer_args": {"do_lower_case": False}},
        {"tokenizer_name_or_path": "elsewhere"},
        {"modality_config": {"text": {"method": "get_text_features", "method_output_name": None}}},
        {"modality_config": {"message": {"method": "forward", "method_output_name": "last_hidden_state"}}},
    ],
)
def test_settings_that_we_do_not_compute_are_refused_by_name(folder: Path, setting: dict[str, Any]) -> None:
    edit(folder / "sentence_bert_config.json", **setting)
    with pytest.raises(UnsupportedModel, match="chat template|" + "|".join(setting)):
        BiEncoder.load(folder)


def test_a_plain_folder_has_mean_pooling(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert", kind="plain"), tmp_path / "model")
    edit(folder / "sentence_bert_config.json", max_seq_length=5, do_lower_case=True)  # nobody reads it here
    ours = assert_same(folder)
    assert (ours.network.modes, ours.max_length) == (("mean",), 100)
    assert BiEncoder.load(folder, pooling=["max", "cls"]).dimension == 64


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "mpnet", "modernbert"])
def test_masked_language_models_have_a_prefix(make: Make, tmp_path: Path, family: str) -> None:
    from munjang.nn.families import FAMILIES

    prefix = FAMILIES[family].prefix
    folder = folders.copy(make(family), tmp_path / "model")
    vectors = assert_same(folder).encode(TEXTS)
    folders.change_weights(
        folder, lambda found: {prefix + name: value for name, value in found.items()} | {"lm_head.bias": torch.zeros(3)}
    )
    edit(folder / "config.json", architectures=[f"{FAMILIES[family].title}ForMaskedLM"])
    np.testing.assert_allclose(assert_same(folder).encode(TEXTS), vectors, atol=2e-6)


def test_norms_called_gamma_and_beta(folder: Path) -> None:
    vectors = BiEncoder.load(folder).encode(TEXTS)

    def rename(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    folders.change_weights(folder, lambda found: {"bert." + rename(name): value for name, value in found.items()})
    np.testing.assert_allclose(assert_same(folder).encode(TEXTS), vectors, atol=2e-6)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_weights_in_parts(folder: Path, name: str) -> None:
    vectors = BiEncoder.load(folder).encode(TEXTS)
    folders.split(folder, name)
    np.testing.assert_allclose(assert_same(folder).encode(TEXTS), vectors, atol=2e-6)


def test_config_without_a_model_type(folder: Path) -> None:
    vectors = BiEncoder.load(folder).encode(TEXTS)
    edit(folder / "config.json", model_type=..., architectures=["BertForMaskedLM"])
    np.testing.assert_allclose(BiEncoder.load(folder).encode(TEXTS), vectors, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_other_precisions(folder: Path, dtype: torch.dtype) -> None:
    folders.change_weights(folder, lambda found: {name: value.to(dtype) for name, value in found.items()})
    edit(folder / "config.json", dtype=str(dtype).removeprefix("torch."))
    theirs = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    assert difference(BiEncoder.load(folder).encode(TEXTS), theirs.encode(TEXTS)) < 1e-5


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("width", [32, 20])
@pytest.mark.parametrize("function", [torch.nn.Identity(), torch.nn.GELU(), torch.nn.SELU()])
def test_dense(make: Make, tmp_path: Path, residual: bool, width: int, function: torch.nn.Module) -> None:
    torch.manual_seed(0)
    encoder = Transformer(str(make("bert", kind="plain")))
    dense = Dense(32, width, bias=width == 20, activation_function=function, use_residual=residual)
    theirs = SentenceTransformer(modules=[encoder, Pooling(32), dense, Normalize()], device="cpu")
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    ours = assert_same(tmp_path / "theirs")
    ours.save(tmp_path / "ours")
    np.testing.assert_allclose(assert_same(tmp_path / "ours").encode(TEXTS), ours.encode(TEXTS), atol=2e-6)


def test_modules_of_the_wrong_width_or_order(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert", dense=24, norm=True), tmp_path / "model")
    entries = folders.read(folder / "modules.json")
    swapped = [
        {**entry, "idx": place} for place, entry in enumerate([*entries[:2], entries[3], entries[2], entries[4]])
    ]
    folders.write(folder / "modules.json", swapped)
    with pytest.raises(CheckpointError, match="LayerNorm takes vectors of dimension 24, but gets 32"):
        BiEncoder.load(folder)
    late = [{**entry, "idx": place} for place, entry in enumerate([entries[0], entries[2], entries[1]])]
    folders.write(folder / "modules.json", late)
    with pytest.raises(UnsupportedModel, match="Pooling must follow"):
        BiEncoder.load(folder)


def test_multi_vector_modules_are_refused(make: Make, tmp_path: Path) -> None:
    folder = folders.copy(make("bert", dense=24), tmp_path / "model")
    edit(folder / "2_Dense/config.json", module_input_name="token_embeddings")
    with pytest.raises(UnsupportedModel, match="token_embeddings"):
        BiEncoder.load(folder)
    shutil.rmtree(folder / "2_Dense")
    edit(folder / "config_sentence_transformers.json", model_type="SparseEncoder")
    with pytest.raises(UnsupportedModel, match="SparseEncoder"):
        BiEncoder.load(folder)
