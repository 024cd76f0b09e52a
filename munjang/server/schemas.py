"""What requests may hold, API by API. Fields of theirs that we don't know are ignored; of ours, refused."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt


def whole(text: str) -> str:
    """A text with lone surrogates, as half an emoji is, made one that can be stored and answered: by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


Text = Annotated[str, AfterValidator(whole)]
Tokens = list[StrictInt]


class Request(BaseModel):
    """Of other APIs."""

    model_config = ConfigDict(protected_namespaces=())


class OpenAIEmbeddings(Request):
    """POST /v1/embeddings. `input_type` is an addition: query or document, for models with a prompt for each."""

    input: Text | list[Text] | Tokens | list[Tokens]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None
    input_type: Literal["query", "document", "passage"] | None = None


class TEIEmbed(Request):
    """POST /embed."""

    inputs: Text | list[Text] | Tokens | list[Tokens]
    truncate: bool | None = None
    normalize: bool = True
    dimensions: Annotated[int, Field(ge=1)] | None = None
    prompt_name: str | None = None
    model: str | None = None


class TEIRerank(Request):
    """POST /rerank."""

    query: Text
    texts: list[Text]
    truncate: bool | None = None
    raw_scores: bool = False
    return_text: bool = False
    model: str | None = None


class Similar(Request):
    """What /similarity compares."""

    source_sentence: Text
    sentences: list[Text]


class SimilarityParameters(Request):
    """How /similarity reads texts."""

    truncate: bool | None = None
    prompt_name: str | None = None


class TEISimilarity(Request):
    """POST /similarity."""

    inputs: Similar
    parameters: SimilarityParameters = SimilarityParameters()
    model: str | None = None


class CohereRerank(Request):
    """POST /v2/rerank."""

    model: str
    query: Text
    documents: list[Text]
    top_n: Annotated[int, Field(ge=1)] | None = None


class Own(BaseModel):
    """Of our own routes."""

    model_config = ConfigDict(extra="forbid")


class Search(Own):
    """POST /search. `rerank`: the name of a re-ranker, or true for the first one.

    `rerank_weight`: its share of the final order, 0 to 1, the retrieval has the rest; left out, what the re-ranker's
    folder states, or 1.
    """

    query: Text
    k: Annotated[int, Field(ge=1, le=1000)] = 10
    candidates: Annotated[int, Field(ge=1, le=1000)] = 100
    where: Annotated[Text, Field(max_length=10_000)] | None = None
    rerank: bool | str = False
    rerank_weight: Annotated[float, Field(ge=0, le=1)] | None = None
    group: Literal["document", "passage"] = "document"
    hybrid: bool = False


class Document(Own):
    """One document of POST /documents."""

    text: Text
    id: Annotated[Text, Field(min_length=1, max_length=512)] | None = None
    metadata: dict[Text, Text | bool | int | float | None] = {}


class Documents(Own):
    """POST /documents: those with a known id take its place."""

    documents: list[Document]


class DocumentIds(Own):
    """DELETE /documents."""

    ids: list[Text]


class Similarities(Own):
    """POST /similarities: every text with every other."""

    texts: list[Text]
    model: str | None = None


def as_inputs(given: Any) -> Any:
    """One text or one row of token ids as a list of one."""
    is_one = isinstance(given, str) or (isinstance(given, list) and given and isinstance(given[0], int))
    return [given] if is_one else given
