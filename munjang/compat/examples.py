"""InputExample, and readers and datasets of older versions that hold them."""

from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import Dataset


@dataclass
class InputExample:
    """Texts and a label."""

    guid: str = ""
    texts: list[str] = field(default_factory=list)
    label: Any = 0

    def __str__(self) -> str:
        return f"<InputExample> label: {self.label}, texts: {'; '.join(self.texts)}"


class SentencesDataset(Dataset[InputExample]):
    """A list of examples."""

    def __init__(self, examples: list[InputExample], model: Any = None) -> None:
        self.examples = examples

    def __getitem__(self, item: int) -> InputExample:
        return self.examples[item]

    def __len__(self) -> int:
        return len(self.examples)
