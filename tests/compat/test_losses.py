"""Losses under their names: the same numbers as theirs, over 50 steps from the same weights and batches."""

import dataclasses
import inspect

import pytest
import sentence_transformers
import torch
from sentence_transformers import losses as their_losses
from sentence_transformers.cross_encoder import losses as their_cross_losses
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers.utils import logging

from munjang import compat
from munjang.compat import cross_losses, losses
from munjang.errors import InputError

logging.disable_progress_bar()
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "cat", "in", "rain"]
SIZE = 6
LENGTHS = [3, pytest.param(50, marks=pytest.mark.slow)]  # steps of training
# the columns of each loss, what its labels are, and further arguments
PAIR, TRIPLE, FOUR = 2, 3, 4
KINDS = {
    "AnglELoss": (PAIR, "scores", {}),
    "BatchAllTripletLoss": (1, "classes", {}),
    "BatchHardSoftMarginTripletLoss": (1, "classes", {}),
    "BatchHardTripletLoss": (1, "classes", {}),
    "BatchSemiHardTripletLoss": (1, "classes", {}),
    "CachedGISTEmbedLoss": (TRIPLE, None, {"mini_batch_size": 2}),
    "CachedMultipleNegativesRankingLoss": (TRIPLE, None, {"mini_batch_size": 2}),
    "CachedMultipleNegativesSymmetricRankingLoss": (PAIR, None, {"mini_batch_size": 4}),
    "ContrastiveLoss": (PAIR, "binary", {}),
    "CoSENTLoss": (PAIR, "scores", {}),
    "ContrastiveTensionLoss": (PAIR, "binary", {}),
    "ContrastiveTensionLossInBatchNegatives": (1, None, {}),
    "CosineSimilarityLoss": (PAIR, "scores", {}),
    "DistillKLDivLoss": (TRIPLE, "two", {"temperature": 2.0}),
    "EmbedDistillLoss": (PAIR, "vectors", {}),
    "GISTEmbedLoss": (TRIPLE, None, {"margin": 0.1}),
    "GlobalOrthogonalRegularizationLoss": (TRIPLE, None, {"mean_weight": 0.5}),
    "MSELoss": (PAIR, "vectors", {}),
    "MarginMSELoss": (TRIPLE, "two", {}),
    "MegaBatchMarginLoss": (PAIR, None, {"mini_batch_size": 2}),
    "MultipleNegativesRankingLoss": (TRIPLE, None, {}),
    "MultipleNegativesSymmetricRankingLoss": (PAIR, None, {}),
    "OnlineContrastiveLoss": (PAIR, "binary", {}),
    "SoftmaxLoss": (PAIR, "classes", {"embedding_dimension": 32, "num_labels": 3}),
    "TripletLoss": (TRIPLE, None, {}),
}
CROSS = {
    "BinaryCrossEntropyLoss": (PAIR, "scores"),
    "MSELoss": (PAIR, "scores"),
    "MarginMSELoss": (TRIPLE, "two"),
    "MultipleNegativesRankingLoss": (PAIR, None),
    "CachedMultipleNegativesRankingLoss": (PAIR, None),
    "ListNetLoss": ("list", None),
    "LambdaLoss": ("list", None),
    "RankNetLoss": ("list", None),
    "PListMLELoss": ("list", None),
    "ListMLELoss": ("list", None),
    "ADRMSELoss": ("list", None),
}


def batch(step, columns, kind):
    """Return the texts of a batch by column, and its labels."""
    random = torch.Generator().manual_seed(step)
    texts = [
        [
            " ".join(WORDS[word] for word in torch.randint(0, 13, (4 + row % 3,), generator=random))
            for row in range(SIZE)
        ]
        for _ in range(columns)
    ]
    labels = {
        None: lambda: None,
        "scores": lambda: torch.rand(SIZE, generator=random),
        "binary": lambda: torch.tensor([0, 1, 1, 0, 1, 0]),
        "classes": lambda: torch.tensor([0, 1, 2, 0, 1, 2])[torch.randperm(SIZE, generator=random)],
        "two": lambda: torch.rand(SIZE, 2, generator=random),
        "vectors": lambda: torch.randn(SIZE, 32, generator=random),
    }[kind]()
    return texts, labels


