"""munjang keywords FILE... -o OUT: extract the keywords of every text; --html marks them in the texts.

munjang keywords articles.jsonl -o keywords.csv
munjang keywords articles.jsonl -o keywords.csv --ngrams 1 2 --pick mmr --html keywords.html
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from munjang.cli.corpus import CorpusOptions, check_outputs, corpus_vectors, read_corpus, say
from munjang.cli.options import option
from munjang.data.tables import read_texts
from munjang.errors import InputError
from munjang.tasks.keywords.config import KeywordConfig

SUMMARY_KO = "글의 핵심어 찾기; 한국어는 명사구"


@dataclass(frozen=True, kw_only=True)
class Options(CorpusOptions, KeywordConfig):
    """Options of `munjang keywords`."""

    output: str = option("output file of row, keyword and score: .csv, .tsv, .jsonl or .parquet", short="-o")
    html: str | None = option("write a page of the texts with their keywords marked", default=None, metavar="OUT")
    vectors: str | None = option("vectors of the texts, from `munjang encode -o x.npy` with this model", default=None)
    stop_words: Literal["english", "none"] = option("words to exclude from the candidates", default="english")
    candidates: str | None = option(
        "file of candidate phrases, one per line (default: phrases of the texts)", default=None
    )
    seeds: tuple[str, ...] = option("words to pull the keywords towards", default=())


def run(options: Options) -> int:
    """Read the texts, extract their keywords, write them."""
    check_outputs(options, options.output)
    if options.vectors is not None and options.seeds:  # corpus_vectors gives them at length one
        raise InputError("--seeds are mixed with vectors as the model gives them: leave --vectors out")
    texts = read_corpus(options, options.inputs)
    given = None if options.candidates is None else [text for text in read_texts(options.candidates) if text.strip()]
    from munjang.bi_encoder import BiEncoder
    from munjang.data.writing import check_texts, write_table
    from munjang.pages.html import say as phrase
    from munjang.tasks.keywords.extract import keywords
    from munjang.tasks.keywords.page import write_keywords

    config = KeywordConfig(**{each.name: getattr(options, each.name) for each in fields(KeywordConfig)})
    check_texts(Path(options.output), given or ())
    model = BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)
    vectors = None if options.vectors is None else corpus_vectors(options, texts, options.vectors, model)
    progress = not options.quiet
    rows = keywords(texts, model, config, given, options.seeds or None, vectors, progress)
    found = [(place, each.text, round(each.score, 4)) for place, row in enumerate(rows) for each in row]
    columns = list(map(list, zip(*found, strict=True))) or [[], [], []]
    write_table(Path(options.output), dict(zip(("row", "keyword", "score"), columns, strict=True)))
    if options.html is not None:
        title = phrase("keywords_of", name=Path(options.inputs[0]).name)
        write_keywords(Path(options.html), texts, rows, title)
    num_empty = sum(not row for row in rows)
    without = f"; {num_empty:,} texts have none (only stop words, or nothing that was asked for)" if num_empty else ""
    say(options, f"{len(found):,} keywords of {len(texts):,} texts in {options.output}{without}")
    return 0
