# %% [markdown]
# # 4. 바이 인코더와 크로스 인코더 · Bi-encoder and cross-encoder
#
# 설명은 사이트의 4장에 있습니다. The text is chapter 4 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% corpus
from time import perf_counter

from munjang import BiEncoder, CrossEncoder
from munjang.data.tables import read_texts

texts = list(read_texts(str(ROOT / "examples/demo/corpus.tsv"), "text"))
model, scorer = BiEncoder.load(), CrossEncoder.load()
print(len(texts), "글")

# %% bi
model.encode(texts[:32])  # 몸풀기 · warm up
started = perf_counter()
vectors = model.encode_document(texts)
encode_s = perf_counter() - started
started = perf_counter()
scores = model.similarity(vectors, vectors)
compare_s = perf_counter() - started
print(f"글 {len(texts)}개를 벡터로: {encode_s:.1f}초, 모든 쌍 {scores.size:,}개를 비교: {compare_s * 1000:.1f}밀리초")

# %% cross
pairs = [(texts[0], text) for text in texts[:48]]
scorer.predict(pairs[:8])
started = perf_counter()
scorer.predict(pairs)
pair_s = (perf_counter() - started) / len(pairs)
print(f"크로스 인코더: 한 쌍에 {pair_s * 1000:.1f}밀리초")

# %% hours
number = 10_000
cross_h = number * (number - 1) / 2 * pair_s / 3600
bi_s = number * encode_s / len(texts) + number**2 * compare_s / scores.size
print(f"문장 {number:,}개에서 가장 비슷한 쌍: 크로스 인코더 약 {cross_h:,.0f}시간, 바이 인코더 약 {bi_s:,.0f}초")

# %% rerank
query = "커피를 늦게 마시면 왜 잠이 안 오나요?"
ranking = model.similarity(model.encode_query([query]), vectors)[0].argsort()[::-1][:20]  # 찾고: 20개만
started = perf_counter()
hits = scorer.rank(query, [texts[at] for at in ranking], top_k=3)  # 다시 줄 세우고: 3개
print(f"다시 줄 세우기 {(perf_counter() - started) * 1000:.0f}밀리초")
for hit in hits:
    print(f"{hit.score:.3f}  {hit.index + 1}등에서  {hit.text}")
