"""Generate the parts of documents that come from code and records: `make docs` checks, `make docs FIX=1` writes them.

To add a part: a function `(root, document) -> Markdown` in a file here and a line in PARTS.
"""

from pathlib import Path

from docs.generate import (
    additions,
    attack,
    commands,
    errors,
    facts,
    folders,
    gpu,
    int8,
    kinds,
    limits,
    objectives,
    picture,
    published,
    scores,
    speed,
    stores,
)
from docs.generate.part import Block, Fact, Stale

READMES = ("README.md", "README.ko.md")
CARD = {"start": "## Scores\n\n", "end": "\n\n## How it was made"}
PARTS: tuple[Block | Fact, ...] = (
    Block("scores", ("munjang/models/ko-en-small/README.md",), scores.encoder_card, **CARD),
    Block("scores", ("munjang/models/ko-en-reranker/README.md",), scores.reranker_card, **CARD),
    Block("scores", ("docs/models.md",), scores.encoder_table),
    Block("components", ("docs/models.md",), scores.components_table),
    Block("levelled", ("docs/guides/export.md",), scores.levelled_table),
    Block("re-ranking", ("docs/models.md",), scores.reranker_card),
    Block("few", READMES, speed.few),
    Block("speed", ("docs/speed.md", "docs/speed.ko.md"), speed.table),
    Block("gpu", ("docs/speed.md", "docs/speed.ko.md"), gpu.table),
    Block("commands", ("docs/reference/commands.md", "docs/reference/commands.ko.md"), commands.listing),
    Block("map", ("docs/architecture.md", "CONTRIBUTING.md"), folders.listing),
    Block("layers", ("docs/images/folders.svg",), picture.layers),
    Block("additions", ("CONTRIBUTING.md",), additions.table),
    Block("objectives", ("docs/reference/objectives.md",), objectives.table),
    Block("published", ("docs/guides/train.md",), published.table),
    Block(
        "kinds",
        (
            "docs/guides/evaluate.md",
            "docs/reference/evaluation.md",
        ),
        kinds.table,
    ),
    Block("errors", ("docs/reference/errors.md",), errors.fenced),
    Block("limits", ("docs/security.md",), limits.table),
    Block("attack", ("docs/security.md",), attack.table),
    Block("int8", ("docs/guides/load.md",), int8.table),
    Block(
        "stores",
        (
            "docs/guides/search.md",
            "docs/reference/stores.md",
        ),
        stores.table,
    ),
    Block("tree", ("munjang/errors.py",), errors.tree, start="as one tree.\n\n", end='\n"""\n'),
    *facts.FACTS,  # last: sizes of models count their cards
)


def stale(root: Path) -> list[str]:
    """Return which parts of the documents under a root are out of date."""
    problems = []
    for part in PARTS:
        for document in part.documents:
            text = (root / document).read_text(encoding="utf-8")
            try:
                if part.fill(root, document, text) != text:
                    problems.append(f"{document}: {part.name} is out of date; run: make docs FIX=1")
            except Stale as error:
                problems.append(f"{document}: {error}")
    return problems


def write(root: Path) -> list[str]:
    """Write every part that is out of date; return the documents that changed."""
    changed = []
    for part in PARTS:
        for document in part.documents:
            path = root / document
            before = path.read_text(encoding="utf-8")
            try:
                after = part.fill(root, document, before)
            except Stale:  # `stale` says why
                continue
            if after != before:
                path.write_text(after, encoding="utf-8")
                changed.append(document)
    return list(dict.fromkeys(changed))
