"""The context of a passage: the title and headings above it, the text around it.

N passages, T tokens of a window, D dimensions.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from munjang.bi_encoder import DOCUMENT_PROMPTS, BiEncoder
from munjang.errors import InputError
from munjang.text.passages import Passage
from munjang.text.sentences import headings_above
from munjang.types import Floats, Value

CONTEXTS = ("none", "title", "headings")
FIELD = "context"  # of the metadata: what was put in front of a passage
SEPARATOR = " > "


def context_of(document: str, passage: Passage, metadata: Mapping[str, Value], context: str) -> str:
    """Return what goes in front of a passage: the document's title, and the headings of Markdown above it.

    >>> context_of("# Tea\\n\\n## Green\\n\\nSteep it.", Passage("Steep it.", 18, 27), {"title": "Drinks"}, "headings")
    'Drinks > Tea > Green'
    """
    title = metadata.get("title")
    parts = [title.strip()] if isinstance(title, str) and title.strip() and context != "none" else []
    if context == "headings":
        parts += [heading for heading in headings_above(document, passage.start) if heading not in parts]
    return SEPARATOR.join(parts)


def with_context(text: str, metadata: Mapping[str, Value]) -> str:
    """Return what is read of a passage: its context, then its text."""
    context = metadata.get(FIELD)
    return f"{context}\n{text}" if isinstance(context, str) and context else text


def check_late_chunking(model: BiEncoder) -> None:
    """Refuse a model whose vector is not the mean of its token vectors."""
    names = [name for name in model.network.module_names if name not in ("Pooling", "Normalize")]
    if tuple(model.network.modes) != ("mean",) or names or model.max_length is None:
        pooling = "+".join(model.network.modes)
        raise InputError(
            "late_chunking needs a model whose vectors are means of its token vectors, and with a longest text; this "
            f"one has pooling {pooling}" + (f" and {', '.join(names)} behind it." if names else ".")
        )


def late_chunked(model: BiEncoder, documents: Sequence[tuple[str, Sequence[Passage]]], progress: bool | None) -> Floats:
    """Return a vector for each passage, the mean of its tokens as they are read together with its neighbours.

    Neighbours are read in windows as long as the model's longest text; a passage that is longer is cut.
    """
    prompt = next((model.prompts[name] for name in DOCUMENT_PROMPTS if model.prompts.get(name)), "")
    windows = [window for text, passages in documents for window in _windows(model, prompt, text, passages)]
    texts = [text for text, _ in windows]
    tokens = model.encode(texts, prompt=prompt, output="tokens", progress=progress)
    vectors = [
        vector_D
        for (text, places), vectors_TD in zip(windows, tokens, strict=True)
        for vector_D in _means(model, prompt, text, places, vectors_TD)
    ]
    return np.stack(vectors) if vectors else np.zeros((0, model.dimension), np.float32)


Window = tuple[str, list[tuple[int, int]]]  # a text, and where its passages stand in it


def _windows(model: BiEncoder, prompt: str, text: str, passages: Sequence[Passage]) -> list[Window]:
    """Put neighbours together as far as they fit; each window begins with a passage."""
    room = (model.max_length or 0) - model.num_special - int(model.tokenizer.bodies([prompt])[1][0])
    first, groups = 0, list[list[Passage]]()
    for stop in range(1, len(passages) + 1):
        is_last = stop == len(passages)
        whole = text[passages[first].start : passages[stop if not is_last else stop - 1].end]
        if is_last or int(model.tokenizer.bodies([whole])[1][0]) > room:
            groups.append(list(passages[first:stop]))
            first = stop
    return [
        (text[own[0].start : own[-1].end], [(each.start - own[0].start, each.end - own[0].start) for each in own])
        for own in groups
    ]


def _means(
    model: BiEncoder, prompt: str, text: str, places: Sequence[tuple[int, int]], vectors_TD: Floats
) -> list[Floats]:
    """Average the tokens of each place; where there are none, all of the window."""
    found = model.tokenizer.rust.encode(prompt + text, add_special_tokens=False)
    begins = np.array([start for start, _ in found.offsets], np.int64) - len(prompt)
    before = len(model.tokenizer.single.parts[0][0])
    rows_TD = vectors_TD[before : before + len(begins)]
    begins = begins[: len(rows_TD)]
    means = []
    for start, end in places:
        own_TD = rows_TD[(begins >= start) & (begins < end)]
        mean_D = (own_TD if len(own_TD) else vectors_TD).mean(0)
        means.append(mean_D / max(float(np.linalg.norm(mean_D)), 1e-12) if model.network.is_unit else mean_D)
    return [mean_D[: model.dimension].astype(np.float32) for mean_D in means]
