"""Messages to a help desk: labelled by a few examples, by descriptions, or not at all.

Run: python examples/classify.py
"""

from munjang import BiEncoder
from munjang.tasks.classify import Classifier, zero_shot

EXAMPLES = {
    "delivery": ["Where is my parcel?", "The package never arrived.", "How long does shipping take?", "Track my order"],
    "payment": ["My card was charged twice.", "Can I pay by invoice?", "The refund is missing.", "Payment declined"],
    "account": ["I forgot my password.", "How do I change my email?", "Delete my profile", "I can't log in."],
}
OTHERS = ["Do you like jazz?", "It rains in Busan.", "Who won the match?", "Tell me a joke."]  # none of these
MESSAGES = [
    "When will my shoes be delivered?",
    "I was billed the wrong amount",
    "Reset my login",
    "Can you sing a song?",
]

model = BiEncoder.load(device="cpu")  # the bundled Korean-English model; needs no network
texts = [text for some in EXAMPLES.values() for text in some]
labels = [label for label, some in EXAMPLES.items() for _ in some]
classifier = Classifier.fit(texts, labels, model, others=OTHERS)  # classifier.save("help-desk") keeps it

print(f"Learned from {len(texts)} examples; {classifier.report['accuracy']:.0%} right on those held out in turn")
for text, label, row in zip(MESSAGES, classifier.predict(MESSAGES), classifier.probabilities(MESSAGES), strict=True):
    print(f"  {row.max():.2f}  {label or '(none of these)':16} {text}")

print("\nWithout examples: labels described in words")
described = zero_shot({"delivery": "a parcel", "payment": "money and cards", "account": "logging in"}, model)
for text, label in zip(MESSAGES[:3], described.predict(MESSAGES[:3]), strict=True):
    print(f"  {label:16} {text}")
