"""Keywords of texts, English and Korean: the nearest, diverse ones, and steered by seeds.

Run: python examples/keywords.py [MODEL]
"""

import sys

from munjang import BiEncoder
from munjang.tasks.keywords import KeywordConfig, keywords

TEXTS = [
    "Supervised learning is the machine learning task of learning a function that maps an input to an output, "
    "based on example input-output pairs. It infers the function from labeled training data.",
    "The city council voted on Tuesday to build a new bicycle lane along the river, after residents complained "
    "about heavy traffic and unsafe crossings near the primary school.",
    "서울시는 한강 공원에 새로운 자전거 도로를 만들기로 했다. "
    "시민들은 교통 혼잡과 초등학교 건널목의 안전을 걱정해 왔다.",
]
SETTINGS = {
    "nearest": KeywordConfig(),
    "phrases": KeywordConfig(ngrams=(1, 3)),
    "diverse phrases": KeywordConfig(ngrams=(1, 3), pick="mmr", diversity=0.7),
}

model = BiEncoder.load(*sys.argv[1:])  # none named: the bundled one, which needs no network
for text in TEXTS:
    print(text[:60] + "…")
    for name, config in SETTINGS.items():
        (found,) = keywords([text], model, config)  # many texts in one call are faster: a phrase is encoded once
        print(f"  {name}: {', '.join(f'{each.text} {each.score:.2f}' for each in found)}")
(steered,) = keywords(TEXTS[1:2], model, seeds=["cars", "accidents", "danger"])
print("steered to danger:", ", ".join(each.text for each in steered))
