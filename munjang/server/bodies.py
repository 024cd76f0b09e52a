"""Bases of request bodies, and texts that can be stored; each API's own bodies are beside its routes."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictInt


def repaired(text: str) -> str:
    """Replace lone surrogates, such as half an emoji, by U+FFFD, so that the text can be stored and answered."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


Text = Annotated[str, AfterValidator(repaired)]
Tokens = list[StrictInt]


class ForeignBody(BaseModel):
    """A body of another API: unknown fields are ignored."""

    model_config = ConfigDict(protected_namespaces=())


class OwnBody(BaseModel):
    """A body of our own routes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def as_inputs(value: Any) -> Any:
    """Make a list of one text or one row of token ids; leave lists of them as they are."""
    is_one = isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], int))
    return [value] if is_one else value
