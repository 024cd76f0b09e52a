"""Paraphrases: the most similar pairs of one list of texts, and between two.

Run: python examples/paraphrases.py [MODEL]
"""

import sys

from munjang import BiEncoder
from munjang.tasks.paraphrases import paraphrases

TEXTS = [
    "How do I reset my password?",
    "Where is my parcel?",
    "I forgot my password, what can I do?",
    "Can I pay with a credit card?",
    "My package has not arrived yet.",
    "Do you accept credit cards?",
]
ANSWERED = ["Forgotten passwords", "Late deliveries", "Ways to pay"]

model = BiEncoder.load(*sys.argv[1:])  # none named: the bundled one, which needs no network
for pair in paraphrases(TEXTS, model=model, max_pairs=3):
    print(f"{pair.score:.2f}  {TEXTS[pair.first]}  =  {TEXTS[pair.second]}")
print("Each question's nearest answer:")
for pair in paraphrases(TEXTS, ANSWERED, model=model, max_neighbours=1, min_score=0.3):
    print(f"{pair.score:.2f}  {TEXTS[pair.first]}  ->  {ANSWERED[pair.second]}")
