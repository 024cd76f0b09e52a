"""The real BERTopic on a model of ours, and our topics of the same vectors beside it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.compat.bertopic import bertopic_embedder
from munjang.errors import MissingExtra
from munjang.tasks.topics.find import TopicConfig, find_topics

SUBJECTS = {
    "cats": ["The {} cat sleeps on the sofa.", "A {} kitten purrs in the garden."],
    "money": ["The {} bank raised its rates.", "Shares of the {} company fell."],
}
WORDS = ("old", "new", "big", "small", "quiet", "happy", "local", "famous", "cheap", "strange", "young", "tired")


@pytest.mark.slow  # numba compiles for half a minute
def test_bertopic_takes_our_model(minilm: Path) -> None:
    bertopic = pytest.importorskip("bertopic", reason="pip install 'munjang[bertopic]'")
    representation, umap = pytest.importorskip("bertopic.representation"), pytest.importorskip("umap")
    texts = [form.format(word) for word in WORDS for forms in SUBJECTS.values() for form in forms]
    subjects = np.array([place for _ in WORDS for place, forms in enumerate(SUBJECTS.values()) for _ in forms])
    model = BiEncoder.load(minilm, device="cpu")
    theirs = bertopic.BERTopic(
        embedding_model=bertopic_embedder(model),
        umap_model=umap.UMAP(n_neighbors=10, n_components=5, min_dist=0.0, metric="cosine", random_state=0),
        representation_model=representation.KeyBERTInspired(),  # embeds words too
    )
    topics, _ = theirs.fit_transform(texts)
    # each topic holds one subject, and a new text goes to the topic of its own
    assert all(len(set(subjects[np.array(topics) == topic])) == 1 for topic in set(topics) - {-1})
    ((new,), _) = theirs.transform(["A kitten and a cat sleep."])
    assert set(subjects[np.array(topics) == new]) == {0}
    ours = find_topics(texts, model, TopicConfig(num_topics=2))
    assert len(set(zip(ours.topic_of_N.tolist(), subjects.tolist(), strict=True))) == 2


def test_without_bertopic_the_way_to_install_it_is_said(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bertopic.backend", None)
    with pytest.raises(MissingExtra, match=r"pip install 'munjang\[bertopic\]'"):
        bertopic_embedder(BiEncoder.load(tiny_bert, device="cpu"))
