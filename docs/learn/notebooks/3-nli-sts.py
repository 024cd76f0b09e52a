# %% [markdown]
# # 3. 한국어로 NLI 다음 STS · NLI, then STS, in Korean
#
# 설명은 사이트의 3장에 있습니다. The text is chapter 3 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% start
from munjang import BiEncoder, TrainConfig, evaluate, train
from munjang.checkpoint.shorten import shorten

NLI, STS = DATA / "nli.tsv", DATA / "sts.tsv"


def plain(num_layers: int = 2) -> BiEncoder:
    """층을 빼서 배운 것을 잃게 한 모델 · a model that forgot what it knew, as layers were taken out."""
    cut = BiEncoder.load(dtype="float32")
    shorten(cut.model, num_layers)
    return BiEncoder(cut.model, cut.device, cut.dtype)


model = plain()
before = evaluate(model, STS)  # 배우지 않은 47쌍 · 47 pairs that are not trained on
print(before)

# %% nli
config = TrainConfig(epochs=4, batch_size=16, learning_rate=5e-5, head_rate=1e-2, quiet=True)
train(model, NLI, "classification", config)
after_nli = evaluate(model, STS)
print(f"NLI 다음: {after_nli.score:.3f}")

# %% sts
config = TrainConfig(epochs=6, batch_size=8, learning_rate=5e-5, quiet=True)
train(model, STS, "regression", config)  # 표의 split 열에서 train인 33쌍 · the 33 rows whose split is train
after_sts = evaluate(model, STS)
print(f"NLI, STS 다음: {after_sts.score:.3f}")

# %% sts-only
alone = plain()
train(alone, STS, "regression", config)
print(f"STS만: {evaluate(alone, STS).score:.3f}")

# %% full
print(f"층을 빼지 않은 번들 모델: {evaluate(BiEncoder.load(), STS).score:.3f}")
