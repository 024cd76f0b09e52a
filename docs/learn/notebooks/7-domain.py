# %% [markdown]
# # 7. 한 분야에 맞추기 · A domain
#
# 설명은 사이트의 7장에 있습니다. The text is chapter 7 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% domain
import numpy as np

from munjang import BiEncoder, TrainConfig, evaluate, train
from munjang.data.examples import Examples

SLANG = [  # 회사에서 쓰는 줄임말과 뜻 · office slang and what it means: 점수 score 0–5
    ("오늘은 칼퇴합니다.", "오늘은 제시간에 퇴근합니다.", 5),
    ("오늘은 칼퇴합니다.", "오늘은 밤늦게까지 일합니다.", 0),
    ("내일 반차예요.", "내일은 하루의 절반만 일해요.", 5),
    ("내일 반차예요.", "내일은 하루 종일 일해요.", 0),
    ("그는 월루 중이다.", "그는 일하지 않고 월급만 받는다.", 5),
    ("그는 월루 중이다.", "그는 무척 열심히 일한다.", 0),
    ("이번 주는 불금이 없다.", "금요일 저녁에도 놀지 못한다.", 5),
    ("이번 주는 불금이 없다.", "금요일 저녁에 신나게 논다.", 0),
    ("회식은 법카로 냈다.", "회사 돈으로 저녁을 샀다.", 5),
    ("회식은 법카로 냈다.", "내 돈으로 저녁을 샀다.", 1),
    ("초안은 오후에 컨펌받는다.", "초안을 오후에 승인받는다.", 5),
    ("초안은 오후에 컨펌받는다.", "초안을 오후에 버린다.", 0),
]
TEST = [
    ("다들 칼퇴했다.", "모두 제시간에 집에 갔다.", 5),
    ("다들 칼퇴했다.", "모두 늦게까지 남아 일했다.", 0),
    ("수요일에 반차를 쓴다.", "수요일에는 반나절만 일한다.", 5),
    ("수요일에 반차를 쓴다.", "수요일에는 온종일 일한다.", 0),
    ("요즘 월루만 한다.", "요즘 일을 하지 않고 논다.", 5),
    ("요즘 월루만 한다.", "요즘 쉬지 않고 일한다.", 0),
    ("법카로 택시를 탔다.", "회사 돈으로 택시를 탔다.", 5),
    ("법카로 택시를 탔다.", "내 돈으로 택시를 탔다.", 1),
]


def scored(name: str, pairs: list[tuple[str, str, int]]) -> Examples:
    first, second, scores = zip(*pairs, strict=True)
    return Examples(name, (list(first), list(second)), scores=np.array(scores) / 5)


def measured(model: BiEncoder) -> str:
    own, general = evaluate(model, scored("test", TEST), kind="sts").score, evaluate(model, DATA / "sts.tsv").score
    return f"분야 {own:.2f}, 일반 {general:.2f}"


model = BiEncoder.load(dtype="float32")
print("그대로:", measured(model))

# %% adapt
texts = [text for first, second, _ in SLANG for text in (first, second)]
adapted = BiEncoder.load(dtype="float32")
train(adapted, Examples("texts", (texts,), ("text",)), "simcse", TrainConfig(epochs=3, batch_size=8, quiet=True))
print("글만으로 적응:", measured(adapted))

# %% fine-tune
config = TrainConfig(epochs=8, batch_size=6, learning_rate=1e-4, quiet=True)
train(model, scored("practice", SLANG), "regression", config)
print("점수로 미세 조정:", measured(model))
