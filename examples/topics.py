"""Find what texts are about: topics found, merged, kept, asked about a new text, and drawn as a map.

Run: python examples/topics.py [FOLDER for the map and the topics]
"""

import sys
import tempfile
from pathlib import Path

from munjang import BiEncoder
from munjang.tasks.topics import TopicConfig, find_topics, load_topics, merge_topics, save_topics, write_map

FORMS = {
    "pets": ["My {} cat sleeps on the sofa.", "The {} dog barks at the mailman.", "A {} kitten plays with wool."],
    "money": ["The {} bank raised its rates.", "Shares of a {} airline fell.", "Investors sold {} stocks."],
    "food": ["She cooked a {} soup with onions.", "This {} bread needs more salt.", "We baked a {} cake."],
}
WORDS = ["old", "new", "big", "small", "quiet", "famous", "cheap", "strange", "local", "Korean"]
texts = [form.format(word) for forms in FORMS.values() for form in forms for word in WORDS]

model = BiEncoder.load()  # the bundled Korean-English model; needs no network
vectors = model.encode_document(texts)
found = find_topics(texts, model, TopicConfig(num_topics=3, num_terms=5), vectors)  # None finds the number
for topic in found.topics:
    print(f"{topic.number}: {topic.size} texts, {topic.label}")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
save_topics(found, folder / "topics")
again = load_topics(folder / "topics")
print("A puppy chews on a shoe ->", again.topics[again.assign(["A puppy chews on a shoe."], model).topic_of_N[0]].label)
print("merged:", [topic.size for topic in merge_topics(found, [[0, 1]]).topics])
write_map(folder / "map.html", found, vectors, "Pets, money and food")
print("map:", folder / "map.html")
