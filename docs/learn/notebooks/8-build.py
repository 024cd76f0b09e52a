# %% [markdown]
# # 8. 무엇을 만들까 · What to build
#
# 설명은 사이트의 8장에 있습니다. The text is chapter 8 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% keywords
from munjang import BiEncoder
from munjang.data.tables import read_rows
from munjang.tasks.keywords import KeywordConfig, keywords

model = BiEncoder.load()
corpus = [values for _, values in read_rows(str(ROOT / "examples/demo/corpus.tsv"), lambda names: names)]
texts = [str(row[3]) for row in corpus if row[0] == "ko"]
for text, found in zip(texts[:3], keywords(texts[:3], model, KeywordConfig(top=3)), strict=True):
    print([word.text for word in found], "←", text[:40])

# %% topics
from munjang.tasks.topics import TopicConfig, find_topics

vectors = model.encode_document(texts)
topics = find_topics(texts, model, TopicConfig(num_topics=8, num_terms=4), vectors)
topics

# %% clusters
from munjang.tasks.cluster import ClusterConfig, cluster, groups_of

clusters = cluster(vectors, config=ClusterConfig(threshold=0.65, min_size=3))
for group in groups_of(clusters, vectors, texts)[:4]:
    print(group.size, group.keywords, "|", texts[group.representatives[0]][:40])

# %% duplicates
from munjang.tasks.dedupe import dedupe

reviews = ["배송이 빨라요", "배송이  빨라요", "배송이 정말 빠릅니다", "색이 예뻐요"]
for pair in dedupe(reviews, model=model, threshold=0.85).dropped:
    print(f"{reviews[pair.index]!r} = {reviews[pair.kept]!r} ({pair.reason}, {pair.score:.2f})")

# %% classify
from munjang.tasks.classify import Classifier

examples = {
    "배송": ["택배가 아직 안 왔어요", "언제 도착하나요", "배송지를 바꾸고 싶어요", "송장 번호를 알려 주세요"],
    "환불": ["돈을 돌려주세요", "반품하고 싶어요", "결제를 취소해 주세요", "환불은 며칠 걸리나요"],
}
labels = [label for label, group in examples.items() for _ in group]
classifier = Classifier.fit([text for group in examples.values() for text in group], labels, model)
print(classifier.predict(["물건이 어디쯤 왔나요?", "샀던 것을 무르려고요"]))

# %% books
from munjang.tasks.recommend import Items, recommend

table = read_rows(str(ROOT / "examples/books/books.tsv"), lambda names: names)
books = [[str(value) for value in values] for _, values in table]
items = Items.of_texts([f"{title}. {text}" for _, title, text in books], model, ids=[id for id, _, _ in books])
titles = {id: title for id, title, _ in books}
for item in recommend(items, need="우울할 때 위로가 되는 소설")[:3]:
    print(f"{item.score:.2f}  {titles[item.id]}")
