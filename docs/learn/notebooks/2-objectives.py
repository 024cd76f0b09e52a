# %% [markdown]
# # 2. 세 가지 목적 함수 · The three objectives
#
# 설명은 사이트의 2장에 있습니다. The text is chapter 2 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% vectors
import numpy as np

from munjang import BiEncoder

model = BiEncoder.load(dtype="float32")
premise = "강아지가 공을 물고 달려온다."
hypotheses = {
    "함의 entailment": "동물이 달리고 있다.",
    "중립 neutral": "강아지는 두 살이다.",
    "모순 contradiction": "강아지가 가만히 앉아 있다.",
}
u = model.encode(premise)
for label, text in hypotheses.items():
    v = model.encode(text)
    print(f"{label:18} cos(u, v) = {u @ v:.2f}   |u − v| = {np.linalg.norm(u - v):.2f}")

# %% softmax
import torch

features = np.concatenate([u, v, np.abs(u - v)])  # 3 × 384
layer = torch.nn.Linear(len(features), 3)  # 학습이 끝나면 버린다 · dropped after training
print("특징", features.shape, "→ 확률", layer(torch.from_numpy(features)).softmax(0).detach().numpy().round(2))

# %% regression
for cosine in (0.9, 0.5, 0.0):
    print(f"코사인 {cosine:.1f}, 사람의 점수 0.9: 손실 {(cosine - 0.9) ** 2:.2f}")


# %% triplet
def triplet(near: float, far: float, margin: float = 1.0) -> float:
    return max(near - far + margin, 0.0)


for near, far in ((0.4, 1.6), (0.9, 1.1), (1.2, 0.8)):
    print(f"가까워야 할 거리 {near}, 멀어야 할 거리 {far}: 손실 {triplet(near, far):.1f}")

# %% drawn
from munjang import TrainConfig, train
from munjang.checkpoint.shorten import shorten


def small() -> BiEncoder:
    """두 층짜리 모델 · a model of two layers."""
    cut = BiEncoder.load(dtype="float32")
    shorten(cut.model, 2)
    return BiEncoder(cut.model, cut.device, cut.dtype)


class Curve:
    """손실의 곡선 · a curve of losses."""

    def __init__(self, losses: list[float]) -> None:
        self.losses = losses

    def _repr_html_(self) -> str:
        top, last = max(self.losses), len(self.losses) - 1
        points = " ".join(
            f"{20 + 560 * at / last:.0f},{150 - 130 * loss / top:.0f}" for at, loss in enumerate(self.losses)
        )
        end = 140 - 130 * self.losses[-1] / top
        axes = '<path d="M20 10V150H590" fill="none" stroke="#888"/>'
        line = f'<polyline points="{points}" fill="none" stroke="#b93a2b" stroke-width="3"/>'
        first = f'<text x="28" y="22" fill="currentColor">{top:.2f}</text>'
        final = f'<text x="540" y="{end:.0f}" fill="currentColor">{self.losses[-1]:.2f}</text>'
        return f'<svg viewBox="0 0 600 170" role="img" aria-label="loss">{axes}{line}{first}{final}</svg>'


losses: list[float] = []
config = TrainConfig(epochs=8, learning_rate=1e-4, head_rate=1e-2, quiet=True, log_every=2)


def watch(loop: object) -> None:
    loop.on_log = lambda event: losses.append(event["loss"]) if "loss" in event else None


train(small(), DATA / "nli.tsv", "classification", config, watch=watch)
Curve(losses)

# %% in-batch
anchors = ["택배는 언제 오나요?", "비밀번호를 잊었어요.", "박물관은 언제 쉬나요?"]
answers = ["배송에는 사흘이 걸립니다.", "암호는 화면 아래에서 다시 정합니다.", "월요일에는 문을 닫습니다."]
scores = model.similarity(anchors, answers) / 0.05
probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
print(probabilities.round(2))
print("손실 loss:", -np.log(np.diag(probabilities)).mean().round(3))
