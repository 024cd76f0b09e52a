"""munjang rerank QUERY FILE...: rank the documents of files for a query with a cross-encoder.

munjang rerank "How fast is light?" answers.txt
munjang rerank "수도가 어디야?" candidates.txt --model path/to/cross-encoder -k 5
"""

import json
from dataclasses import dataclass
from typing import Literal

from munjang.cli.options import option
from munjang.errors import InputError

SUMMARY_KO = "크로스 인코더로 질문에 맞는 순서로 정렬"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang rerank`."""

    query: str = option("question that the documents should answer", is_positional=True, metavar="QUERY")
    files: tuple[str, ...] = option(
        "files of documents, one per line or row; - is standard input", is_positional=True, metavar="FILE"
    )
    model: str | None = option(
        "folder or Hub name of the cross-encoder (default: the bundled one)", default=None, short="-m"
    )
    k: int | None = option("number of documents to show (default: all)", default=None, short="-k")
    column: str | None = option("text column (default: recognized by name)", default=None)
    json: bool = option("print one JSON object per line", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )


def run(options: Options) -> int:
    """Read the documents, rank them, print them."""
    from munjang.data.tables import read_texts

    texts = [text for path in options.files for text in read_texts(path, options.column)]
    if not texts:
        raise InputError("There are no documents in these files")
    from munjang.cross_encoder import CrossEncoder

    scorer = CrossEncoder.load(options.model, device=options.device, dtype=options.dtype)
    for hit in scorer.rank(options.query, texts, options.k):
        print(json.dumps(hit.as_dict(), ensure_ascii=False) if options.json else f"{hit.score:8.4f}  {hit.text}")
    return 0
