"""Prompts of training as settings of the trained model, so that it reads texts as it did when it learned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from munjang.bi_encoder import DOCUMENT_PROMPTS

QUERY, DOCUMENT = "query", DOCUMENT_PROMPTS[0]


@dataclass(frozen=True)
class Prompts:
    """What a model's `prompts` and `default_prompt_name` are to be."""

    prompts: Mapping[str, str]
    default_name: str | None = None


def learned(own: Prompts, columns: Sequence[Sequence[str]], is_cross: bool = False) -> tuple[Prompts, str | None]:
    """The prompts after training, and what there is to say about them.

    `own` are the model's before it, `columns` the prompts of the text columns of each dataset: the first one's is that
    of queries, the others' that of documents. One that stands before every text is the default, too.

    >>> learned(Prompts({}), [("query: ", "passage: ")])[0]
    Prompts(prompts={'query': 'query: ', 'document': 'passage: '}, default_name=None)
    """
    given = [tuple(each) for each in columns if any(each)]
    if not given:
        return own, _unused(own)
    roles = {(each[0], prompt) for each in given for prompt in each[1:] or each}
    if len(roles) > 1:
        return own, "columns or datasets have different prompts, so the model keeps its own; set its prompts yourself"
    query, document = roles.pop()
    is_everywhere = len(given) == len(columns)
    kept = {name: text for name, text in own.prompts.items() if name not in (QUERY, *DOCUMENT_PROMPTS)}
    if is_cross:  # which puts a prompt before the first text of a pair only
        told = "a cross-encoder keeps the prompt of the first column only; write the others into the data"
        both = {**kept, QUERY: query}
        default = own.default_name if own.default_name in both else None
        found = Prompts(both, QUERY if is_everywhere else default)
        return found, told if document and any(len(each) > 1 for each in given) else None
    prompts = {**kept, QUERY: query, DOCUMENT: document}
    if is_everywhere and query == document:
        return Prompts(prompts, QUERY), None
    return Prompts(prompts, own.default_name if own.default_name in prompts else None), None


def _unused(own: Prompts) -> str | None:
    used = ", ".join(f"{name} {text!r}" for name, text in own.prompts.items() if text)
    return f"the model has prompts ({used}) and is trained without; give prompts to train with them" if used else None
