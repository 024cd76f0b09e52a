"""SetFit's side of benchmarks/classify.py, in an environment of its own: JSON in, JSON out.

PYTHON benchmarks/setfit_side.py IN.json OUT.json
"""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    """Fit and predict as SetFit's own documentation does."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    model = SetFitModel.from_pretrained(given["model"])
    arguments = TrainingArguments(
        batch_size=16,
        num_epochs=1,
        num_iterations=given["num_pairs"],
        seed=given["seed"],
        report_to="none",
        save_strategy="no",
        output_dir=given["folder"],
    )
    rows = Dataset.from_dict({"text": given["texts"], "label": given["labels"]})
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    start, cpu = time.perf_counter(), time.process_time()
    trainer.train()
    took = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
    found = [int(label) for label in model.predict(given["test"])]
    Path(sys.argv[2]).write_text(json.dumps({"predicted": found, **took}), encoding="utf-8")


if __name__ == "__main__":
    main()
