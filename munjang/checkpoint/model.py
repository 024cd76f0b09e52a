"""What a folder holds, ready to run."""

from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from munjang.checkpoint.files import Json
from munjang.nn.base import Network
from munjang.text.tokenizer import Tokenizer
from munjang.types import Floats


@dataclass
class Model:
    """A network and its tokenizer, with what is needed to write them again."""

    network: Network
    tokenizer: Tokenizer
    layout: str
    folder: Path  # where config.json and the tokenizer are
    config: Json = field(default_factory=dict)  # config.json of the encoder
    tokenizer_config: Json = field(default_factory=dict)
    is_lowered: bool = False  # do_lower_case of sentence_bert_config.json
    is_compact: bool = False  # in 8 bits on disk
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity: str | None = None
    truncate_dim: int | None = None
    activation: nn.Module | None = None
    ranges: Floats | None = None  # of each component, for int8 vectors

    def __post_init__(self) -> None:
        if (encoder := self.network.encoder.own) is not None:
            (before, _), (behind, _) = self.tokenizer.single.parts
            encoder.ends = before.tolist(), behind.tolist()
