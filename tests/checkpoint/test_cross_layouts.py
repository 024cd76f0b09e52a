"""Every layout of cross-encoders, against sentence-transformers on the same folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder as TheirCross
from sentence_transformers.cross_encoder.modules import LogitScore
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import nn

from munjang import BiEncoder, CrossEncoder
from munjang.checkpoint import kind
from munjang.errors import CheckpointError, UnsupportedModel
from munjang.nn import heads
from tests.checkpoint import folders
from tests.checkpoint.folders import PAIRS, edit
from tests.models import DECODER, make_tokenizer, special_tokens, widen

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]
SIGMOID = "torch.nn.modules.activation.Sigmoid"
IDENTITY = "torch.nn.modules.linear.Identity"


def assert_same(folder: Path) -> CrossEncoder:
    """Scores as theirs; gives our scorer."""
    ours, theirs = CrossEncoder.load(folder), TheirCross(str(folder), device="cpu")
    assert type(ours.activation) is type(theirs.activation_fn)
    scores, logits = theirs.predict(PAIRS), theirs.predict(PAIRS, activation_fn=nn.Identity())
    assert np.abs(ours.predict(PAIRS, activation="Identity") - logits).max() < 1e-4
    assert np.abs(ours.predict(PAIRS) - scores).max() < 1e-4
    assert logits.std() > 0.01
    return ours


@pytest.fixture
def folder(make: Make, tmp_path: Path) -> Path:
    """A copy of a tiny BERT classifier with one label, to be changed."""
    return folders.copy(make("bert", kind="classifier", num_labels=1), tmp_path / "model")


@pytest.mark.parametrize("path", [SIGMOID, IDENTITY, "torch.nn.modules.activation.Tanh", "torch.nn.Sigmoid"])
def test_before_4(folder: Path, path: str) -> None:
    edit(folder / "config.json", sbert_ce_default_activation_function=path)
    assert type(assert_same(folder).activation).__name__ == path.rpartition(".")[2]


@pytest.mark.parametrize("path", [SIGMOID, IDENTITY])
def test_4_to_53(folder: Path, path: str) -> None:
    edit(
        folder / "config.json",
        sentence_transformers={"activation_fn": path, "version": "4.1.0"},
        sbert_ce_default_activation_function="torch.nn.modules.activation.Tanh",
    )
    assert type(assert_same(folder).activation).__name__ == path.rpartition(".")[2]


@pytest.mark.parametrize(("family", "num_labels"), [("bert", 1), ("roberta", 3), ("qwen3", 1)])
def test_saved_by_them(make: Make, tmp_path: Path, family: str, num_labels: int) -> None:
    theirs = TheirCross(str(make(family, kind="classifier", num_labels=num_labels)), device="cpu")
    theirs.activation_fn = nn.Softmax(dim=-1) if num_labels > 1 else nn.Identity()
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    assert (tmp_path / "theirs/modules.json").is_file()
    assert kind(tmp_path / "theirs") == "cross"
    scorer = assert_same(tmp_path / "theirs")
    scorer.save(tmp_path / "ours")
    again = assert_same(tmp_path / "ours")
    np.testing.assert_allclose(again.predict(PAIRS), scorer.predict(PAIRS), atol=2e-6)
    assert type(again.activation) is type(scorer.activation)


def test_modules_with_dense_layers(make: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    modules = [
        Transformer(str(make("bert", kind="plain"))),
        Pooling(32, ("max", "cls")),
        Dense(64, 16, activation_function=nn.GELU()),
        Dense(16, 2, activation_function=nn.Identity(), module_output_name="scores"),
    ]
    TheirCross(modules=modules, device="cpu").save(str(tmp_path / "theirs"), create_model_card=False)
    scorer = assert_same(tmp_path / "theirs")
    assert scorer.num_labels == 2
    scorer.save(tmp_path / "ours")
    np.testing.assert_allclose(assert_same(tmp_path / "ours").predict(PAIRS), scorer.predict(PAIRS), atol=2e-6)


@pytest.fixture(scope="module", params=["Qwen3", "Llama"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal language model with an answer's two words in its vocabulary."""
    import transformers

    folder = tmp_path_factory.mktemp("decoder") / request.param
    tokenizer = make_tokenizer("bytelevel")
    vocab = tokenizer.get_vocab()
    config = getattr(transformers, f"{request.param}Config")(vocab_size=len(vocab), pad_token_id=1, **DECODER)
    torch.manual_seed(2)
    model = getattr(transformers, f"{request.param}ForCausalLM")(config)
    widen(model)
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=60, **special_tokens(vocab)
    ).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("no", [11, None])
