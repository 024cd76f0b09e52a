"""Sentences to vectors: which are closest, and which answer a question.    Run: python examples/quickstart.py"""

import numpy as np

from munjang import BiEncoder

SENTENCES = [
    "A cat sleeps on the sofa.",
    "The kitten is napping on the couch.",
    "The stock market fell sharply on Monday.",
    "Shares dropped at the start of the week.",
    "Water boils at one hundred degrees Celsius.",
    "You can pay by card or bank transfer.",
    "The museum is closed on public holidays.",
    "Our office opens at nine in the morning.",
    "A man is playing the guitar on stage.",
    "A musician performs with his guitar.",
    "Parcels usually arrive within three days.",
    "The train to the airport leaves every half hour.",
]
QUESTIONS = ["When will my order be delivered?", "How do I get to the airport?", "Which payment methods are accepted?"]

model = BiEncoder.load()  # the bundled Korean-English model; needs no network
vectors = model.encode_document(SENTENCES)  # [12, 384]

print("Closest pairs")
scores = np.asarray(model.similarity(vectors, vectors))
pairs = sorted(zip(*np.triu_indices(len(SENTENCES), k=1), strict=True), key=lambda pair: -scores[pair])
for a, b in pairs[:3]:
    print(f"  {scores[a, b]:.2f}  {SENTENCES[a]}  |  {SENTENCES[b]}")

print("\nSearch")
for question, row in zip(QUESTIONS, model.similarity(model.encode_query(QUESTIONS), vectors), strict=True):
    best = int(np.argmax(row))
    print(f"  {row[best]:.2f}  {question}  ->  {SENTENCES[best]}")
