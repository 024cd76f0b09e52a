# %% [markdown]
# # 6. 한 모델, 두 언어 · One model for two languages
#
# 설명은 사이트의 6장에 있습니다. The text is chapter 6 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% data
import numpy as np

from munjang import BiEncoder, Dataset, TrainConfig, train
from munjang.checkpoint.shorten import shorten
from munjang.data.examples import Examples
from munjang.data.tables import read_rows

rows = [values for _, values in read_rows(str(DATA / "parallel.tsv"), lambda names: names)]
english, korean = [str(row[0]) for row in rows], [str(row[1]) for row in rows]
print(english[0], "=", korean[0], f"({len(rows)} pairs)")

# %% before
teacher = BiEncoder.load(dtype="float32")
cut = BiEncoder.load(dtype="float32")
shorten(cut.model, 3)
student = BiEncoder(cut.model, cut.device, cut.dtype)


def share_found(model: BiEncoder) -> float:
    """영어 문장마다 제 번역이 가장 가까운 비율 · how often a sentence's own translation is the nearest."""
    scores = model.similarity(english[40:], korean[40:])
    return float((scores.argmax(axis=1) == np.arange(len(scores))).mean())


print(f"선생님 {share_found(teacher):.0%}, 배우기 전 학생 {share_found(student):.0%}")

# %% distil
practice = Examples("parallel", (english[:40], korean[:40]), ("en", "ko"))
config = TrainConfig(epochs=15, batch_size=8, learning_rate=2e-4, quiet=True)
lesson = Dataset(data=practice, objective="embedding_mse", teacher=teacher, options={"target": "first"})
train(student, lesson, config=config)
print(f"배운 뒤 학생 {share_found(student):.0%}")

# %% one-space
print(student.similarity(["The library is very quiet."], ["도서관은 아주 조용하다.", "사과가 익었다."]).round(2))