def still(model):
    """Train without dropout, which is drawn in another order."""
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if dataclasses.is_dataclass(shape := getattr(module, "shape", None)):
            rates = [field.name for field in dataclasses.fields(shape) if "dropout" in field.name]
            module.shape = dataclasses.replace(shape, **dict.fromkeys(rates, 0.0))
        for name in ("dropout", "dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def curve(model, loss, batches, num_steps):
    """Return the losses of some steps of plain gradient descent."""
    found = []
    optimizer = torch.optim.SGD(loss.parameters(), lr=1e-3)
    for step in range(num_steps):
        optimizer.zero_grad()
        torch.manual_seed(step)  # of negatives that are drawn
        value = batches(model, loss, step)
        value = sum(value.values()) if isinstance(value, dict) else value
        value.backward()
        torch.nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
        optimizer.step()
        found.append(float(value))
    return torch.tensor(found)


@pytest.mark.parametrize("num_steps", LENGTHS)
@pytest.mark.parametrize("name", KINDS)
def test_losses_are_theirs(make, name, num_steps):
    columns, kind, options = KINDS[name]
    folder = str(make("bert", normalize=False))
    curves = []
    for package, module in ((compat, losses.ALL), (sentence_transformers, vars(their_losses))):
        torch.manual_seed(3)
        model = still(package.SentenceTransformer(folder, device="cpu"))
        more = {"guide": package.SentenceTransformer(folder, device="cpu")} if "GIST" in name else {}
        loss = module[name](model, **more, **options)
        for own in [each for each in loss.modules() if isinstance(each, torch.nn.Linear) and each.out_features == 3]:
            torch.nn.init.constant_(own.weight, 0.01)
            torch.nn.init.zeros_(own.bias)

        def batches(model, loss, step):
            texts, labels = batch(step, columns, kind)
            return loss([model.preprocess(column) for column in texts], labels)

        curves.append(curve(model, loss, batches, num_steps))
    torch.testing.assert_close(curves[0], curves[1], atol=1e-5, rtol=1e-5)
    assert curves[0].std() > 0


INSIDE = ["CoSENTLoss", "MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "MSELoss"]


@pytest.mark.parametrize("num_steps", LENGTHS)
@pytest.mark.parametrize("name", INSIDE)
def test_matryoshka_is_theirs(make, name, num_steps):
    columns, kind, options = KINDS[name]
    folder = str(make("bert", normalize=False))
    curves = []
    for package, module in ((compat, losses.ALL), (sentence_transformers, vars(their_losses))):
        model = still(package.SentenceTransformer(folder, device="cpu"))
        inner = module[name](model, **options)
        loss = module["MatryoshkaLoss"](model, inner, [8, 32, 16], matryoshka_weights=[0.5, 1.0, 0.25])

        def batches(model, loss, step):
            texts, labels = batch(step, columns, kind)
            return loss([model.preprocess(column) for column in texts], labels)

        curves.append(curve(model, loss, batches, num_steps))
    torch.testing.assert_close(curves[0], curves[1], atol=1e-5, rtol=1e-5)
    assert curves[0].std() > 0


@pytest.mark.parametrize("num_steps", LENGTHS)
def test_cross_entropy_is_theirs(make, num_steps):
    folder = str(make("bert", kind="classifier", num_labels=3))
    curves = []
    for package, module in ((compat, cross_losses.ALL), (sentence_transformers, vars(their_cross_losses))):
        model = still(package.CrossEncoder(folder, device="cpu"))
        loss = module["CrossEntropyLoss"](model)
        curves.append(curve(model, loss, lambda model, loss, step: loss(*batch(step, PAIR, "classes")), num_steps))
    torch.testing.assert_close(curves[0], curves[1], atol=1e-5, rtol=1e-5)
    assert curves[0].std() > 0


@pytest.mark.parametrize("num_steps", LENGTHS)
@pytest.mark.parametrize("name", CROSS)
def test_losses_of_cross_encoders_are_theirs(make, name, num_steps):
    columns, kind = CROSS[name]
    folder = str(make("bert", kind="classifier", num_labels=1))
    curves = []
    for package, module in ((compat, cross_losses.ALL), (sentence_transformers, vars(their_cross_losses))):
        model = still(package.CrossEncoder(folder, device="cpu"))
        loss = module[name](model)

        def batches(model, loss, step):
            if columns != "list":
                texts, labels = batch(step, columns, kind)
                return loss(texts, labels)
            texts, labels = batch(step, 4, "scores")
            lists = [[texts[at][row] for at in range(1, 4 - row % 2)] for row in range(SIZE)]
            return loss(
                [texts[0], lists], [labels[row] * torch.arange(1.0, len(each) + 1) for row, each in enumerate(lists)]
            )

        curves.append(curve(model, loss, batches, num_steps))
    torch.testing.assert_close(curves[0], curves[1], atol=1e-5, rtol=1e-5)
    assert curves[0].std() > 0


@pytest.mark.parametrize("name", CROSS)
def test_making_a_loss_leaves_dropout_on(make, name):
    model = compat.CrossEncoder(str(make("bert", kind="classifier", num_labels=1)), device="cpu").train()
    cross_losses.ALL[name](model)
    assert model.num_labels == 1
    assert isinstance(model.activation_fn, torch.nn.Module)
    assert [module for module in model.modules() if not module.training] == []
    model.predict([("a", "b")])
    assert not model.training


def test_every_loss_of_the_tables_is_compared():
    wrappers = {"MatryoshkaLoss", "AdaptiveLayerLoss", "Matryoshka2dLoss"}
    assert {*KINDS, *wrappers} == {name for name, kind in losses.ALL.items() if issubclass(kind, torch.nn.Module)}
    assert {*CROSS, "CrossEntropyLoss"} == {name for name in cross_losses.ALL if name.endswith("Loss")}


@pytest.fixture
def process_group():
    """Join a group of two processes, of which the other is torch's own stand-in: it answers nothing."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()


GATHERING = [name for name, kind in losses.ALL.items() if "gather_across_devices" in inspect.signature(kind).parameters]


@pytest.mark.parametrize("name", GATHERING)
def test_gathering_is_refused_where_it_would_be_ignored(make, process_group, name):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    more = {"guide": model} if "GIST" in name else {}
    texts, _ = batch(0, PAIR, None)
    columns = [model.preprocess(column) for column in texts]
    assert float(losses.ALL[name](model, **more)(columns)) > 0
    gathering = losses.ALL[name](model, **more, gather_across_devices=True)
    for loss in (gathering, losses.MatryoshkaLoss(model, gathering, [16])):
        with pytest.raises(InputError, match=rf"{name}\(gather_across_devices=True\) .* in a run of 2 processes"):
            loss(columns)


def test_gathering_in_one_process_changes_nothing(make):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    texts, _ = batch(0, PAIR, None)
    columns = [model.preprocess(column) for column in texts]
    found = [float(losses.MultipleNegativesRankingLoss(model, gather_across_devices=on)(columns)) for on in (0, 1)]
    assert len(GATHERING) == 6
    assert found[0] == found[1]
