"""SentenceTransformerTrainer and CrossEncoderTrainer: the same losses as theirs, callbacks, checkpoints, fit."""

import numpy as np
import pytest

datasets = pytest.importorskip("datasets", reason="pip install 'munjang[compat-train]'")
pytest.importorskip("accelerate", reason="pip install 'munjang[compat-train]'")

import sentence_transformers  # noqa: E402
import torch  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from munjang import compat  # noqa: E402
from munjang.compat import CrossEncoderTrainer, SentenceTransformerTrainer, cross_losses, losses  # noqa: E402
from munjang.compat.evaluation import TranslationEvaluator  # noqa: E402
from tests.compat.test_losses import still  # noqa: E402

A = ["the cat sleeps", "a dog runs", "rain falls", "the sun shines"]
B = ["a cat naps", "the dog is running", "it rains", "sunshine"]


class Watch(TrainerCallback):
    def __init__(self):
        self.losses, self.begun = [], 0

    def on_train_begin(self, args, state, control, **kwargs):
        self.begun += 1

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in (logs or {}):
            self.losses.append(float(logs["loss"]))


def run(package, trainer, arguments, model, loss, folder, **options):
    data = datasets.Dataset.from_dict({"anchor": A * 2, "positive": B * 2, **options.pop("columns", {})})
    watch = Watch()
    settings = {"per_device_train_batch_size": 4, "num_train_epochs": 2, "logging_steps": 1, "learning_rate": 1e-3}
    args = arguments(
        output_dir=str(folder), report_to="none", save_strategy="no", disable_tqdm=True, **{**settings, **options}
    )
    made = trainer(model=model, args=args, train_dataset=data, loss=loss, callbacks=[watch])
    made.train()
    return made, watch


