# %% [markdown]
# # 1. 낱말에서 문장 벡터로 · From words to sentence vectors
#
# 설명은 사이트의 1장에 있습니다. The text is chapter 1 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% load
from munjang import BiEncoder

model = BiEncoder.load(dtype="float32")
sentence = "나는 오늘 학교에 갔다."
tokens = model.encode(sentence, output="tokens")  # 토큰마다 벡터 하나 · one vector a token
print("토큰 벡터:", tokens.shape, "  문장 벡터:", model.encode(sentence).shape)

# %% pooling
pooled = {
    "cls": tokens[0],  # 맨 앞의 특수 토큰 · the special token in front
    "mean": tokens.mean(axis=0),  # 평균 · the average
    "max": tokens.max(axis=0),  # 성분마다 가장 큰 값 · the largest value of each component
}
for name, vector in pooled.items():
    own = BiEncoder.load(dtype="float32", pooling=name).encode(sentence)
    print(f"{name:5} encode()와의 코사인: {model.similarity(vector[None], own[None])[0, 0]:.4f}")

# %% measure
from munjang import evaluate

PAIRS = DATA / "sts.tsv"  # 두 문장과 사람이 매긴 점수 · two sentences and a person's score
for name in pooled:
    score = evaluate(BiEncoder.load(dtype="float32", pooling=name), PAIRS).score
    print(f"{name:5} 스피어만 Spearman {score:.3f}")

# %% layers
import numpy as np

from munjang.checkpoint.shorten import shorten

words = model.network.encoder.own.embeddings.word.weight.detach().float().numpy()  # 층을 지나기 전 · before any layer
question, yes, no = "비가 올까요?", "내일은 흐리고 소나기가 내리겠습니다.", "비가 오는 날 전을 부쳤다."
for name in ("낱말 벡터의 평균", "학습한 문장 벡터"):
    if name.startswith("낱말"):
        vectors = np.stack([words[ids].mean(axis=0) for ids in model.tokenize([question, yes, no]).sequences])
    else:
        vectors = model.encode([question, yes, no])
    right, wrong = model.similarity(vectors[:1], vectors[1:])[0]
    print(f"{name}: 답 {right:.2f}, 낱말만 같은 글 {wrong:.2f}")

# %% untrained
cut = BiEncoder.load(dtype="float32")
shorten(
    cut.model, 2
)  # 열두 층 가운데 둘만: 문장을 배우지 않은 모델 · two of twelve layers: no longer trained for sentences
untrained = BiEncoder(cut.model, cut.device, cut.dtype)
print(f"층을 뺀 모델 {evaluate(untrained, PAIRS).score:.3f}, 온전한 모델 {evaluate(model, PAIRS).score:.3f}")
