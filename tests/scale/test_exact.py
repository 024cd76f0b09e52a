import json
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.scale.encode import encode
from munjang.scale.exact import merged, search_exactly
from munjang.scale.job import Job
from munjang.scale.shards import Choice
from munjang.stores.base import Found
from munjang.vectors.similarity import SIMILARITIES

WORDS = ["fox", "dog", "lazy", "quick", "brown", "jumps", "over", "runs", "sleeps", "eats"]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> tuple[Path, list[str], np.ndarray]:
    folder = tmp_path_factory.mktemp("exact")
    random = np.random.default_rng(3)
    texts = [" ".join(random.choice(WORDS, 4)) for _ in range(60)] + ["fox dog"] * 3  # equal ones: by id
    ids = [f"{number * 37 % 63:02d}" for number in range(63)]
    rows = [json.dumps({"text": text, "id": row_id}) + "\n" for text, row_id in zip(texts, ids, strict=True)]
    (folder / "a.jsonl").write_text("".join(rows))
    choice = Choice(id_column="id")
    encode(
        Job(
            model=str(tiny_bert),
            output=str(folder / "out"),
            files=(str(folder / "a.jsonl"),),
            block_rows=10,
            choice=choice,
        )
    )
    return folder / "out", ids, BiEncoder.load(tiny_bert, "cpu").encode(texts)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_files_together_give_what_one_matrix_gives(
    encoded: tuple[Path, list[str], np.ndarray], metric: str, k: int
) -> None:
    folder, ids, vectors = encoded
    queries = vectors[[0, 17, 62]] + 0.01
    found = search_exactly(str(folder), queries, k, metric)
    scores_QN = SIMILARITIES[metric](queries, vectors)
    for each, scores in zip(found, scores_QN, strict=True):
        order = sorted(range(63), key=lambda at: (-round(float(scores[at]), 5), ids[at]))[:k]
        assert np.abs(np.array(each.scores) - scores[order]).max() < 1e-5
        assert set(each.ids[: k - 1]) <= {ids[at] for at in range(63) if scores[at] >= scores[order[-1]] - 2e-5}
        assert len(each.ids) == len(set(each.ids)) == min(k, 63)


def test_lists_are_merged_by_score_then_id() -> None:
    parts = [Found(["b", "a"], [0.9, 0.5]), Found(["c", "A"], [0.9, 0.1]), Found([], [])]
    assert merged(parts, 3) == Found(["b", "c", "a"], [0.9, 0.9, 0.5])


def test_refused(encoded: tuple[Path, list[str], np.ndarray], tmp_path: Path) -> None:
    folder, _, vectors = encoded
    with pytest.raises(InputError, match=r"Queries are \[Q, 32\]"):
        search_exactly(str(folder), vectors[:, :8], 3)
    with pytest.raises(InputError, match="k must be at least 1"):
        search_exactly(str(folder), vectors[:1], 0)
    with pytest.raises(InputError, match="metric one of cosine, dot, euclidean"):
        search_exactly(str(folder), vectors[:1], 3, "manhattan")  # its order is not that of products and lengths
    with pytest.raises(InputError, match=r"has no manifest.json"):
        search_exactly(str(tmp_path), vectors[:1], 3)
