"""SetFit's own Trainer, end to end, with our model as its body."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("setfit", reason="setfit is not installed: make frameworks")

import setfit
import torch
from datasets import Dataset
from sklearn.linear_model import LogisticRegression

from munjang import compat

TEXTS = ["the fox jumps", "a quick fox", "fox over fox", "the cat", "hello cat", "cat and cat"]  # of its vocabulary
LABELS = [1, 1, 1, 0, 0, 0]


def accuracy(predicted: Any, wanted: Any) -> dict[str, float]:
    return {"accuracy": float(np.mean(np.asarray(predicted) == np.asarray(wanted)))}


@pytest.mark.slow
@pytest.mark.parametrize("head", ["logistic regression", "torch"])
def test_setfit_trains_our_model(tiny_bert: Path, tmp_path: Path, head: str) -> None:
    torch.manual_seed(0)
    body = compat.SentenceTransformer(str(tiny_bert), device="cpu")
    is_torch = head == "torch"
    heads: Any = setfit.SetFitHead(in_features=32, out_features=2, device="cpu") if is_torch else LogisticRegression()
    model = setfit.SetFitModel(model_body=body, model_head=heads)
    before = torch.cat([each.detach().flatten().clone() for each in body.parameters()])
    data = Dataset.from_dict({"text": TEXTS * 2, "label": LABELS * 2})
    arguments = setfit.TrainingArguments(
        batch_size=4,
        max_steps=20,
        num_epochs=4,
        body_learning_rate=1e-3,
        end_to_end=is_torch,
        output_dir=str(tmp_path / "run"),
        report_to="none",
    )
    trainer = setfit.Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data, metric=accuracy)
    trainer.train()
    after = torch.cat([each.detach().flatten() for each in body.parameters()])
    assert float((after - before).abs().max()) > 1e-4
    assert trainer.evaluate()["accuracy"] > 0.6  # of a tiny random model
    probabilities = np.asarray(model.predict_proba(TEXTS))
    model.save_pretrained(str(tmp_path / "saved"))  # a folder that sentence-transformers itself loads here
    again = setfit.SetFitModel.from_pretrained(str(tmp_path / "saved"))
    np.testing.assert_allclose(np.asarray(again.predict_proba(TEXTS)), probabilities, atol=1e-4)
