"""Vectors of `munjang encode --ray` in an index, through the command."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.errors import InputError
from munjang.index import Index
from munjang.index.loading import Seen, check_source, load_tables
from munjang.scale.encode import encode
from munjang.scale.job import Job
from munjang.scale.shards import Choice
from tests.contracts.stores.engines import LASTING, location_of

TEXTS = [f"a quick fox jumps over {number} lazy dogs" for number in range(30)]
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    folder = tmp_path_factory.mktemp("encoded")
    rows = [json.dumps({"text": text, "id": f"n{number}"}) + "\n" for number, text in enumerate(TEXTS)]
    (folder / "a.jsonl").write_text("".join(rows))
    same = {"model": str(tiny_bert), "files": (str(folder / "a.jsonl"),), "block_rows": 8}
    encode(Job(**same, output=str(folder / "out"), choice=Choice(id_column="id"), keep_text=True))
    encode(Job(**same, output=str(folder / "binary"), precision="binary"))
    encode(Job(**same, output=str(folder / "half"), precision="float16"))
    return folder


@pytest.fixture(params=LASTING)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return location_of(request.param, tmp_path / "index")


def table(index: Index, ids: list[str], text: str) -> Any:
    """Rows as `munjang encode --ray` writes them."""
    texts = [f"{text} {each}" for each in ids]
    vectors = pa.array(index.model.encode_document(texts).ravel())
    column = pa.FixedSizeListArray.from_arrays(vectors, index.store.schema.dimension)
    return pa.table({"id": ids, "text": texts, "vector": column})


def test_an_id_of_two_tables_is_one_row(place: str, tiny_bert: Path) -> None:
    with Index.open(place, str(tiny_bert)) as index:
        given = [table(index, ["a", "b"], "old"), table(index, ["b", "c"], "new"), table(index, ["d"], "old")]
        assert load_tables(index, given) == 5
        assert sorted(row for rows in index.store.scan() for row in rows.ids) == ["a#0", "b#0", "c#0", "d#0"]
        assert [hit.text for hit in index.get(["a#0", "b#0"])] == ["old a", "new b"]


def test_a_loaded_document_leaves_no_old_passages(place: str, tiny_bert: Path) -> None:
    with Index.open(place, str(tiny_bert), chunk=8) as index:
        long = " ".join(TEXTS[:4])
        index.upsert([long, long], ["a", "keep"])
        kept = index.store.passages(["keep"])["keep"]
        assert len(kept) == len(index.store.passages(["a"])["a"]) > 1
        load_tables(index, [table(index, ["a", "b"], "new")])
        assert index.store.passages(["a", "keep"]) == {"a": ["a#0"], "keep": kept}
        assert index.get(["a#0"])[0].text == "new a"


def test_seen_ids() -> None:
    seen, known = Seen(), set()
    random = np.random.default_rng(0)
    for _ in range(100):
        ids = [str(number) for number in random.choice(3000, 8, replace=False)]
        assert seen.add(ids) == (not known.isdisjoint(ids))
        known |= {*ids}
    assert len(seen.runs) < 10


def test_loaded_vectors_are_found(place: str, encoded: Path, tiny_bert: Path) -> None:
    command = ["index", "import", place, str(encoded / "out"), "--model", str(tiny_bert), "--quiet"]
    assert main(command) == 0
    assert main(command) == 0  # again: every row takes its own place
    with Index.open(place) as index:
        assert index.count() == 30
        hits = index.search(TEXTS[7], k=3)
        assert (hits[0].document_id, hits[0].text) == ("n7", TEXTS[7])
        assert hits[0].score == pytest.approx(1, abs=1e-5)
        wanted = index.model.encode_document(TEXTS[7])
        assert np.abs(index.store.get(["n7#0"], True).vectors[0] - wanted).max() < 1e-5
        assert index.delete(["n7"]) == 1
        if index.store.abilities.has_terms:
            assert index.store.search_terms(["12"], 1)[0].ids == ["n12#0"]


def test_half_precision_and_counted_ids(encoded: Path, tiny_bert: Path) -> None:
    with Index.open("memory:", str(tiny_bert)) as index:
        from munjang.scale.manifest import complete_manifest, tables

        assert load_tables(index, tables(str(encoded / "half"), complete_manifest(str(encoded / "half")))) == 30
        assert index.search(TEXTS[3], k=1)[0].document_id == "3"


PLAIN = {"precision": "float32", "role": None, "prompt": None, "prompt_name": None, "normalize": None}
PROMPTED = '{"document": "passage: ", "query": "query: ", "same": "passage: "}'


@pytest.mark.parametrize(
    ("prompts", "given", "is_right"),
    [
        (None, {}, True),
        (None, {"role": "query"}, True),
        (None, {"role": "document"}, True),
        (None, {"prompt": ""}, True),
        (None, {"prompt": "irrelevant: "}, False),
        ('{"query": "query: "}', {"role": "query"}, False),
        ('{"query": "query: "}', {"prompt_name": "query"}, False),
        ('{"query": "query: "}', {"role": "document"}, True),
        (PROMPTED, {}, False),
        (PROMPTED, {"role": "query"}, False),
        (PROMPTED, {"prompt": "irrelevant: "}, False),
        (PROMPTED, {"prompt_name": "query"}, False),
        (PROMPTED, {"prompt_name": "document"}, True),
        (PROMPTED, {"prompt_name": "same"}, True),
        (PROMPTED, {"prompt": "passage: "}, True),
    ],
)
def test_the_prompt_is_that_of_documents(
    prompts: str | None, given: dict[str, Any], is_right: bool, tiny_bert: Path
) -> None:
    model = BiEncoder.load(tiny_bert, "cpu")
    model.prompts = json.loads(prompts or "{}")
    with Index.open("memory:", model) as index:
        check = partial(
            check_source, index.store.schema, index.model, model.fingerprint, {**PLAIN, **given}, model.dimension
        )
        if is_right:
            check()
        else:
            with pytest.raises(InputError, match="encode them with --document"):
                check()


def test_a_default_prompt_is_a_prompt(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, "cpu")
    model.prompts, model.default_prompt_name = {"query": "query: "}, "query"
    with Index.open("memory:", model) as index, pytest.raises(InputError, match="made with the prompt 'query: '"):
        check_source(index.store.schema, index.model, model.fingerprint, PLAIN, model.dimension)


@pytest.mark.parametrize(
    ("is_unit", "metric", "normalize", "is_right"),
    [
        (True, "dot", None, True),
        (True, "dot", True, True),
        (True, "dot", False, False),
        (True, "cosine", False, True),
        (False, "dot", True, False),
        (False, "euclidean", True, False),
        (False, "dot", False, True),
        (False, "cosine", True, True),
    ],
)
def test_lengths_are_those_of_the_index(
    is_unit: bool, metric: str, normalize: bool | None, is_right: bool, make: Any
) -> None:
    model = BiEncoder.load(make("bert", normalize=is_unit), "cpu")
    model.similarity_name = metric
    with Index.open("memory:", model) as index:
        check = partial(
            check_source,
            index.store.schema,
            index.model,
            model.fingerprint,
            {**PLAIN, "normalize": normalize},
            model.dimension,
        )
        if is_right:
            check()
        else:
            with pytest.raises(InputError, match="normalize"):
                check()


def test_refused(
    encoded: Path, tiny_bert: Path, make: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("lancedb")
    place = ["index", "import", str(tmp_path / "i")]
    assert main([*place, str(encoded / "binary"), "--model", str(tiny_bert)]) == 2
    assert "These vectors are binary" in capsys.readouterr().err
    other = make("distilbert")
    assert main([*place[:2], str(tmp_path / "j"), str(encoded / "out"), "--model", str(other)]) == 2
    assert "another model" in capsys.readouterr().err
    assert main([*place, str(tmp_path), "--model", str(tiny_bert)]) == 2
    assert "has no manifest.json" in capsys.readouterr().err
    asks = make("bert", prompts='{"document": "passage: "}')
    same = {"model": str(asks), "files": (str(encoded / "a.jsonl"),)}
    encode(Job(**same, output=str(tmp_path / "no"), choice=Choice(id_column="id")))
    assert main([*place[:2], str(tmp_path / "k"), str(tmp_path / "no"), "--model", str(asks)]) == 2
    assert "encode them with --document" in capsys.readouterr().err
    encode(Job(**same, output=str(tmp_path / "yes"), choice=Choice(id_column="id"), role="document"))
    assert main([*place[:2], str(tmp_path / "k"), str(tmp_path / "yes"), "--model", str(asks), "--quiet"]) == 0
