"""Scripts as users write them: the source text with its import line changed prints the same."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

IMPORT = re.compile(r"^(from|import) sentence_transformers\b", re.MULTILINE)

SIMILARITY = """
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(FOLDER, device="cpu")
sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
embeddings = model.encode(sentences)
print(type(embeddings).__name__, embeddings.shape, embeddings.dtype)
similarities = model.similarity(embeddings, embeddings)
print(similarities)
print(model.similarity_fn_name, model.get_sentence_embedding_dimension(), model.max_seq_length)
"""

SEARCH = """
import torch
from sentence_transformers import SentenceTransformer, util

embedder = SentenceTransformer(FOLDER, device="cpu")
corpus = ["A man is eating food.", "The girl is carrying a baby.", "A man is riding a horse.", "나는 오늘 학교에 갔다"]
corpus_embeddings = embedder.encode(corpus, convert_to_tensor=True, show_progress_bar=False, batch_size=2)
corpus_embeddings = util.normalize_embeddings(corpus_embeddings)
queries = ["A man is eating pasta.", "학교에 갔다"]
query_embeddings = embedder.encode(queries, convert_to_tensor=True, normalize_embeddings=True)
hits = util.semantic_search(query_embeddings, corpus_embeddings, score_function=util.dot_score, top_k=3)
for query, found in zip(queries, hits):
    for hit in found:
        print(query, corpus[hit["corpus_id"]], f"{hit['score']:.4f}")
scores = util.cos_sim(query_embeddings, corpus_embeddings)[0]
values, indices = torch.topk(scores, k=2)
for score, index in zip(values, indices):
    print(corpus[index], "(Score: {:.4f})".format(score))
"""

RETRIEVE_AND_RERANK = """
import sentence_transformers
from sentence_transformers import SentenceTransformer, CrossEncoder
from sentence_transformers.util import semantic_search

bi_encoder = SentenceTransformer(FOLDER, device="cpu", prompts={"query": "search for: "})
cross_encoder = CrossEncoder(SCORER, max_length=64, device="cpu")
passages = ["London has nine million inhabitants", "Berlin is well known for its museums", "soup is cold in winter"] * 2
query = "How many people live in London?"
corpus = bi_encoder.encode_document(passages)
hits = semantic_search(bi_encoder.encode_query([query]), corpus, top_k=4)[0]
pairs = [[query, passages[hit["corpus_id"]]] for hit in hits]
for hit, score in zip(hits, cross_encoder.predict(pairs)):
    hit["cross-score"] = score
for hit in sorted(hits, key=lambda hit: hit["cross-score"], reverse=True):
    print(f"{hit['cross-score']:.3f}", passages[hit["corpus_id"]])
for rank in cross_encoder.rank(query, passages[:3], return_documents=True, top_k=2):
    print(f"{rank['score']:.3f}", rank["corpus_id"], rank["text"])
print(sentence_transformers.SentenceTransformer is SentenceTransformer)
"""

CLASSIFY = """
from sentence_transformers import CrossEncoder

model = CrossEncoder(CLASSIFIER, device="cpu")
scores = model.predict([("A man is eating pizza", "A man eats something"), ("A black race car", "A man is driving")])
names = ["contradiction", "entailment", "neutral"]
print([names[place] for place in scores.argmax(axis=1)], scores.shape)
"""

QUANTIZE = """
from sentence_transformers import SentenceTransformer
from sentence_transformers.quantization import quantize_embeddings

model = SentenceTransformer(FOLDER, device="cpu", truncate_dim=16)
texts = ["one two three", "four five", "six", "seven eight nine ten"]
binary = model.encode(texts, precision="binary")
embeddings = model.encode(texts)
print(binary.shape, binary.dtype, (quantize_embeddings(embeddings, precision="binary") == binary).all())
int8 = quantize_embeddings(embeddings[:2], precision="int8", calibration_embeddings=embeddings)
print(int8.dtype, int8.shape)
with model.truncate_sentence_embeddings(8):
    print(model.encode("one").shape)
"""

TOKENS = """
from sentence_transformers import SentenceTransformer

model = SentenceTransformer(FOLDER).to("cpu")
model.eval()
model.max_seq_length = 16
features = model.tokenize(["the quick brown fox", "soup"])
print(features["input_ids"].shape, features["attention_mask"].sum().item())
for text in ["the quick brown fox", "soup"]:
    states = model.encode(text, output_value="token_embeddings")
    print(states.shape, round(float(states.norm()), 3))
print(len(model.tokenizer.tokenize("the quick brown fox")))
model.save_pretrained(TARGET)
print(SentenceTransformer(TARGET, device="cpu").encode(["again"]).shape)
"""
SCRIPTS = {
    "similarity": SIMILARITY,
    "search": SEARCH,
    "retrieve and rerank": RETRIEVE_AND_RERANK,
    "classify": CLASSIFY,
    "quantize": QUANTIZE,
    "tokens": TOKENS,
}


def run(source: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    exec(compile(source, "script", "exec"), dict(names))
    return capsys.readouterr().out


@pytest.mark.parametrize("source", SCRIPTS.values(), ids=SCRIPTS)
def test_only_the_import_changes(
    source: str, make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {
        "FOLDER": str(make("bert", normalize=False)),
        "SCORER": str(make("bert", kind="classifier", num_labels=1)),
        "CLASSIFIER": str(make("bert", kind="classifier", num_labels=3)),
    }
    changed = source.replace("import sentence_transformers\n", "import munjang.compat as sentence_transformers\n")
    changed = IMPORT.sub(r"\1 munjang.compat", changed)
    before, after = source.splitlines(), changed.splitlines()
    assert all(old == new for old, new in zip(before, after, strict=True) if not re.match("from |import ", old))
    theirs = run(source, {**names, "TARGET": str(tmp_path / "theirs")}, capsys)
    ours = run(changed, {**names, "TARGET": str(tmp_path / "ours")}, capsys)
    assert theirs.strip()
    assert ours == theirs
