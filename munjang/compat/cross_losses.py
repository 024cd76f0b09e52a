"""Losses of cross-encoders under their names, over our objectives: a line each in LOSSES, theirs to ours."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from munjang.compat.gaps import missing_name
from munjang.compat.losses.base import Build, Loss, made
from munjang.compat.losses.lists import ADRMSE, PListMLE, PListMLELambdaWeight
from munjang.compat.util import batch_to_device
from munjang.errors import InputError
from munjang.objectives.base import Objective
from munjang.objectives.cross_bce import CrossBCE
from munjang.objectives.cross_entropy import CrossEntropy
from munjang.objectives.cross_in_batch import CrossInBatch
from munjang.objectives.cross_margin_mse import CrossMarginMSE
from munjang.objectives.cross_mse import CrossMSE
from munjang.objectives.lambda_loss import LambdaLoss as OurLambdaLoss
from munjang.objectives.listnet import ListNet


class CrossLoss(Loss):
    """A loss over the logits of pairs, made of columns of texts."""

    needs_one_label = True
    activation_fn: Any

    def __init__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        if not hasattr(model, "predict"):
            raise ValueError(f"{type(self).__name__} expects a model of type CrossEncoder, but got {type(model)}.")
        if self.needs_one_label and model.num_labels != 1:
            raise ValueError(
                f"{type(self).__name__} expects a model with 1 output label, but got a model with "
                f"{model.num_labels} output labels."
            )
        super().__init__(model, *args, **kwargs)
        self.__dict__.pop("activation_fn", None)  # it would hide the module of this name
        self.activation_fn = self.settings.get("activation_fn") or nn.Identity()

    def forward(  # type: ignore[override]
        self, inputs: list[Any], labels: Any = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the loss of columns of texts."""
        self.check(inputs)
        first = inputs[0]
        outputs = [self.logits(list(zip(first, column, strict=True)), prompt) for column in inputs[1:]]
        loss: Tensor = self.objective(outputs, self.extras_of(outputs, labels))
        return loss

    def check(self, inputs: list[Any]) -> None:
        """Refuse a wrong number of columns."""
        if self.objective.num_texts == (2, 2) and len(inputs) != 2:
            raise ValueError(
                f"{type(self).__name__} expects a dataset with two non-label columns, but got a dataset with "
                f"{len(inputs)} columns."
            )

    def logits(self, pairs: list[Any], prompt: str | None = None) -> Tensor:
        """Return the model's outputs of pairs, [B, C], after the activation."""
        features = self.model.preprocess(pairs, prompt=prompt) if prompt else self.model.preprocess(pairs)
        found: Tensor = self.activation_fn(self.model(batch_to_device(features, self.model.device))["scores"])
        return found

    def extras_of(self, outputs: Sequence[Tensor], labels: Any) -> dict[str, Tensor]:
        """Return labels or scores for the objective."""
        device, size = outputs[0].device, len(outputs[0])
        if not self.objective.extras:
            return {}
        labels = torch.stack(list(labels)) if isinstance(labels, list) else labels
        flat = labels.reshape(-1) if labels.numel() == size else labels
        if self.objective.extras == ("labels",):
            return {"labels": flat.to(device)}
        if self.objective.num_texts == (2, 2):
            flat = self.checked(labels, size)
        return {"scores": flat.float().to(device)}