def test_a_decoder_that_answers(decoder: Path, tmp_path: Path, no: int | None) -> None:
    modules = [Transformer(str(decoder), transformer_task="text-generation"), LogitScore(7, no)]
    TheirCross(modules=modules, device="cpu").save(str(tmp_path / "theirs"), create_model_card=False)
    scorer = assert_same(tmp_path / "theirs")
    assert (scorer.num_labels, scorer.max_length) == (1, 60)
    assert 0 < scorer.network.waste < 0.9
    scorer.save(tmp_path / "ours")
    np.testing.assert_allclose(assert_same(tmp_path / "ours").predict(PAIRS), scorer.predict(PAIRS), atol=2e-6)
    edit(tmp_path / "ours/1_LogitScore/config.json", true_token_id=100_000)
    with pytest.raises(CheckpointError, match="token id"):
        CrossEncoder.load(tmp_path / "ours")


def test_a_decoder_with_a_chat_template_is_refused(decoder: Path, tmp_path: Path) -> None:
    folder = folders.copy(decoder, tmp_path / "model")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    modules = [Transformer(str(folder), transformer_task="text-generation"), LogitScore(7)]
    TheirCross(modules=modules, device="cpu").save(str(tmp_path / "theirs"), create_model_card=False)
    for load, where in (
        (CrossEncoder.load, tmp_path / "theirs"),
        (CrossEncoder.load, folder),
        (BiEncoder.load, folder),
    ):
        with pytest.raises(UnsupportedModel, match="chat template"):
            load(where)
    with pytest.raises(UnsupportedModel, match="language model without a classification head"):
        CrossEncoder.load(decoder)


def test_prompts_survive(folder: Path, tmp_path: Path) -> None:
    TheirCross(str(folder), device="cpu", prompts={"q": "ask: "}).save(
        str(tmp_path / "theirs"), create_model_card=False
    )
    CrossEncoder.load(tmp_path / "theirs").save(tmp_path / "ours")
    theirs = TheirCross(str(tmp_path / "ours"), device="cpu")
    assert theirs.prompts["q"] == "ask: "
    first = TheirCross(str(tmp_path / "theirs"), device="cpu")
    assert np.abs(theirs.predict(PAIRS, prompt_name="q") - first.predict(PAIRS, prompt_name="q")).max() < 1e-5


@pytest.mark.parametrize(
    "path",
    [
        "os.system",
        "torch.hub.load",
        "torch.nn.modules.linear.Linear",
        "torch.nn.Sigmoid.__call__",
        "transformers.activations.GELUActivation",
        "torchx.nn.Sigmoid",
        "my_code.Sigmoid",
        "",
        7,
        ["torch.nn.Sigmoid"],
    ],
)
def test_other_activations_are_refused_and_never_imported(folder: Path, path: Any) -> None:
    code = folder / "my_code.py"
    code.write_text(f"import pathlib\npathlib.Path({str(folder / 'marker')!r}).touch()\nclass Sigmoid: pass\n")
    edit(folder / "config.json", sentence_transformers={"activation_fn": path})
    if not path:  # nothing is named: the default
        assert isinstance(CrossEncoder.load(folder).activation, nn.Sigmoid)
        return
    with pytest.raises(UnsupportedModel, match="not on the list of safe ones"):
        CrossEncoder.load(folder)
    assert not (folder / "marker").exists()


@pytest.mark.parametrize("name", heads.ACTIVATIONS)
def test_every_activation_is_torchs_own(folder: Path, name: str) -> None:
    path = f"torch.nn.{name}"
    edit(folder / "config.json", sbert_ce_default_activation_function=path)
    scorer = CrossEncoder.load(folder)
    logits = torch.from_numpy(scorer.predict(PAIRS, activation="Identity"))[:, None]
    expected = getattr(nn, name)(**({"dim": -1} if "Softmax" in name else {}))(logits)[:, 0]
    assert np.allclose(scorer.predict(PAIRS), expected.numpy())
    assert type(heads.activation(heads.path_of(heads.ACTIVATIONS[name]()))).__name__ == name


def test_bi_and_cross_are_told_apart(make: Make, folder: Path, tmp_path: Path) -> None:
    assert (kind(folder), kind(make("bert"))) == ("cross", "bi")
    with pytest.raises(CheckpointError, match=r"bi-encoder; load it with BiEncoder\.load"):
        CrossEncoder.load(make("bert"))
    TheirCross(str(folder), device="cpu").save(str(tmp_path / "theirs"), create_model_card=False)
    with pytest.raises(CheckpointError, match=r"cross-encoder; load it with CrossEncoder\.load"):
        BiEncoder.load(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match=r"no classification head.*CrossEncoder\.create"):
        CrossEncoder.load(make("bert", kind="plain"))
    assert BiEncoder.load(folder).network.modes == ("mean",)  # a plain classifier's encoder, as they have it
