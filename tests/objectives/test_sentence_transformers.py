"""Numbers equal to those of sentence-transformers' losses, for those who come from there. Tolerance 1e-5 in fp32."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer, util
from sentence_transformers.cross_encoder import losses as cross
from sentence_transformers.sentence_transformer import losses
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from munjang.objectives import Objective, make, wrap
from tests.objectives.cases import FACTS

SIZE, WIDTH = 12, FACTS["width"]
Distance = losses.BatchHardTripletLossDistanceFunction
Metric, Siamese = losses.TripletDistanceMetric, losses.SiameseDistanceMetric


class Given(nn.Module):
    """A "model" whose input is its output."""

    max_seq_length, device = 8, torch.device("cpu")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, unk_token="a")))

    def __init__(self, key: str = "sentence_embedding") -> None:
        super().__init__()
        self.key = key

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features[self.key]}

    def get_embedding_dimension(self) -> int:
        return WIDTH


class GivenScores(CrossEncoder):
    """A "cross-encoder" whose queries are rows and whose documents are columns of a table."""

    device, num_labels = torch.device("cpu"), 1

    def __init__(self, table: Tensor) -> None:
        nn.Module.__init__(self)
        self.table = table

    def preprocess(self, pairs: Sequence[tuple[str, str]], **_: Any) -> dict[str, Tensor]:
        scores = [self.table[int(query), int(document)] for query, document in pairs]
        return {"scores": torch.stack(scores).reshape(len(pairs), -1)}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return features


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def named(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) else ""


def vectors(columns: int) -> list[Tensor]:
    return list(normal(columns, SIZE, WIDTH))


def features(columns: Sequence[Tensor]) -> list[dict[str, Tensor]]:
    return [{"sentence_embedding": column} for column in columns]


DIRECTIONS = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
TEXTS = torch.arange(SIZE * 4).view(SIZE, 4)  # all different: theirs keeps equal texts as negatives
LABELS = {"labels": torch.arange(SIZE) % 3}
BINARY = {"labels": torch.arange(SIZE) % 2}
SCORES = {"scores": torch.arange(SIZE) % 5 / 4}
PAIRS: list[tuple[str, dict[str, Any], int, dict[str, Tensor], Callable[[nn.Module], nn.Module]]] = [
    ("regression", {}, 2, SCORES, losses.CosineSimilarityLoss),
    ("triplet", {"margin": 5.0}, 3, {}, losses.TripletLoss),
    ("triplet", {"distance": "cosine"}, 3, {}, lambda m: losses.TripletLoss(m, Metric.COSINE, 1)),
    ("triplet", {"distance": "manhattan"}, 3, {}, lambda m: losses.TripletLoss(m, Metric.MANHATTAN, 1)),
    ("batch_all_triplet", {}, 1, LABELS, losses.BatchAllTripletLoss),
    ("batch_all_triplet", {"margin": 0.5}, 1, LABELS, lambda m: losses.BatchAllTripletLoss(m, margin=0.5)),
    ("batch_hard_triplet", {}, 1, LABELS, losses.BatchHardTripletLoss),
    (
        *("batch_hard_triplet", {"distance": "cosine", "margin": 0.2}, 1, LABELS),
        lambda m: losses.BatchHardTripletLoss(m, Distance.cosine_distance, 0.2),
    ),
    ("batch_semi_hard_triplet", {}, 1, LABELS, losses.BatchSemiHardTripletLoss),
    ("batch_semi_hard_triplet", {"margin": 0.5}, 1, LABELS, lambda m: losses.BatchSemiHardTripletLoss(m, margin=0.5)),
    ("in_batch", {}, 2, {"texts": TEXTS}, losses.MultipleNegativesRankingLoss),
    ("in_batch", {"temperature": 0.1}, 4, {"texts": TEXTS}, lambda m: losses.MultipleNegativesRankingLoss(m, 10)),
    (
        *("in_batch", {"is_symmetric": True}, 2, {"texts": TEXTS}),
        lambda m: losses.MultipleNegativesRankingLoss(
            m, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
        ),
    ),
    (
        *("in_batch", {"contrasts": "anchors,reverse,candidates"}, 3, {"texts": TEXTS}),
        lambda m: losses.MultipleNegativesRankingLoss(m, directions=DIRECTIONS),
    ),
    *(
        (
            *("in_batch", {"hardness": 9.0, "hardness_of": ours}, 4, {"texts": TEXTS}),
            lambda m, mode=mode: losses.MultipleNegativesRankingLoss(m, hardness_mode=mode, hardness_strength=9.0),
        )
        for ours, mode in (("others", "in_batch_negatives"), ("own", "hard_negatives"), ("all", "all_negatives"))
    ),
    (
        *("in_batch", {"similarity": "dot", "temperature": 1.0, "keeps_duplicates": True}, 3, {"texts": TEXTS // 5}),
        lambda m: losses.MultipleNegativesRankingLoss(m, 1, util.dot_score),
    ),
    ("contrastive", {}, 2, BINARY, losses.ContrastiveLoss),
    (
        *("contrastive", {"distance": "manhattan", "margin": 4.0}, 2, BINARY),
        lambda m: losses.ContrastiveLoss(m, Siamese.MANHATTAN, 4),
    ),
    ("online_contrastive", {}, 2, BINARY, losses.OnlineContrastiveLoss),
    ("online_contrastive", {}, 2, {"labels": torch.ones(SIZE).long()}, losses.OnlineContrastiveLoss),
    ("online_contrastive", {}, 2, {"labels": torch.zeros(SIZE).long()}, losses.OnlineContrastiveLoss),
    ("cosent", {}, 2, SCORES, losses.CoSENTLoss),
    ("angle", {}, 2, SCORES, losses.AnglELoss),
    ("margin_mse", {}, 3, {"scores": normal(SIZE)}, losses.MarginMSELoss),
    ("margin_mse", {}, 4, {"scores": normal(SIZE, 3)}, losses.MarginMSELoss),
    ("margin_mse", {}, 4, {"scores": normal(SIZE, 2)}, losses.MarginMSELoss),
    ("kl", {}, 4, {"scores": normal(SIZE, 3)}, losses.DistillKLDivLoss),
    ("kl", {"temperature": 2.0}, 4, {"scores": normal(SIZE, 3)}, lambda m: losses.DistillKLDivLoss(m, temperature=2.0)),
]


@pytest.mark.parametrize(("name", "options", "columns", "extras", "theirs"), PAIRS, ids=named)
def test_same_loss(
    name: str, options: Any, columns: int, extras: Any, theirs: Callable[[nn.Module], nn.Module]
) -> None:
    outputs = vectors(columns)
    ours = make(name, FACTS, **options)(
        outputs, {key: each[:, :columns] if key == "texts" else each for key, each in extras.items()}
    )
    labels = extras.get("labels", extras.get("scores", torch.zeros(SIZE)))
    same(ours, theirs(Given())(features(outputs), labels))


def test_classification() -> None:
    ours = make("classification", FACTS)
    theirs = losses.SoftmaxLoss(Given(), WIDTH, 3)
    theirs.classifier.load_state_dict(ours.head.state_dict())
    outputs = vectors(2)
    same(ours(outputs, LABELS), theirs(features(outputs), LABELS["labels"]))


def test_embedding_mse() -> None:
    outputs, teacher = vectors(2), normal(SIZE, 2, WIDTH)
    facts = {"width": WIDTH, "teacher_width": WIDTH}
    theirs = losses.MSELoss(Given())
    same(make("embedding_mse", facts)(outputs, {"teacher": teacher}), theirs(features(outputs), teacher[:, 0]))
    own = make("embedding_mse", facts, target="own")
    same(own(outputs, {"teacher": teacher}), theirs(features(outputs), teacher))
    mapped, theirs = make("embedding_mse", FACTS), losses.MSELoss(Given(), projection_dim=5)
    theirs.projection.load_state_dict(mapped.projection.state_dict())
    teacher = normal(SIZE, 2, 5)
    same(mapped(outputs, {"teacher": teacher}), theirs(features(outputs), teacher[:, 0]))


GUIDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"guide_margin": 0.1}, {"margin": 0.1, "contrast_anchors": False, "contrast_positives": False}),
    ({"guide_margin": 0.0, "contrasts": "anchors,positives"}, {}),
    (
        {"guide_margin": 0.2, "is_margin_relative": True, "contrasts": "positives"},
        {"margin": 0.2, "margin_strategy": "relative", "contrast_anchors": False},
    ),
]


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize(("options", "rest"), GUIDED, ids=named)
def test_guided_in_batch(options: dict[str, Any], rest: dict[str, Any], columns: int) -> None:
    outputs, guide = vectors(columns), normal(SIZE, columns, 3)
    theirs = losses.GISTEmbedLoss(Given(), Given("guide"), 0.05, **rest)
    given = [{"sentence_embedding": column, "guide": guide[:, i]} for i, column in enumerate(outputs)]
    ours = make("in_batch", {}, **options)
    same(ours(outputs, {"texts": TEXTS[:, :columns], "guide": guide}), theirs(given, torch.zeros(SIZE)))


def test_matryoshka() -> None:
    outputs, extras = vectors(2), {"texts": TEXTS[:, :2]}
    ours = wrap("matryoshka", make("in_batch", {}), FACTS, dims=[2, 6, 3], weights=[1.0, 2.0, 0.5])
    theirs = Given()
    inner = losses.MultipleNegativesRankingLoss(theirs)
    outer = losses.MatryoshkaLoss(theirs, inner, matryoshka_dims=[2, 6, 3], matryoshka_weights=[1.0, 2.0, 0.5])
    same(ours(outputs, extras), outer(features(outputs), torch.zeros(SIZE)))


def test_adaptive_layers(tiny_bert: Path) -> None:
    """Theirs adds up the divergences of all layers that it takes; ours is their mean."""
    model = SentenceTransformer(str(tiny_bert), device="cpu").eval()
    columns = [model.preprocess(["a fox", "one more fox jumps"]), model.preprocess(["a dog", "no dog at all"])]
    model[0].auto_model.config.output_hidden_states = True
    outputs, after = [], nn.Sequential(*list(model)[1:])
    for column in columns:
        states = model[0](dict(column))
        pooled = [after({**states, "token_embeddings": layer}) for layer in states["all_layer_embeddings"]]
        outputs.append(torch.stack([layer["sentence_embedding"] for layer in pooled], dim=1))
    earlier = outputs[0].shape[1] - 1
    ours = wrap("adaptive_layers", make("in_batch", {}), {}, divergence_weight=float(earlier))
    theirs = losses.AdaptiveLayerLoss(model, losses.MultipleNegativesRankingLoss(model), n_layers_per_step=-1)
    assert earlier > 1
    same(ours(outputs, {"texts": TEXTS[:2, :2]}), theirs(columns, torch.zeros(2)))


def ask(columns: int) -> list[list[str]]:
    """Queries, and the same number of documents a column."""
    return [[str(row) for row in range(SIZE)], *([str(column)] * SIZE for column in range(columns))]


def by_columns(table: Tensor) -> list[Tensor]:
    return list(table[:, :, None].unbind(1))


CROSS: list[tuple[str, dict[str, Any], int, dict[str, Tensor], Callable[[CrossEncoder], nn.Module]]] = [
    ("cross_bce", {}, 1, SCORES, cross.BinaryCrossEntropyLoss),
    (
        *("cross_bce", {"target": "labels", "positive_weight": 2.0}, 1, BINARY),
        lambda m: cross.BinaryCrossEntropyLoss(m, pos_weight=torch.tensor(2.0)),
    ),
    ("cross_mse", {}, 1, SCORES, cross.MSELoss),
    ("cross_mse", {"activation": "sigmoid"}, 1, SCORES, lambda m: cross.MSELoss(m, nn.Sigmoid())),
    ("cross_margin_mse", {}, 2, {"scores": normal(SIZE)}, cross.MarginMSELoss),
    ("cross_margin_mse", {}, 3, {"scores": normal(SIZE, 3)}, cross.MarginMSELoss),
]


@pytest.mark.parametrize(("name", "options", "columns", "extras", "theirs"), CROSS, ids=named)
def test_same_cross_loss(
    name: str, options: Any, columns: int, extras: Any, theirs: Callable[[CrossEncoder], nn.Module]
) -> None:
    table = normal(SIZE, columns)
    labels = extras.get("labels", extras.get("scores"))
    ours = make(name, FACTS, **options)(by_columns(table), extras)
    same(ours, theirs(GivenScores(table))(ask(columns), labels))


def test_cross_entropy() -> None:
    table = normal(SIZE, 1, 3)
    ours: Objective = make("cross_entropy", {})
    same(ours([table[:, 0]], LABELS), cross.CrossEntropyLoss(GivenScores(table))(ask(1), LABELS["labels"]))


def test_cross_in_batch() -> None:
    """With all other documents as negatives nothing is drawn: each query sees its row of the table."""
    table = normal(SIZE, SIZE)
    theirs = cross.MultipleNegativesRankingLoss(GivenScores(table), num_negatives=None)
    queries = [str(row) for row in range(SIZE)]
    rows = [[table[row, row], *(table[row, other] for other in range(SIZE) if other != row)] for row in range(SIZE)]
    candidates = by_columns(torch.stack([torch.stack(row) for row in rows]))
    same(make("cross_in_batch", {}, num_sampled=SIZE - 1)(candidates, {}), theirs([queries, queries], None))


LISTS: list[tuple[str, dict[str, Any], Callable[[CrossEncoder], nn.Module]]] = [
    ("listnet", {}, cross.ListNetLoss),
    ("lambda_loss", {}, cross.LambdaLoss),
    ("lambda_loss", {"weighting": "ndcg1"}, lambda m: cross.LambdaLoss(m, cross.NDCGLoss1Scheme())),
    ("lambda_loss", {"weighting": "ndcg2", "k": 2}, lambda m: cross.LambdaLoss(m, cross.NDCGLoss2Scheme(), k=2)),
    ("lambda_loss", {"weighting": "lambda_rank"}, lambda m: cross.LambdaLoss(m, cross.LambdaRankScheme())),
    ("ranknet", {}, cross.RankNetLoss),
    ("ranknet", {"sigma": 0.5, "k": 3}, lambda m: cross.RankNetLoss(m, sigma=0.5, k=3)),
]


@pytest.mark.parametrize(("name", "options", "theirs"), LISTS, ids=named)
def test_same_list_loss(name: str, options: Any, theirs: Callable[[CrossEncoder], nn.Module]) -> None:
    """Lists of 2 to 5 documents; theirs are ragged, ours NaN at the end."""
    table, scores = normal(SIZE, 5), (torch.arange(SIZE * 5).view(SIZE, 5) * 7 % 4).float()
    lengths = [2 + row % 4 for row in range(SIZE)]
    documents = [[str(column) for column in range(length)] for length in lengths]
    labels = [scores[row, :length] for row, length in enumerate(lengths)]
    is_missing = torch.arange(5) >= torch.tensor(lengths)[:, None]
    ours = make(name, {}, **options)(by_columns(table), {"scores": scores.masked_fill(is_missing, float("nan"))})
    same(ours, theirs(GivenScores(table))([[str(row) for row in range(SIZE)], documents], labels))
