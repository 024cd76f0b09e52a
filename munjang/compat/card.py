"""The model card: what a saved folder's README.md says, with the metadata that the Hub reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from munjang.errors import InputError

HEAD = """---
{metadata}
---

# {title}

{what}

## Use
```python
from munjang.compat import {kind}

model = {kind}("{model}")
{use}
```
{training}"""
USES = {
    "SentenceTransformer": 'vectors = model.encode(["A cat sleeps.", "The kitten is napping."])\n'
    "print(model.similarity(vectors, vectors))",
    "CrossEncoder": 'print(model.predict([("What is the capital of Korea?", "Seoul is the capital of Korea.")]))',
}


@dataclass
class ModelCardData:
    """The facts of a card that do not follow from the model."""

    language: str | list[str] | None = field(default_factory=list)
    license: str | None = None
    model_name: str | None = None
    model_id: str | None = None
    train_datasets: list[dict[str, str]] = field(default_factory=list)
    eval_datasets: list[dict[str, str]] = field(default_factory=list)
    task_name: str | None = None
    tags: list[str] | None = None
    local_files_only: bool = False
    generate_widget_examples: bool = True
    base_model: str | None = None
    kind: str = field(default="SentenceTransformer", init=False)
    pipeline_tag: str = field(default="sentence-similarity", init=False)
    library_name: str = field(default="sentence-transformers", init=False)
    settings: dict[str, Any] = field(default_factory=dict, init=False)  # of the training
    losses: list[str] = field(default_factory=list, init=False)
    scores: list[dict[str, Any]] = field(default_factory=list, init=False)
    version: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.language, str):
            self.language = [self.language]
        for datasets in (self.train_datasets, self.eval_datasets):
            if isinstance(datasets, dict):
                raise ValueError("Datasets of a card are a list of dictionaries: name, id.")
        if self.model_id and self.model_id.count("/") != 1:
            raise ValueError(f"model_id is owner/name, not {self.model_id!r}.")

    def set_base_model(self, model_id: str, revision: str | None = None) -> None:
        """Name the model that this one was trained from."""
        self.base_model = model_id

    def set_model_id(self, model_id: str) -> None:
        """Name the model on the Hub."""
        self.model_id = model_id

    def set_language(self, language: str | list[str]) -> None:
        """Name the languages."""
        self.language = [language] if isinstance(language, str) else language

    def set_license(self, license: str) -> None:
        """Name the license."""
        self.license = license

    def add_tags(self, tags: str | list[str]) -> None:
        """Add tags."""
        self.tags = [*(self.tags or []), *([tags] if isinstance(tags, str) else tags)]

    def set_losses(self, losses: Iterable[Any]) -> None:
        """Name the losses of the training."""
        self.losses = sorted({type(loss).__name__ for loss in losses})
        self.add_tags([f"loss:{name}" for name in self.losses if f"loss:{name}" not in (self.tags or [])])

    def set_evaluation_metrics(self, evaluator: Any, metrics: dict[str, Any], epoch: float = 0, step: int = 0) -> None:
        """Keep what an evaluator measured."""
        self.scores.append({"evaluator": type(evaluator).__name__, "metrics": dict(metrics), "step": step})

    def to_dict(self) -> dict[str, Any]:
        """Return the metadata that the Hub reads, without what is not set."""
        rows = {
            "language": self.language,
            "license": self.license,
            "base_model": self.base_model,
            "pipeline_tag": self.pipeline_tag,
            "library_name": self.library_name,
            "tags": self.tags,
            "datasets": [row["id"] for row in self.train_datasets if "id" in row],
        }
        return {name: value for name, value in rows.items() if value}

    def to_yaml(self) -> str:
        """Return the metadata as YAML."""
        lines: list[str] = []
        for name, value in self.to_dict().items():
            if isinstance(value, list):
                lines += [f"{name}:", *(f"- {item}" for item in value)]
            else:
                lines.append(f"{name}: {value}")
        return "\n".join(lines)

    def text(self, model: Any) -> str:
        """Return the card."""
        title = self.model_name or f"{self.kind}{f' based on {self.base_model}' if self.base_model else ''}"
        return HEAD.format(
            metadata=self.to_yaml(),
            title=title,
            what=_what(model),
            kind=self.kind,
            model=self.model_id or "path/to/this/folder",
            use=USES.get(self.kind, ""),
            training=self._training(),
        )

    def _training(self) -> str:
        parts = []
        if self.train_datasets:
            names = ", ".join(row.get("name") or row.get("id") or "unnamed" for row in self.train_datasets)
            parts.append(f"\n## Training\nTrained on {names}.\n")
        if self.losses:
            parts.append(f"Loss: {', '.join(self.losses)}.\n")
        if self.settings:
            rows = "\n".join(f"- `{name}`: {value}" for name, value in sorted(self.settings.items()))
            parts.append(f"\n### Settings that differ from the defaults\n{rows}\n")
        if self.scores:
            last = self.scores[-1]
            rows = "\n".join(f"| {name} | {value:.4f} |" for name, value in last["metrics"].items())
            parts.append(
                f"\n## Evaluation ({last['evaluator']}, step {last['step']})\n| metric | value |\n|---|---|\n{rows}\n"
            )
        return "".join(parts)


class SentenceTransformerModelCardData(ModelCardData):
    """The card of a SentenceTransformer."""


class CrossEncoderModelCardData(ModelCardData):
    """The card of a CrossEncoder."""


def card_data(model: Any, given: Any, name: Any) -> ModelCardData:
    """Return the card's data of a new model."""
    kind = type(model).model_type
    if given is not None and not isinstance(given, ModelCardData):
        raise InputError(f"model_card_data is a {kind}ModelCardData, not {type(given).__name__}.")
    made = (
        given
        or {
            "SentenceTransformer": SentenceTransformerModelCardData,
            "CrossEncoder": CrossEncoderModelCardData,
        }[kind]()
    )
    made.kind = kind
    made.pipeline_tag = "sentence-similarity" if kind == "SentenceTransformer" else "text-ranking"
    tags = [
        "sentence-transformers",
        *(["sentence-similarity", "feature-extraction"] if kind != "CrossEncoder" else ["cross-encoder"]),
    ]
    made.tags = list(dict.fromkeys([*tags, *(made.tags or [])]))
    if name is not None and made.base_model is None and not Path(str(name)).exists():
        made.base_model = str(name)
    return made


def _what(model: Any) -> str:
    length = model.max_seq_length
    if model.model_type == "CrossEncoder":
        return f"It scores pairs of texts of at most {length} tokens with {model.num_labels} output(s)."
    dimension = model.get_embedding_dimension()
    return (
        f"It maps texts of at most {length} tokens to vectors of {dimension} components, "
        f"which are compared by {model.similarity_fn_name}."
    )
