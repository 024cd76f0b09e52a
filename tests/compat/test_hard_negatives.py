"""mine_hard_negatives, beside the incumbent's: the same rows and the same scores."""

from typing import Any

import pytest
import torch

datasets = pytest.importorskip("datasets", reason="pip install 'munjang[compat-train]'")
from sentence_transformers.util import mine_hard_negatives as theirs  # noqa: E402

from munjang.compat.util import mine_hard_negatives  # noqa: E402
from munjang.errors import InputError  # noqa: E402

TEXTS = [f"text {number}" for number in range(40)]
PAIRS = {"question": TEXTS[:8] + TEXTS[:2], "answer": TEXTS[8:18]}  # the first two questions have two answers


class Encoder:
    """Gives every text a vector of its own; what mining asks of a model, and no more."""

    device = torch.device("cpu")

    def encode_query(self, texts: list[str], **options: Any) -> Any:
        generator = torch.Generator().manual_seed(7)
        table = torch.nn.functional.normalize(torch.randn(len(TEXTS), 16, generator=generator), dim=1)
        return table[[TEXTS.index(text) for text in texts]].numpy()

    encode_document = encode_query

    def get_embedding_dimension(self) -> int:
        return 16

    def similarity(self, a: Any, b: Any) -> torch.Tensor:
        return torch.as_tensor(a) @ torch.as_tensor(b).T

    def similarity_pairwise(self, a: Any, b: Any) -> torch.Tensor:
        return (torch.as_tensor(a) * torch.as_tensor(b)).sum(1)


class Scorer:
    """Scores a pair by the numbers in its texts."""

    def predict(self, pairs: list[tuple[str, str]], **options: Any) -> torch.Tensor:
        return torch.tensor([(int(a.split()[1]) * 7 + int(b.split()[1]) * 3) % 11 / 11 for a, b in pairs])


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "corpus": {"corpus": TEXTS, "num_negatives": 4},
    "ranks": {"corpus": TEXTS, "range_min": 2, "range_max": 9},
    "absolute margin": {"corpus": TEXTS, "absolute_margin": 0.1},
    "relative margin": {"corpus": TEXTS, "relative_margin": 0.05},
    "scores": {"corpus": TEXTS, "max_score": 0.3, "min_score": 0.0},
    "scorer": {"corpus": TEXTS, "cross_encoder": Scorer(), "max_score": 0.7},
    "positives": {"corpus": TEXTS, "include_positives": True, "num_negatives": 5},
    "more than there is": {"num_negatives": 12},
}


@pytest.mark.parametrize("layout", ["triplet", "n-tuple", "labeled-pair", "labeled-list"])
@pytest.mark.parametrize("case", CASES)
def test_same_rows(case: str, layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for mine in (mine_hard_negatives, theirs):
        made = datasets.Dataset.from_dict(PAIRS)
        found = mine(made, Encoder(), output_format=layout, output_scores=True, **CASES[case])
        results.append((found.to_dict(), capsys.readouterr().out))
    (own, printed), (wanted, said) = results
    assert own.keys() == wanted.keys()
    for column in own:
        if "score" not in column:
            assert own[column] == wanted[column]
        else:
            for score, other in zip(own[column], wanted[column], strict=True):
                assert score == pytest.approx(other, abs=1e-6)
    skipped = [line for line in said.splitlines() if line.startswith("Skipped")]
    assert [line.partition(" (")[0] for line in printed.splitlines() if line.startswith("Skipped")] == [
        line.partition(" (")[0] for line in skipped
    ]
    assert ("Could not find enough" in printed) == ("Could not find enough" in said)


def test_a_corpus_may_be_a_column_of_a_dataset() -> None:  # theirs adds a list to it, which datasets 4 refuses
    column = datasets.Dataset.from_dict({"text": TEXTS})["text"]
    made = datasets.Dataset.from_dict(PAIRS)
    by_list, by_column = (
        mine_hard_negatives(made, Encoder(), corpus=given, verbose=False) for given in (TEXTS, column)
    )
    assert by_list.to_dict() == by_column.to_dict()


def test_faiss_finds_the_same() -> None:
    pytest.importorskip("faiss")
    made = datasets.Dataset.from_dict(PAIRS)
    exact, found = (mine_hard_negatives(made, Encoder(), use_faiss=use, verbose=False) for use in (False, True))
    assert exact.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_negatives": 0}, "at least 1"),
        ({"num_negatives": 9, "range_max": 3}, "only 3 candidates remain"),
        ({"range_min": 5, "range_max": 3}, "smaller than range_max"),
        ({"output_format": "pairs"}, "Invalid output_format"),
    ],
)
def test_what_cannot_be_mined(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mine_hard_negatives(datasets.Dataset.from_dict(PAIRS), Encoder(), verbose=False, **options)
