"""Our models in mteb: its own protocols, its own tasks, the figures of munjang evaluate."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import MissingExtra
from munjang.evaluation import KINDS, Settings, evaluate
from munjang.evaluation import mteb as adapter
from munjang.evaluation.kinds.corpus import Retrieval
from munjang.evaluation.kinds.reranking import Candidates
from tests.evaluation.hub_cache import environment, put
from tests.texts import ENGLISH, KOREAN

ROOT = Path(__file__).parents[2]
FIRST, SECOND = [*ENGLISH[:6], *KOREAN[:6]], [*ENGLISH[6:12], *KOREAN[6:12]]
SCORES = np.linspace(0, 1, 12)


@pytest.mark.parametrize(
    ("prompts", "role", "expected"),
    [
        (["query", "document"], "query", None),
        (["STS", "Task"], None, "Task"),
        (["STS", "Task", "Task-query"], "query", "Task-query"),
        (["STS", "STS-document"], "document", "STS-document"),
        (["STS-query"], "document", None),
    ],
)
def test_prompts_in_the_order_of_mteb(prompts: list[str], role: str | None, expected: str | None) -> None:
    assert adapter._prompt_name(dict.fromkeys(prompts, "x: "), "Task", "STS", role) == expected


def test_without_mteb_the_extra_is_named(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(adapter, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"munjang\[mteb\]"):
        adapter.mteb_model(model)


@pytest.fixture
def mteb() -> Any:
    return pytest.importorskip("mteb", reason="mteb is not installed: pip install 'munjang[mteb]'")


def run(mteb: Any, model: Any, task: Any) -> dict[str, float]:
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    (scores,) = result.task_results[0].scores["test"]
    return scores


@pytest.mark.slow
def test_protocols(mteb: Any, model: BiEncoder, cross: CrossEncoder) -> None:
    from mteb.models.models_protocols import CrossEncoderProtocol, EncoderProtocol

    ours, theirs = adapter.mteb_model(model), adapter.mteb_model(cross, name="some/name")
    assert isinstance(ours, EncoderProtocol)
    assert isinstance(theirs, CrossEncoderProtocol)
    assert ours.mteb_model_meta.name.startswith("munjang/")
    assert ours.mteb_model_meta.embed_dim == model.dimension
    assert theirs.mteb_model_meta.name == "some/name"


@pytest.mark.slow
def test_sts_task(mteb: Any, model: BiEncoder, tiny_bert: Path) -> None:
    from datasets import Dataset, DatasetDict
    from mteb.mocks.mock_tasks.sts import MockSTSTask

    class LocalTask(MockSTSTask):
        def load_data(self, **kwargs: Any) -> None:
            rows = Dataset.from_dict({"sentence1": FIRST, "sentence2": SECOND, "score": SCORES.tolist()})
            self.dataset, self.data_loaded = DatasetDict({"test": rows}), True

    ours = evaluate(model, Examples("local", (FIRST, SECOND), scores=SCORES))
    for wrapped in (adapter.mteb_model(model), adapter.MtebEncoder(str(tiny_bert), None, device="cpu")):
        found = run(mteb, wrapped, LocalTask())
        assert found["cosine_spearman"] == pytest.approx(ours.metrics["spearman_cosine"], abs=1e-5)
        assert found["euclidean_pearson"] == pytest.approx(ours.metrics["pearson_euclidean"], abs=1e-5)


@pytest.fixture
def retrieval_task(mteb: Any) -> Any:
    from mteb.mocks.mock_tasks.retrieval import MockRetrievalTask

    task = MockRetrievalTask()
    task.load_data()
    return task


def as_ours(task: Any) -> Retrieval:
    data = task.dataset["default"]["test"]
    corpus = {row["id"]: f"{row.get('title') or ''} {row['text']}".strip() for row in data["corpus"]}
    queries = {row["id"]: row["text"] for row in data["queries"]}
    return Retrieval("mock", corpus, queries, {query: dict(each) for query, each in data["relevant_docs"].items()})


@pytest.mark.slow
def test_retrieval_task(mteb: Any, retrieval_task: Any, tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    model.prompts = {"query": "over: ", "document": "jumps: "}
    found = run(mteb, adapter.mteb_model(model), retrieval_task)
    ours = evaluate(model, as_ours(retrieval_task))
    assert found["ndcg_at_10"] == pytest.approx(ours.metrics["ndcg@10"], abs=1e-5)
    assert found["map_at_10"] == pytest.approx(ours.metrics["map@10"], abs=1e-5)


@pytest.mark.slow
def test_reranking_task(mteb: Any, model: BiEncoder, cross: CrossEncoder) -> None:
    from mteb.mocks.mock_tasks.reranking import MockRerankingTask

    task = MockRerankingTask()
    task.load_data()
    candidates = Candidates(as_ours(task), dict(task.dataset["default"]["test"]["top_ranked"]))
    for each in (model, cross):
        expected = KINDS["reranking"].evaluate(each, candidates, Settings()).metrics
        found = run(mteb, adapter.mteb_model(each), task)
        assert found["map_at_1000"] == pytest.approx(expected["map"], abs=1e-5)
        assert found["ndcg_at_10"] == pytest.approx(expected["ndcg@10"], abs=1e-5)


@pytest.mark.slow
def test_encode_takes_batches_and_roles(mteb: Any, make: Callable[..., Path]) -> None:
    model = BiEncoder.load(make("bert"), device="cpu", threads=1)
    model.prompts = {"query": "over: ", "STS": "the "}
    wrapped = adapter.mteb_model(model)
    batches = [{"text": ["a", "b"]}, {"text": ["c"]}]
    where = {"hf_split": "test", "hf_subset": "default"}
    task = SimpleNamespace(name="Task", type="Retrieval")
    query = SimpleNamespace(value="query")
    found = wrapped.encode(batches, task_metadata=task, prompt_type=query, batch_size=2, **where)
    np.testing.assert_allclose(found, model.encode(["over: a", "over: b", "over: c"], prompt=""), atol=1e-6)
    sts = SimpleNamespace(name="Task", type="STS")
    found = wrapped.encode(batches, task_metadata=sts, **where)
    np.testing.assert_allclose(found, model.encode(["the a", "the b", "the c"], prompt=""), atol=1e-6)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the Hub with two sets of MTEB(kor, v2) and one of NanoBEIR; their sentences are ours."""
    pytest.importorskip("mteb", reason="mteb is not installed: pip install 'munjang[mteb]'")
    cache = tmp_path_factory.mktemp("hub") / "datasets"
    pairs = {"sentence1": FIRST, "sentence2": SECOND, "score": (5 * SCORES).tolist()}
    put(cache, "dkoterwa/kor-sts", "default", {"test": pairs})
    for name, split in (("yjoonjang/squad_kor_v1", "test"), ("mteb/NanoSciFactRetrieval", "train")):
        documents = {"_id": [f"d{n}" for n in range(12)], "text": SECOND, "title": [""] * 12}
        queries = {"_id": [f"q{n}" for n in range(6)], "text": [f"{text}?" for text in SECOND[:6]]}
        relevant = {"query-id": queries["_id"], "corpus-id": documents["_id"][:6], "score": [1.0] * 6}
        put(cache, name, "corpus", {split: documents})
        put(cache, name, "queries", {split: queries})
        put(cache, name, "default", {split: relevant})
    return cache


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "expected", "num_left_out"),
    [("kor", {"KorSTS", "SQuADKorV1Retrieval"}, 18), ("nano", {"NanoSciFactRetrieval"}, 12)],
)
def test_a_suite_of_mteb_from_the_cache_of_the_hub(
    suite: str, expected: set[str], num_left_out: int, hub: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out, results = tmp_path / "out.json", tmp_path / "results"
    command = [sys.executable, "-m", "munjang", "evaluate", str(tiny_bert), "--suite", suite, "--json", str(out)]
    command += ["--mteb-results", str(results), "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, env=environment(hub), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.count(" is left out: ") == num_left_out
    reports = {report["dataset"]: report for report in json.loads(out.read_text("utf-8"))}
    assert set(reports) == expected
    model = BiEncoder.load(tiny_bert, "cpu", threads=1)
    if suite == "kor":
        ours = evaluate(model, Examples("local", (FIRST, SECOND), scores=SCORES)).metrics["spearman_cosine"]
        assert reports["KorSTS"]["metrics"]["cosine_spearman"] == pytest.approx(ours, abs=1e-5)
    check_results(results, expected, model)


def check_results(folder: Path, expected: set[str], model: BiEncoder) -> None:
    """Read the files as mteb's leaderboard does, which is made from such folders."""
    from mteb.cache import ResultCache

    (found,) = ResultCache(folder).load_results().model_results
    assert found.model_name == f"munjang/{model.model.folder.name}"
    assert found.model_revision == model.fingerprint
    assert {result.task_name for result in found.task_results} == expected
    (meta,) = folder.rglob("model_meta.json")
    stated = json.loads(meta.read_text("utf-8"))
    assert (stated["name"], stated["embed_dim"]) == (found.model_name, model.dimension)
    for result in found.task_results:
        assert len(result.dataset_revision) >= 4
        assert all(np.isfinite(score["main_score"]) for scores in result.scores.values() for score in scores)
