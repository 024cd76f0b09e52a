"""Making objectives by name: what the model and the data answer, what the user sets, what is refused."""

import re

import pytest

from munjang.errors import InputError
from munjang.objectives import OBJECTIVES, WRAPPERS, make, options_of, wrap
from tests.objectives.cases import FACTS


def refused(message: str) -> object:
    return pytest.raises(InputError, match=re.escape(message))


def test_facts_and_options() -> None:
    head = make("classification", {**FACTS, "num_layers": 6}, concatenation="u,v").head
    assert (head.in_features, head.out_features) == (2 * FACTS["width"], FACTS["num_labels"])
    assert make("triplet", {}, margin=2.0).margin == 2.0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_classes_declare_what_their_default_needs(name: str) -> None:
    """Readers look at the class, before there is an objective."""
    kind, made = OBJECTIVES[name], make(name, FACTS)
    assert (kind.needs, kind.num_texts, kind.extras) == (made.needs, made.num_texts, made.extras)


@pytest.mark.parametrize("name", [*OBJECTIVES, *WRAPPERS])
def test_every_option_has_a_name_of_its_own(name: str) -> None:
    assert {"self", "args", "kwargs", "objective"} & set(options_of({**OBJECTIVES, **WRAPPERS}[name])) == set()


def test_unknown_names() -> None:
    with refused(f"Unknown objective 'clasification'; choose from {min(OBJECTIVES)},"):
        make("clasification", FACTS)
    with refused("Did you mean 'triplet'?"):
        make("tripled", FACTS)
    with refused("Unknown option of triplet 'margins'; choose from distance, margin. Did you mean 'margin'?"):
        make("triplet", FACTS, margins=1)
    with refused("Unknown option of classification 'width'; choose from concatenation."):
        make("classification", FACTS, width=3)
    with refused("regression has no options; 'scale' was given."):
        make("regression", FACTS, scale=3)
    with refused("Unknown wrapper 'matrix'; choose from adaptive_layers, flops, matryoshka."):
        wrap("matrix", make("in_batch", {}), FACTS)


def test_missing_facts() -> None:
    with refused("classification needs labels."):
        make("classification", {"width": 6, "num_labels": None})
    with refused("embedding_mse needs a teacher."):
        make("embedding_mse", {"width": 6})
    with refused("matryoshka needs the option dims."):
        wrap("matryoshka", make("in_batch", {}), FACTS)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("classification", {"concatenation": "u,w"}, "Unknown part of the concatenation 'w'; choose from u, u*v,"),
        ("triplet", {"distance": "cosin"}, "Unknown distance 'cosin'; choose from cosine, euclidean, manhattan."),
        ("in_batch", {"temperature": 0.0}, "temperature is 0.0; it has to be a number over 0."),
        ("embedding_mse", {"target": "second"}, "Unknown target 'second'; choose from first, own."),
        ("kl", {"similarity": "angle"}, "Unknown similarity 'angle'; choose from cosine, dot."),
        ("kl", {"teacher_temperature": 0.0}, "teacher_temperature is 0.0; it has to be a number over 0."),
        ("lambda_loss", {"weighting": "ndcg3"}, "Unknown weighting 'ndcg3'; choose from lambda_rank, ndcg1,"),
        ("cross_mse", {"activation": "tanh"}, "Unknown activation 'tanh'; choose from identity, sigmoid."),
    ],
)
def test_wrong_values(name: str, options: dict[str, object], message: str) -> None:
    with refused(message):
        make(name, FACTS, **options)


def test_what_can_be_wrapped() -> None:
    with refused("AdaptiveLayers is for objectives over embeddings; CrossMSE is over logits."):
        wrap("adaptive_layers", make("cross_mse", {}), FACTS)
    with refused("Matryoshka is for objectives over embeddings or layers; Masked is over token_states."):
        wrap("matryoshka", make("masked", FACTS), FACTS, dims=[3])
    with refused("Denoising is a mean over tokens and the divergence one over texts; set divergence_weight=0"):
        wrap("adaptive_layers", make("denoising", FACTS), FACTS)
    with refused("dims are [3, 9]; give different ones from 1 to the model's width, 6."):
        wrap("matryoshka", make("in_batch", {}), FACTS, dims=[3, 9])
    with refused("1 weights for 2 dims; each needs one."):
        wrap("matryoshka", make("in_batch", {}), FACTS, dims=[6, 3], weights=[1.0])


def test_wrappers_ask_for_what_is_inside() -> None:
    inner = make("in_batch", {}, guide_margin=0.1)
    both = wrap("matryoshka", wrap("adaptive_layers", inner, FACTS), FACTS, dims=[6, 3])
    assert (both.needs, both.num_texts, both.extras) == ("layers", (2, None), ("texts", "guide"))
    assert wrap("matryoshka", make("simcse", {}), FACTS, dims=[6]).passes == 2
    assert wrap("adaptive_layers", make("denoising", FACTS), FACTS, divergence_weight=0).corruption == "delete"
    regression = wrap("adaptive_layers", wrap("matryoshka", make("regression", {}), FACTS, dims=[6, 3]), FACTS)
    assert regression.is_separable
    assert make("in_batch", {}).extras == ("texts",)  # the class is as it was
