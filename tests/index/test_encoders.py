"""Words, dense, sparse and late interaction in one index: written, found, changed, killed, moved."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, MultiVectorEncoder, SparseEncoder
from munjang.errors import InputError
from munjang.index import Index, ModelMismatch, ways
from munjang.index.transfer import export_rows, import_rows, reembed
from munjang.vectors.maxsim import maxsim
from tests.texts import ENGLISH, KOREAN
from tests.token_models import make_csr, make_late, make_m3, make_splade

TEXTS = [text for text in dict.fromkeys([*ENGLISH, *KOREAN]) if text.strip() and len(text) < 120][:12]
IDS = [f"d{place}" for place in range(len(TEXTS))]
FOUR = ("words", "dense", "sparse", "late")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("ways")
    return {"dense": tiny_bert, "sparse": make_splade(root / "sparse"), "late": make_late(root / "late")}


@pytest.fixture(scope="module")
def models(folders: dict[str, Path]) -> dict[str, Any]:
    return {
        "model": BiEncoder.load(folders["dense"], "cpu"),
        "sparse": SparseEncoder.load(folders["sparse"], "cpu"),
        "late": MultiVectorEncoder.load(folders["late"], "cpu"),
    }


@pytest.fixture
def index(models: dict[str, Any], tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / "index", chunk=0, **models) as made:
        made.add(TEXTS, IDS)
        yield made


def best(index: Index, by: Any, query: str = TEXTS[3]) -> list[tuple[str, float]]:
    return [(hit.document_id, round(hit.score, 5)) for hit in index.search(query, k=5, by=by)]


def test_each_way_has_its_models_scores(index: Index, models: dict[str, Any]) -> None:
    query = TEXTS[3]
    sparse = models["sparse"].similarity([query], TEXTS)[0]
    tokens = models["late"].encode_document(TEXTS, precision="int8")
    late = maxsim(models["late"].encode_query(query), tokens)
    for way, scores in (("sparse", sparse), ("late", late)):
        hits = index.search(query, k=5, by=way)
        order = np.argsort(-scores, kind="stable")[:5]
        assert [hit.document_id for hit in hits] == [IDS[row] for row in order]
        np.testing.assert_allclose([hit.score for hit in hits], scores[order], rtol=1e-4)
    [hit, *_] = index.search(query)
    assert set(hit.ranks) == set(hit.scores) == set(FOUR)
    assert hit.document_id == "d3"
    both = index.search(query, by=("sparse", "late"), weights={"sparse": 1, "late": 0})
    assert both[0].document_id == index.search(query, by="sparse")[0].document_id


def test_upsert_delete_and_reopen(index: Index, models: dict[str, Any], tmp_path: Path) -> None:
    before = {way: best(index, way) for way in FOUR}
    index.upsert([TEXTS[0]], ["d3"])
    assert all(dict(best(index, way)).get("d3") != dict(before[way]).get("d3", 0) for way in ("words", "dense"))
    assert best(index, "sparse") != before["sparse"]
    index.upsert([TEXTS[3]], ["d3"])
    assert {way: best(index, way) for way in FOUR} == before
    index.delete("d3")
    assert all("d3" not in dict(best(index, way)) for way in FOUR)
    index.add([TEXTS[3]], ["d3"])
    with Index.open(tmp_path / "index") as again:  # models by what the index recorded
        assert {way: best(again, way) for way in FOUR} == before
        assert again.info()["beside"]["late"]["model"] == str(models["late"].model.folder)
        assert again.store.schema.tokens == "int8"


def test_all_ways_answer_after_a_kill(folders: dict[str, Path], models: dict[str, Any], tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from munjang import Index; from tests.index.test_encoders import TEXTS, IDS;"
        "place, dense, sparse, late = sys.argv[1:];"
        "index = Index.open(place, dense, chunk=0, device='cpu', sparse=sparse, late=late);"
        "index.add(TEXTS, IDS); os.kill(os.getpid(), signal.SIGKILL)"
    )
    place = tmp_path / "killed"
    done = subprocess.run([sys.executable, "-c", code, place, *map(str, folders.values())], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    with Index.open(place, device="cpu") as again, Index.open("memory:", chunk=0, **models) as fresh:
        fresh.add(TEXTS, IDS)
        for way in (*FOUR, None):
            found, wanted = best(again, way), best(fresh, way)
            assert [id for id, _ in found] == [id for id, _ in wanted]
            np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-3)
    with Index.open(place, **models) as again:  # with the models at hand, too
        assert again.search(TEXTS[5])[0].document_id == "d5"


def test_exported_imported_and_reembedded(
    index: Index, models: dict[str, Any], folders: dict[str, Path], make: Callable[..., Path], tmp_path: Path
) -> None:
    before = {way: best(index, way) for way in FOUR}
    export_rows(index, tmp_path / "rows.jsonl.gz", progress=False)
    with Index.open("memory:", chunk=0, **models) as copy:
        assert import_rows(copy, tmp_path / "rows.jsonl.gz", progress=False) == len(TEXTS)
        assert {way: best(copy, way) for way in FOUR} == before
    with Index.open("memory:", models["model"], chunk=0) as plain:
        import_rows(plain, tmp_path / "rows.jsonl.gz", progress=False)
        assert best(plain, "dense") == before["dense"]
        export_rows(plain, tmp_path / "plain.jsonl", progress=False)
    with pytest.raises(InputError, match="has no sparse vectors of"):
        import_rows(index, tmp_path / "plain.jsonl")
    other = BiEncoder.load(make("distilbert"), "cpu")
    place = str(tmp_path / "index")
    assert reembed(place, other, None, progress=False) == len(TEXTS)
    with Index.open(place, device="cpu") as moved:
        assert best(moved, "dense") != before["dense"]
        assert {way: best(moved, way) for way in ("words", "sparse")} == {w: before[w] for w in ("words", "sparse")}
        assert [id for id, _ in best(moved, "late")] == [id for id, _ in before["late"]]


def test_ways_are_added_to_an_index_that_has_none(
    models: dict[str, Any], folders: dict[str, Path], tmp_path: Path
) -> None:
    place = str(tmp_path / "index")
    with Index.open(place, models["model"], chunk=0) as plain:
        plain.add(TEXTS, IDS)
        assert plain.store.schema.facts["format"] == 1  # older versions read it
        with pytest.raises(InputError, match="Can't search by late: this index keeps no token vectors"):
            plain.search("a", by="late")
    with pytest.raises(InputError, match="reembed"):
        Index.open(place, sparse=models["sparse"])
    assert reembed(place, models["model"], str(folders["dense"]), progress=False, sparse=folders["sparse"])
    with Index.open(place, device="cpu") as index:
        assert set(index.search(TEXTS[3])[0].ranks) == {"words", "dense", "sparse"}
    with pytest.raises(InputError, match="already"):
        reembed(place, models["model"], str(folders["dense"]), progress=False)


def test_large_indexes_read_tokens_of_what_others_found(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = index.search(TEXTS[3], by=("dense", "late"), candidates=3)
    monkeypatch.setattr(ways, "MAX_EXACT_TOKEN_ROWS", 3)
    second = index.search(TEXTS[3], k=3, by=("dense", "late"), candidates=3)
    assert [set(hit.ranks) for hit in second] == [{"dense", "late"}] * 3
    scores = {hit.id: hit.scores["late"] for hit in everything if "late" in hit.scores}
    for hit in second:
        assert hit.scores["late"] == pytest.approx(scores.get(hit.id, hit.scores["late"]), rel=1e-4)


def test_reranked_by_tokens(index: Index, models: dict[str, Any], folders: dict[str, Path]) -> None:
    hits = index.search(TEXTS[3], k=5, by="dense", rerank=models["late"])
    wanted = models["late"].similarity([TEXTS[3]], [hit.text for hit in hits])[0]
    np.testing.assert_allclose([hit.score for hit in hits], wanted, rtol=1e-4)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    by_name = index.search(TEXTS[3], k=5, by="dense", rerank=str(folders["late"]))
    assert [hit.id for hit in by_name] == [hit.id for hit in hits]


def test_smaller_tokens(models: dict[str, Any]) -> None:
    sizes, found = {}, {}
    for tokens, factor in (("float32", None), ("float16", None), ("int8", None), ("int8", 2.0)):
        with Index.open("memory:", chunk=0, tokens=tokens, pool_factor=factor, **models) as index:
            index.add(TEXTS, IDS)
            [rows] = index.scan()
            sizes[tokens, factor] = sum(vectors_TD.nbytes for vectors_TD in rows.tokens or [])
            found[tokens, factor] = [id for id, _ in best(index, "late")]
    full = sizes["float32", None]
    assert sizes["float16", None] == full // 2
    assert sizes["int8", None] == full // 4
    assert found["int8", None] == found["float16", None] == found["float32", None]
    assert sizes["int8", 2.0] < 0.7 * sizes["int8", None]


def test_what_does_not_fit_is_refused(
    index: Index, models: dict[str, Any], make: Callable[..., Path], tmp_path: Path
) -> None:
    other = SparseEncoder.load(make_csr(tmp_path / "csr"), "cpu")
    with pytest.raises(ModelMismatch, match="sparse vectors of"):
        Index.open(tmp_path / "index", sparse=other)
    with pytest.raises(InputError, match="tokens='int8', not 'float32'"):
        Index.open(tmp_path / "index", tokens="float32")
    with pytest.raises(InputError, match="takes a SparseEncoder, not a MultiVectorEncoder"):
        Index.open("memory:", models["model"], sparse=models["late"])
    with pytest.raises(InputError, match="name the model that gives them with late="):
        Index.open("memory:", models["model"], tokens="int8")
    with pytest.raises(InputError, match="kind of token vectors"):
        Index.open("memory:", models["model"], late=models["late"], tokens="int4")
    with pytest.raises(InputError, match="made of texts"):
        index.add(ids=["v"], vectors=np.ones((1, models["model"].dimension), np.float32))
    with pytest.raises(InputError, match="by late reads the query's text"):
        index.search(np.ones(models["model"].dimension, np.float32), by="late")
    assert index.search(np.ones(models["model"].dimension, np.float32))[0].ranks == {"dense": 1}


def test_three_heads_of_one_encoder_read_texts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_m3(tmp_path / "m3")
    dense = BiEncoder.load(folder, "cpu")
    sparse, late = SparseEncoder.load(folder, "cpu"), MultiVectorEncoder.load(folder, "cpu")
    wanted = {"dense": dense.encode_document(TEXTS), "sparse": sparse.encode_document(TEXTS).to_dense()}
    tokens = late.encode_document(TEXTS)
    for model in (sparse, late):
        monkeypatch.setattr(model, "encode_document", None)  # not called
    with Index.open("memory:", dense, chunk=0, sparse=sparse, late=late, tokens="float32") as index:
        index.add(TEXTS, IDS)
        [rows] = index.scan()
        assert rows.sparse is not None
        np.testing.assert_allclose(rows.vectors, wanted["dense"], atol=1e-5)
        np.testing.assert_allclose(rows.sparse.to_dense(), wanted["sparse"], atol=1e-5)
        for found, expected in zip(rows.tokens or [], tokens, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-5)
        assert set(index.search(TEXTS[3])[0].ranks) == set(FOUR)
