"""munjang keywords FILE... -o OUT: the keywords of every text; --html shows them in the texts.

munjang keywords articles.jsonl -o keywords.csv --ngrams 1 2 --pick mmr --html keywords.html
"""

import sys
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Literal

from munjang.cli.options import option
from munjang.data.tables import read_texts
from munjang.errors import InputError
from munjang.tasks.phrases.config import KeywordConfig


@dataclass(frozen=True, kw_only=True)
class Options(KeywordConfig):
    """Of `munjang keywords`."""

    inputs: tuple[str, ...] = option(
        "files of texts: .txt .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; - is standard input",
        is_positional=True,
        metavar="FILE",
    )
    output: str = option("where to write row, keyword and score: .csv, .tsv, .jsonl or .parquet", short="-o")
    html: str | None = option("write a page of the texts with their keywords marked", default=None)
    model: str | None = option("folder or Hub name of the model (default: the bundled one)", default=None, short="-m")
    stop_words: Literal["english", "none"] = option("words that are no candidates", default="english")
    candidates: str | None = option("file of phrases to choose from, one a line (default: of the texts)", default=None)
    seeds: tuple[str, ...] = option("words that pull the keywords towards them", default=())
    column: str | None = option("column that holds the text (default: by its name)", default=None)
    format: Literal["txt", "csv", "tsv", "jsonl", "parquet"] | None = option(
        "format of the inputs (default: by suffix)", default=None
    )
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best there is)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "type to compute in (default: by device); int8 is for a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    replace: bool = option("replace outputs that are already there", default=False)
    config: str | None = option("TOML file of these options; flags win", default=None, metavar="FILE")
    quiet: bool = option("say nothing but errors", default=False)


def run(options: Options) -> int:
    """Read, find, write."""
    from munjang.data.writing import check_suffix, write_table

    output = Path(options.output)
    check_suffix(output)
    for path in filter(None, (options.output, options.html)):
        if Path(path).exists() and not options.replace:
            raise InputError(f"{path} is already there; choose another name, or replace it with --replace")
    texts = list(chain.from_iterable(read_texts(path, options.column, options.format) for path in options.inputs))
    if not texts:
        raise InputError(f"There are no texts in {', '.join(options.inputs)}")
    given = None if options.candidates is None else [text for text in read_texts(options.candidates) if text.strip()]
    from munjang.bi_encoder import BiEncoder
    from munjang.tasks.phrases.keywords import keywords
    from munjang.tasks.phrases.page import write_keywords

    config = KeywordConfig(**{each.name: getattr(options, each.name) for each in fields(KeywordConfig)})
    model = BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)
    rows = keywords(texts, model, config, given, options.seeds or None, progress=False if options.quiet else None)
    found = [(place, each.text, round(each.score, 4)) for place, row in enumerate(rows) for each in row]
    columns = list(map(list, zip(*found, strict=True))) or [[], [], []]
    write_table(output, dict(zip(("row", "keyword", "score"), columns, strict=True)))
    if options.html is not None:
        write_keywords(Path(options.html), texts, rows, f"{Path(options.inputs[0]).name}: keywords")
    if not options.quiet:
        num_empty = sum(not row for row in rows)
        without = (
            f"; {num_empty:,} texts have none (only stop words, or nothing that was asked for)" if num_empty else ""
        )
        print(f"munjang: {len(found):,} keywords of {len(texts):,} texts in {output}{without}", file=sys.stderr)
    return 0