class RankingLoss(CrossLoss):
    """Each query finds its document among those of other queries, drawn at random."""

    num_negatives: int | None
    mini_batch_size: int | None = None

    def forward(  # type: ignore[override]
        self, inputs: list[Any], labels: Any = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        queries, candidates = inputs[0], inputs[1:]
        columns = [candidates[0], *self.drawn(len(queries), candidates), *candidates[1:]]
        pairs = [pair for column in columns for pair in zip(queries, column, strict=True)]
        size = self.mini_batch_size or len(pairs)
        parts = [self.logits(pairs[start : start + size], prompt) for start in range(0, len(pairs), size)]
        columns_BC = list(torch.split(torch.cat(parts), len(queries)))
        loss: Tensor = self.objective(columns_BC, {})
        return loss

    def drawn(self, size: int, candidates: list[Any]) -> list[list[str]]:
        """Return columns of documents of other queries."""
        flat = [text for column in candidates for text in column]
        is_other = ~torch.eye(size, dtype=torch.bool).repeat(1, len(candidates))
        available = len(flat) - len(candidates)
        if self.num_negatives is not None and self.num_negatives < available:
            places = torch.multinomial(is_other.float(), self.num_negatives)
        else:
            places = torch.arange(len(flat)).repeat(size, 1)[is_other].reshape(size, -1)
        return [[flat[place] for place in column.tolist()] for column in places.T]

    get_in_batch_negatives = drawn


class ListLoss(CrossLoss):
    """A loss over a list of documents for each query, and a list of labels."""

    mini_batch_size: int | None

    def forward(  # type: ignore[override]
        self, inputs: list[Any], labels: Any = None, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        name = type(self).__name__
        if isinstance(labels, Tensor):
            raise ValueError(
                f"{name} expects `labels` to be a list of per-query Tensors (list[Tensor]), but got a single Tensor."
            )
        if len(inputs) != 2:
            raise ValueError(f"{name} expects two inputs (queries, documents_list), but got {len(inputs)} inputs.")
        queries, lists = inputs
        counts = [len(documents) for documents in lists]
        if counts != [len(each) for each in labels]:
            raise ValueError(
                f"Number of documents per query in inputs ({counts}) does not match number of labels per query "
                f"({[len(each) for each in labels]})."
            )
        pairs = [(query, text) for query, texts in zip(queries, lists, strict=True) for text in texts]
        size = self.mini_batch_size or len(queries)
        size = len(pairs) if size <= 0 else size
        flat = torch.cat([self.logits(pairs[start : start + size], prompt) for start in range(0, len(pairs), size)])
        is_there = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
        logits = flat.new_zeros(is_there.shape).masked_scatter(is_there.to(flat.device), flat.view(-1))
        scores = torch.full(is_there.shape, float("nan"))
        scores[is_there] = torch.cat([each.cpu().float() for each in labels])
        outputs = list(logits[:, :, None].unbind(1))
        loss: Tensor = self.objective(outputs, {"scores": scores.to(flat.device)})
        return loss


class BaseWeightingScheme(nn.Module):
    """A way of weighing pairs of a list; `weighting` is our name of it."""

    weighting = ""


class NoWeightingScheme(BaseWeightingScheme):
    """All pairs alike."""

    weighting = "none"


class NDCGLoss1Scheme(BaseWeightingScheme):
    """By the gain of the first."""

    weighting = "ndcg1"


class NDCGLoss2Scheme(BaseWeightingScheme):
    """By gains and the distance of ranks."""

    weighting = "ndcg2"


class LambdaRankScheme(BaseWeightingScheme):
    """By the change of NDCG."""

    weighting = "lambda_rank"


class NDCGLoss2PPScheme(BaseWeightingScheme):
    """NDCGLoss2 and LambdaRank together."""

    weighting = "ndcg2++"

    def __init__(self, mu: float = 10.0) -> None:
        super().__init__()
        if mu != 10.0:
            raise InputError(f"NDCGLoss2PPScheme(mu={mu}) is not covered by munjang.compat; mu is 10.")


def binary(model: Any, activation_fn: Any = None, pos_weight: Tensor | None = None) -> Objective:
    """Binary cross-entropy of one logit: cross_bce."""
    return CrossBCE("scores", 1.0 if pos_weight is None else float(pos_weight))


def entropy(model: Any, activation_fn: Any = None) -> Objective:
    """Cross-entropy of a logit per class: cross_entropy."""
    return CrossEntropy()


def mse(model: Any, activation_fn: Any = None) -> Objective:
    """Mean squared error against scores: cross_mse."""
    return CrossMSE()


def margin_mse(model: Any, activation_fn: Any = None) -> Objective:
    """A teacher's margins: cross_margin_mse."""
    return CrossMarginMSE()


def ranking(
    model: Any,
    num_negatives: int | None = 4,
    scale: float = 10.0,
    activation_fn: Any = nn.Sigmoid(),  # noqa: B008
) -> Objective:
    """Each query finds its document: cross_in_batch."""
    return CrossInBatch(0 if num_negatives is None else num_negatives, scale or 1.0, "identity")


def cached_ranking(
    model: Any,
    num_negatives: int | None = 4,
    scale: float = 10.0,
    activation_fn: Any = nn.Sigmoid(),  # noqa: B008
    mini_batch_size: int = 32,
    show_progress_bar: bool = False,
) -> Objective:
    """MultipleNegativesRankingLoss in mini-batches."""
    return ranking(model, num_negatives, scale)


def list_net(model: Any, activation_fn: Any = None, mini_batch_size: int | None = None) -> Objective:
    """The softmax over a list: listnet."""
    return ListNet()


def lambda_loss(
    model: Any,
    weighting_scheme: BaseWeightingScheme | None = None,
    k: int | None = None,
    sigma: float = 1.0,
    eps: float = 1e-10,
    reduction_log: str = "binary",
    activation_fn: Any = None,
    mini_batch_size: int | None = None,
) -> Objective:
    """Pairs of a list, weighed: lambda_loss."""
    objective = OurLambdaLoss((weighting_scheme or NDCGLoss2PPScheme()).weighting, k, sigma)
    return objective if reduction_log == "binary" else Scaled(objective, float(torch.log(torch.tensor(2.0))))


def rank_net(
    model: Any,
    k: int | None = None,
    sigma: float = 1.0,
    eps: float = 1e-10,
    reduction_log: str = "binary",
    activation_fn: Any = None,
    mini_batch_size: int | None = None,
) -> Objective:
    """Pairs of a list, all alike: ranknet."""
    return lambda_loss(model, NoWeightingScheme(), k, sigma, eps, reduction_log)


def p_list_mle(
    model: Any,
    lambda_weight: PListMLELambdaWeight | None = None,
    activation_fn: Any = None,
    mini_batch_size: int | None = None,
    respect_input_order: bool = True,
) -> Objective:
    """The likelihood of a list's order, with weights of its places."""
    return PListMLE(lambda_weight or PListMLELambdaWeight(), respect_input_order)


def list_mle(
    model: Any, activation_fn: Any = None, mini_batch_size: int | None = None, respect_input_order: bool = True
) -> Objective:
    """The likelihood of a list's order."""
    return PListMLE(None, respect_input_order)


def adr_mse(model: Any, alpha: float = 1.0, activation_fn: Any = None, mini_batch_size: int | None = None) -> Objective:
    """Squared errors of approximate ranks, discounted."""
    return ADRMSE(alpha)


class Scaled(Objective):
    """An objective times a number."""

    needs = "logits"
    num_texts = (3, None)
    extras = ("scores",)

    def __init__(self, objective: Objective, factor: float) -> None:
        super().__init__()
        self.objective, self.factor = objective, factor

    def forward(self, outputs: Sequence[Tensor], extras: Any) -> Tensor:
        loss: Tensor = self.objective(outputs, extras) * self.factor
        return loss


LOSSES: dict[str, tuple[Build, type[CrossLoss]]] = {
    "BinaryCrossEntropyLoss": (binary, CrossLoss),
    "CrossEntropyLoss": (entropy, CrossLoss),
    "MSELoss": (mse, CrossLoss),
    "MarginMSELoss": (margin_mse, CrossLoss),
    "MultipleNegativesRankingLoss": (ranking, RankingLoss),
    "CachedMultipleNegativesRankingLoss": (cached_ranking, RankingLoss),
    "ListNetLoss": (list_net, ListLoss),
    "LambdaLoss": (lambda_loss, ListLoss),
    "RankNetLoss": (rank_net, ListLoss),
    "PListMLELoss": (p_list_mle, ListLoss),
    "ListMLELoss": (list_mle, ListLoss),
    "ADRMSELoss": (adr_mse, ListLoss),
}
ALL: dict[str, type] = {
    name: made(name, build, base, needs_one_label=name != "CrossEntropyLoss") for name, (build, base) in LOSSES.items()
}
for _kind in (NoWeightingScheme, NDCGLoss1Scheme, NDCGLoss2Scheme, LambdaRankScheme, NDCGLoss2PPScheme):
    ALL[_kind.__name__] = _kind
ALL |= {"BaseWeightingScheme": BaseWeightingScheme, "PListMLELambdaWeight": PListMLELambdaWeight}
__all__ = ["ALL", "CrossLoss", *ALL]


def __getattr__(name: str) -> type:
    if name in ALL:
        return ALL[name]
    raise missing_name("munjang.compat.cross_encoder.losses", name)
