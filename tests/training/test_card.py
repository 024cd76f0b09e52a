import contextlib
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard

import munjang
from munjang import BiEncoder, CrossEncoder
from munjang.data.examples import Examples
from munjang.training.card import MARKER, shown, write_card
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, prepare
from munjang.training.run import Run
from munjang.training.trainee import Trainee

ODD = "a|b\n<script>x</script> `c` *d* \ud800 [e](http://f) \x00\u202e " + "long " * 60
PAIRS = Examples(
    "/home/someone/nli|train.tsv",
    ([ODD, "a cat", "rain", "never shown"], ["a dog", "it is wet", "a man eats", "nor this"]),
    ("premise", "hypo|thesis"),
    labels=np.array([0, 1, 1, 0]),
    label_names=("no", "yes"),
    notes=("2 rows dropped",),
)
SCORED = Examples("sts", (["a cat", "rain"], ["a dog", "wet"]), scores=np.array([0.25, 0.5]))
EVALUATION = {
    "main": 0.8125,
    "name": "/data/sts-dev.tsv",
    "on": {"/data/sts-dev.tsv": {"kind": "sts", "main": "spearman", "metrics": {"spearman": 0.8125, "pearson": 0.75}}},
}


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    """A card that fails is only a warning, which would hide a defect here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def write(
    output: Path,
    holder: BiEncoder | CrossEncoder,
    datasets: list[Dataset],
    config: TrainConfig | None = None,
    lines: tuple[dict[str, Any], ...] = (),
) -> str:
    config = config or TrainConfig()
    with Run(output) as run:
        run.begin({})
        for line in lines:
            run.log(line)
        trainee = Trainee(holder, holder.device, config)
        holder.save(output)
        write_card(output, holder, [prepare(dataset, trainee, config, None) for dataset in datasets], run, config)
    return (output / "README.md").read_text(encoding="utf-8")


def blocks(card: str) -> list[str]:
    return re.findall(r"```python\n(.*?)\n```", card, re.DOTALL)


def rows(card: str) -> list[list[str]]:
    return [line[2:-2].split(" | ") for line in card.splitlines() if line.startswith("| ")]


def executed(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    return names


def test_the_card_of_a_bi_encoder(tmp_path: Path, tiny_bert: Path) -> None:
    config = TrainConfig(batch_size=2, evaluate=("/data/sts-dev.tsv",))
    datasets = [Dataset(data=PAIRS), Dataset(data=SCORED, objective="cosent")]
    model = BiEncoder.load(tiny_bert, device="cpu")
    lines = ({"step": 9, "evaluation": {**EVALUATION, "main": 0.1}}, {"step": 18, "evaluation": EVALUATION})
    card = write(tmp_path / "my model", model, datasets, config, lines)
    data = ModelCard(card).data.to_dict()
    assert data == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "base_model": tiny_bert.name,
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "munjang"],
    }
    assert MARKER in card
    found = rows(card)
    for row in (
        ["Dimensions of a vector", "32"],
        ["Longest input in tokens", "100"],
        ["Pooling", "mean"],
        ["Similarity", "cosine"],
        ["sts-dev.tsv", "**spearman**", "**0.8125**"],
        ["sts-dev.tsv", "pearson", "0.7500"],
        ["`batch_size`", "2", "16"],
        ["`evaluate`", "sts-dev.tsv", "–"],
        ["premise", "hypo&#124;thesis", "label"],
        ["a cat", "it is wet", "yes"],
        ["text 1", "text 2", "score"],
        ["rain", "wet", "0.5000"],
    ):
        assert row in found
    assert not any(row[0] == "`learning_rate`" for row in found)
    assert "those of update 18, the best on sts-dev.tsv" in card
    assert f"- 4 rows, hash `{PAIRS.fingerprint}`\n- objective classification, batches of 2, sampler random" in card
    assert "- 2 rows dropped" in card
    assert f"munjang {munjang.__version__}" in card
    assert "/home/someone" not in card
    assert "/data" not in card
    assert "never shown" not in card


def test_odd_characters_stay_in_their_cell(tmp_path: Path, tiny_bert: Path) -> None:
    card = write(tmp_path / "out", BiEncoder.load(tiny_bert, device="cpu"), [Dataset(data=PAIRS)])
    odd = next(row for row in rows(card) if row[0].startswith("a&#124;b"))
    assert len(odd) == 3
    assert odd[0].startswith(
        "a&#124;b &lt;script&gt;x&lt;/script&gt; &#96;c&#96; &#42;d&#42; \ufffd "
        "&#91;e&#93;(http&#58;//f) \ufffd\ufffd long"
    )
    assert odd[0].endswith("…")
    assert "<script" not in card
    assert "### nli&#124;train.tsv" in card


@pytest.mark.parametrize("prompts", ["{}", '{"query": "ask: ", "document": "say: "}'])
def test_both_ways_to_use_a_bi_encoder_run_and_agree(
    tmp_path: Path, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, prompts: str
) -> None:
    model = BiEncoder.load(make("bert", prompts=prompts), device="cpu")
    card = write(tmp_path / "out", model, [Dataset(data=PAIRS)])
    ours, theirs = blocks(card)
    monkeypatch.chdir(tmp_path)
    left, right = executed(ours), executed(theirs)
    for name in ("queries", "documents") if json.loads(prompts) else ("vectors",):
        np.testing.assert_allclose(left[name], right[name], atol=1e-5)
        assert name in ours
    found = {row[0]: row[1] for row in rows(card) if row[0] == "Prompts"}
    assert found == ({"Prompts": 'document: "say: ", query: "ask: "'} if "ask" in prompts else {})


@pytest.mark.parametrize(("num_labels", "task"), [(1, "text-ranking"), (3, "text-classification")])
def test_both_ways_to_use_a_cross_encoder_run_and_agree(
    tmp_path: Path, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, num_labels: int, task: str
) -> None:
    model = CrossEncoder.load(make("bert", kind="cross", num_labels=num_labels), device="cpu")
    dataset = (
        Dataset(data=SCORED, objective="cross_bce")
        if num_labels == 1
        else Dataset(data=PAIRS, objective="cross_entropy")
    )
    card = write(tmp_path / "out", model, [dataset])
    assert ModelCard(card).data.pipeline_tag == task
    assert ["Labels", str(num_labels)] in rows(card)
    monkeypatch.chdir(tmp_path)
    left, right = map(executed, blocks(card))
    pairs = left["pairs"]
    np.testing.assert_allclose(left["model"].predict(pairs), right["model"].predict(pairs), atol=1e-5)
    assert "no evaluation was made" in card


def test_a_readme_of_someone_else_is_kept(tmp_path: Path, tiny_bert: Path) -> None:
    model, output = BiEncoder.load(tiny_bert, device="cpu"), tmp_path / "out"
    model.save(output)
    (output / "README.md").write_bytes(b"# mine \xff")
    run, config = Run(output), TrainConfig()
    write_card(output, model, [], run, config)
    assert (output / "README.md").read_bytes() == b"# mine \xff"
    assert MARKER in (output / "MODEL_CARD.md").read_text()
    (output / "MODEL_CARD.md").write_text("mine too")
    with pytest.warns(UserWarning, match="README.md and MODEL_CARD.md in .* are kept"):
        write_card(output, model, [], run, config)
    assert (output / "MODEL_CARD.md").read_text() == "mine too"


def test_our_own_readme_is_replaced(tmp_path: Path, tiny_bert: Path) -> None:
    model, output = BiEncoder.load(tiny_bert, device="cpu"), tmp_path / "out"
    model.save(output)
    (output / "README.md").write_text(f"before\n{MARKER}\n")
    write_card(output, model, [], Run(output), TrainConfig())
    assert "before" not in (output / "README.md").read_text()
    assert sorted(path.name for path in output.glob("*.md")) == ["README.md"]


@pytest.mark.parametrize(
    ("folder", "base"),
    [
        ("models--owner--a--name/snapshots/0a1b", "owner/a--name"),
        ("1.0", "1.0"),
        ("old model/0_Transformer", None),
        ("old/0_Transformer", "old"),
        ("모델", None),
        ("out", None),
    ],
)
def test_the_base_model_is_a_name_that_the_hub_takes(
    tmp_path: Path, tiny_bert: Path, folder: str, base: str | None
) -> None:
    model, output = BiEncoder.load(tiny_bert, device="cpu"), tmp_path / "out"
    model.save(output)
    model.model.folder = tmp_path / folder
    write_card(output, model, [], Run(output), TrainConfig())
    assert ModelCard.load(output / "README.md").data.base_model == base


def test_a_card_that_can_not_be_written_is_a_warning(tmp_path: Path, tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu")
    with pytest.warns(RuntimeWarning, match="can't be written: .*No such file"):
        write_card(tmp_path / "nowhere", model, [], Run(tmp_path / "out"), TrainConfig())


def test_shown_is_short() -> None:
    assert shown("x" * 101) == "x" * 99 + "…"
    assert shown("x" * 100) == "x" * 100
    assert shown(" a \r\n\t b ") == "a b"


def test_shown_keeps_names_readable() -> None:
    assert shown("spearman_cosine") == "spearman_cosine"
    assert shown("_a_ b_") == "&#95;a&#95; b&#95;"
