"""Passages with their context: titles, headings, overlap, late chunking, neighbours."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.index import Index

BODY = "# Tea\n\nLeaves of a plant.\n\n## Green\n\nSteep it at eighty degrees.\n\n## Black\n\nSteep it hot and long."


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


def test_titles_and_headings_are_read_in_front(model: BiEncoder, tmp_path: Path) -> None:
    found = {}
    for context in ("none", "title", "headings"):
        with Index.open(tmp_path / context, model, chunk=12, overlap=0, context=context) as index:
            index.add([BODY], ["d"], [{"title": "Drinks"}])
            found[context] = index.search("Steep it hot and long.", by="dense", group="passage")
        with Index.open(tmp_path / context, model) as again:
            hits = again.search("Steep it hot and long.", by="dense", group="passage")
            assert [hit.score for hit in hits] == [hit.score for hit in found[context]]
    last = {kind: next(hit for hit in hits if "long" in hit.text) for kind, hits in found.items()}
    assert "context" not in last["none"].metadata
    assert last["title"].metadata["context"] == "Drinks"
    assert last["headings"].metadata["context"] in ("Drinks > Tea > Black", "Drinks > Tea")
    assert all(BODY[hit.start : hit.end] == hit.text for hit in last.values())  # shown without it
    wanted = model.similarity(
        "Steep it hot and long.", f"{last['headings'].metadata['context']}\n{last['headings'].text}"
    )
    assert last["headings"].score == pytest.approx(wanted, abs=1e-4)
    with Index.open(tmp_path / "headings", model) as index:
        assert "drink tea black" in " ".join(next(index.scan()).terms or ())  # words find it too
        with pytest.raises(InputError, match="another name"):
            index.add(["text"], ["own"], [{"context": "mine"}])
    with pytest.raises(InputError, match="made with context='title', not 'headings'"):
        Index.open(tmp_path / "title", model, context="headings")


def test_overlap(model: BiEncoder) -> None:
    text = " ".join(f"Sentence {number} ends." for number in range(12))
    for overlap, is_repeated in ((0, False), (10, True)):
        with Index.open("memory:", model, chunk=20, overlap=overlap) as index:
            index.add([text], ["d"])
            [rows] = index.scan()
            places = sorted(zip(rows.starts, rows.ends, strict=True))
            assert any(start < end for (_, end), (start, _) in pairwise(places)) == is_repeated
    with pytest.raises(InputError, match="0 to 10"):
        Index.open("memory:", model, chunk=20, overlap=11)


def test_late_chunks_are_means_of_tokens_read_together(model: BiEncoder) -> None:
    text = " ".join(f"Sentence {number} ends." for number in range(6))
    with Index.open("memory:", model, chunk=12, overlap=0, late_chunking=True) as index:
        index.add([text], ["d"])
        [rows] = index.scan()
        vectors_ND = rows.vectors
        assert len(rows) > 2
        assert vectors_ND is not None
        tokens = model.encode(text, output="tokens")[1:-1]
        counts = model.tokenizer.bodies(list(rows.texts))[1].tolist()
        assert sum(counts) == len(tokens)
        ends = np.cumsum(counts)
        for row, end in enumerate(ends):
            mean_D = tokens[end - counts[row] : end].mean(0)
            np.testing.assert_allclose(vectors_ND[row], mean_D / np.linalg.norm(mean_D), atol=1e-4)
        index.add(["word " * 400], ["long"])  # longer than the model reads at once: several windows
        assert all(np.isfinite(batch.vectors).all() for batch in index.scan())


def test_late_chunking_needs_means(make: object, tmp_path: Path) -> None:
    cls = BiEncoder.load(make("bert", pooling="cls"), "cpu")  # type: ignore[operator]
    with pytest.raises(InputError, match="pooling cls"):
        Index.open("memory:", cls, late_chunking=True)


def test_hits_with_what_stands_around_them(model: BiEncoder) -> None:
    text = "\n\n".join(f"Part {number} of this text ends here." for number in range(8))
    with Index.open("memory:", model, chunk=14, overlap=4) as index:
        index.add([text, "Another."], ["d", "e"])
        [hit] = index.search("Part 4 of this text", k=1)
        [wider] = index.search("Part 4 of this text", k=1, around=1)
        [whole] = index.search("Part 4 of this text", k=1, around="document")
        assert wider.id == hit.id
        assert hit.text in wider.text
        assert len(hit.text) < len(wider.text) < len(whole.text)
        assert whole.text.split() == text.split()
        assert (whole.start, whole.end) == (0, len(text))
        assert {whole.text[start:end] for start, end in whole.highlights} == {
            hit.text[start:end] for start, end in hit.highlights
        }
        for number, place in enumerate(("first", "second")):
            index.upsert([text + str(number)], ["f"], [{"part": place}])
        hits = index.search("Part 4 of this text", around="document", where="part = 'second'")
        assert [(hit.document_id, hit.text[-1]) for hit in hits] == [("f", "1")]
    for wrong in (-1, "page", 1.5):
        with pytest.raises(InputError, match="around"):
            index.search("a", around=wrong)  # type: ignore[arg-type]
