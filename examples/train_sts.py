"""Teach a model what words mean in one office, from scored pairs.    Run: python examples/train_sts.py"""

import numpy as np

from munjang import BiEncoder, TrainConfig, evaluate, train
from munjang.data.examples import Examples

ROWS = [  # score 0 to 5; a file of the columns sentence1, sentence2, score does as well
    ("I am OOO tomorrow.", "I am on holiday tomorrow.", 5),
    ("I am OOO tomorrow.", "I work in the office tomorrow.", 0),
    ("Anna is OOO until Friday.", "Anna is not at work until Friday.", 5),
    ("Anna is OOO until Friday.", "Anna finishes it by Friday.", 1),
    ("The build is red.", "The tests fail.", 5),
    ("The build is red.", "All tests pass.", 0),
    ("The build is green again.", "The tests pass again.", 5),
    ("The build is green again.", "The tests fail again.", 0),
    ("LGTM, ship it.", "I approve, release it.", 5),
    ("LGTM, ship it.", "I object, do not release it.", 0),
    ("Please send it by EOD.", "Please send it before this evening.", 5),
    ("Please send it by EOD.", "Please send it next week.", 1),
]
TEST = [
    ("Tom is OOO this week.", "Tom is on holiday this week.", 5),
    ("Tom is OOO this week.", "Tom works in the office this week.", 0),
    ("Is the build green?", "Do all tests pass?", 5),
    ("Why is the build red?", "Why do all tests pass?", 0),
    ("LGTM from me.", "I approve this.", 5),
    ("I need this by EOD.", "I need this next week.", 1),
    ("I need this by EOD.", "I need this before this evening.", 5),
]
practice, test = (
    Examples(name, ([row[0] for row in rows], [row[1] for row in rows]), scores=np.array([row[2] / 5 for row in rows]))
    for name, rows in (("practice", ROWS), ("test", TEST))
)
model = BiEncoder.load(dtype="float32")
print(f"Spearman's correlation before training: {evaluate(model, test, kind='sts').score:.2f}")
train(model, practice, "regression", TrainConfig(epochs=15, batch_size=6, learning_rate=1e-4, quiet=True))
print(f"and after it: {evaluate(model, test, kind='sts').score:.2f}")  # model.save("office-model") keeps it
