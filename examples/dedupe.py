"""Duplicates: a set without texts that say the same, and a test set without what the training set holds.

Run: python examples/dedupe.py [MODEL]
"""

import sys

from munjang import BiEncoder
from munjang.tasks.dedupe import dedupe

TRAIN = ["A man is playing a guitar.", "The stock market fell on Monday.", "A cat sleeps on the sofa."]
TEST = ["a man is  playing a GUITAR.", "A cat is sleeping on a sofa.", "A child rides a bicycle."]
REVIEWS = ["Great phone!", "great phone!", "Great phone, I love it.", "It broke after a week.", "A really great phone!"]

model = BiEncoder.load(*sys.argv[1:])  # none named: the bundled one, which needs no network
found = dedupe(REVIEWS, model=model, threshold=0.8, keep="longest")
print("reviews that stay:", [REVIEWS[place] for place in found.kept])
for each in found.dropped:
    print(f"  dropped {REVIEWS[each.index]!r}: {each.reason} to {REVIEWS[each.kept]!r}, {each.score:.2f}")
found = dedupe(TEST, TRAIN, model=model, threshold=0.9)
print("test rows that stay:", [TEST[place] for place in found.kept])
for each in found.dropped:
    print(f"  dropped {TEST[each.index]!r}: {each.reason} to {TRAIN[each.kept]!r}, {each.score:.2f}")