@pytest.mark.parametrize("sampler", ["batch_sampler", "no_duplicates"])
def test_training_has_their_losses(make, tmp_path, sampler):
    folder = str(make("bert", normalize=False))
    found = []
    for package, module in ((compat, losses.ALL), (sentence_transformers, vars(sentence_transformers.losses))):
        model = package.SentenceTransformer(folder, device="cpu")
        loss = module["MultipleNegativesRankingLoss"](model)
        names = (package.SentenceTransformerTrainer, package.SentenceTransformerTrainingArguments)
        still(model)
        model.train = lambda mode=True, model=model: model  # dropout stays off
        _, watch = run(package, *names, model, loss, tmp_path, batch_sampler=sampler)
        assert watch.begun == 1
        found.append(watch.losses)
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_layers_are_frozen_by_their_lines(make, tmp_path):
    folder = str(make("bert", normalize=False))
    found = []
    for package, module in ((compat, losses.ALL), (sentence_transformers, vars(sentence_transformers.losses))):
        model = package.SentenceTransformer(folder, device="cpu")
        network = model[0].auto_model
        frozen = [*network.embeddings.parameters(), *network.encoder.layer[0].parameters()]
        for parameter in frozen:
            parameter.requires_grad = False
        before = [parameter.clone() for parameter in frozen]
        still(model)
        model.train = lambda mode=True, model=model: model  # dropout stays off
        names = (package.SentenceTransformerTrainer, package.SentenceTransformerTrainingArguments)
        _, watch = run(package, *names, model, module["MultipleNegativesRankingLoss"](model), tmp_path)
        assert all(torch.equal(*pair) for pair in zip(before, frozen, strict=True))
        found.append(watch.losses)
    assert found[0][0] > found[0][-1]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_several_datasets_evaluator_checkpoints_and_card(make, tmp_path):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    before = model.encode(A)
    pairs = datasets.Dataset.from_dict({"sentence1": A * 2, "sentence2": B * 2})
    scored = pairs.add_column("score", [0.9, 0.1] * 4)
    args = compat.SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path / "run"),
        num_train_epochs=1,
        per_device_train_batch_size=4,
        save_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        report_to="none",
        disable_tqdm=True,
        prompts={"pairs": "search: "},
    )
    made = {"pairs": losses.ALL["MultipleNegativesRankingLoss"](model), "scored": losses.ALL["CoSENTLoss"](model)}
    data = {"pairs": pairs, "scored": scored}
    evaluator = TranslationEvaluator(A, B)
    trainer = SentenceTransformerTrainer(
        model=model, args=args, train_dataset=data, eval_dataset=data, loss=made, evaluator=evaluator
    )
    trainer.train()
    assert "eval_pairs_mean_accuracy" in trainer.evaluate()
    assert np.abs(model.encode(A) - before).max() > 0
    assert (tmp_path / "run" / "eval" / evaluator.csv_file).is_file()
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "run" / "checkpoint-4"), device="cpu")
    np.testing.assert_allclose(again.encode(A), model.encode(A), atol=3e-6)
    trainer.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))
    model.save(str(tmp_path / "model"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "CoSENTLoss, MultipleNegativesRankingLoss" in card
    assert "`prompts`" in card


def test_cross_encoders_and_fit(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # fit writes to ./checkpoints unless told
    scorer = compat.CrossEncoder(str(make("bert", kind="classifier", num_labels=1)), device="cpu")
    before = scorer.predict(list(zip(A, B, strict=True)))
    loss = cross_losses.ALL["BinaryCrossEntropyLoss"](scorer)
    columns = {"label": [1.0, 0.0] * 4}
    names = (CrossEncoderTrainer, compat.CrossEncoderTrainingArguments)
    _, watch = run(compat, *names, scorer, loss, tmp_path, columns=columns)
    assert len(watch.losses) == 4
    assert np.abs(scorer.predict(list(zip(A, B, strict=True))) - before).max() > 0
    examples = [compat.InputExample(texts=[a, b], label=0.5) for a, b in zip(A, B, strict=True)]
    scorer.fit(DataLoader(examples, batch_size=2), epochs=1, warmup_steps=0, show_progress_bar=False)
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    called = []
    model.fit(
        [(DataLoader(examples, batch_size=2, shuffle=True), losses.ALL["CosineSimilarityLoss"](model))],
        evaluator=TranslationEvaluator(A, B),
        epochs=2,
        warmup_steps=1,
        show_progress_bar=False,
        output_path=str(tmp_path / "fitted"),
        callback=lambda *given: called.append(given),
    )
    assert [step for _, _, step in called] == [2, 4]
    assert compat.SentenceTransformer(str(tmp_path / "fitted")).encode(A).shape == (4, 32)


def test_a_transform_of_the_caller_stays_beside_the_names_of_datasets():
    """Prompts by dataset name every row; a transform that a dataset has already still applies."""
    from munjang.compat.training.trainer import _named

    rows = datasets.Dataset.from_dict({"text": ["a b", "c"]})
    rows.set_transform(lambda batch: {"text": [text.upper() for text in batch["text"]]})
    assert _named(rows, "first")[0] == {"text": "A B", "dataset_name": "first"}
    assert rows[0] == {"text": "A B"}


def test_arguments_from_a_command_line():
    from transformers import HfArgumentParser

    given = ["--prompts", '{"a": "b: "}', "--batch_sampler", "no_duplicates", "--learning_rate_mapping", '{"x": 0.1}']
    (found,) = HfArgumentParser((compat.SentenceTransformerTrainingArguments,)).parse_args_into_dataclasses(given)
    assert found.prompts == {"a": "b: "}
    assert found.batch_sampler.value == "no_duplicates"
    assert found.learning_rate_mapping == {"x": 0.1}


def test_collators_warn_and_resolve_like_theirs(caplog):
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator as Theirs

    from munjang.compat.training.collator import SentenceTransformerDataCollator as Ours

    def preprocess(texts, prompt=None, task=None, **options):
        return {"input_ids": [f"{prompt}{text}" for text in texts], **options}

    rows = [{"positive": "p", "anchor": "a", "label": 1}, {"positive": "q", "anchor": "b", "label": 0}]
    settings = {"prompts": {"anchor": "x: "}, "router_mapping": {"positive": "document"}, "max_length": {"document": 7}}
    ours, theirs = Ours(preprocess, **settings)(rows), Theirs(preprocess, **settings)(rows)
    assert "usually expected at index" in caplog.text
    assert ours.pop("label").tolist() == theirs.pop("label").tolist()
    assert ours == theirs
