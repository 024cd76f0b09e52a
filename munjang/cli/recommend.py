"""munjang recommend ITEMS --like ID ...: recommend items from likes, or for a need in words; similar or diverse.

munjang recommend books.tsv --need "우울할 때 위로가 되는 소설"
munjang recommend books.tsv --like 9788932008851 --like 9788937460449 -o for-you.csv --html for-you.html
munjang recommend books.tsv --need "우울할 때 위로가 되는 소설" -k 5
munjang recommend --index books-index --like 9788932008851 --dislike 9788937460449 --half-life 5
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.cli.corpus import RunOptions, check_outputs, corpus_vectors, say, write_page
from munjang.cli.options import option
from munjang.errors import InputError
from munjang.tasks.recommend.config import RecommendConfig

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.bi_encoder import BiEncoder
    from munjang.index import Index
    from munjang.tasks.recommend.catalogue import Items
    from munjang.tasks.recommend.ranking import Recommendation

TITLE_COLUMNS = ("title", "제목")


SUMMARY_KO = "좋아한 것이나 말로 적은 필요에 맞는 항목 추천"


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions, RecommendConfig):
    """Options of `munjang recommend`."""

    inputs: tuple[str, ...] = option(
        "tables of items with columns id and text (others: --column, --id-column): .csv .tsv .jsonl .parquet, or .txt",
        (),
        is_positional=True,
        metavar="ITEMS",
    )
    like: tuple[str, ...] = option("ids of liked items, oldest first", ())
    dislike: tuple[str, ...] = option("ids of disliked items", ())
    exclude: tuple[str, ...] = option("ids of items not to recommend", ())
    need: str | None = option("describe in words what is wanted", None)
    index: str | None = option("recommend documents of this index instead of files", None)
    name: str = option("name of the index at that place", "default")
    vectors: str | None = option("use these vectors (.npy), one row per item in the order of the files", None)
    model: str | None = option("folder or Hub name of the model (an index remembers its own)", None, "-m")
    column: str | None = option("text column (default: recognized by name)", None)
    id_column: str | None = option("id column (default: recognized by name, else number the items from 0)", None)
    keywords: int = option("number of keywords that explain each item", 3)
    output: str | None = option("output file: .tsv .csv .jsonl .parquet (default: print)", None, "-o")
    html: str | None = option("write a page of the items, the reasons and a map of the catalogue", None)


def run(options: Options) -> int:
    """Read the items, encode them, recommend, explain, write."""
    _check(options)
    from munjang.index import Index
    from munjang.tasks.recommend.ranking import explain, recommend

    config = RecommendConfig(**{each.name: getattr(options, each.name) for each in fields(RecommendConfig)})
    items: Items | Index
    if options.index is not None:
        encoder = None if options.model is None else _model(options)
        items = Index.open(options.index, encoder, options.name, create=False, device=options.device)
    else:
        items = _items(options)
    model = items.model
    found = recommend(items, options.like, options.dislike, options.need, config, options.exclude)
    _check_texts(options, [each.id for each in found], [each.text for each in found])  # of an index: not read before
    if options.keywords and model is not None:
        from munjang.tasks.keywords.extract import KeywordConfig

        wanted = KeywordConfig(top=options.keywords, pick="mmr", diversity=0.3)
        found = explain(found, model, options.need, wanted)
    _write(options, found)
    if options.html is not None:
        _write_page(options, found, items)
    if isinstance(items, Index):
        items.close()
    return 0


def _check(options: Options) -> None:
    if bool(options.inputs) == (options.index is not None):
        raise InputError("Which items? Give files, or --index with the place of an index")
    if not options.like and options.need is None:
        raise InputError("Recommended for whom? Give --like ID after the files, or --need with words")
    for name in ("vectors", "column", "id_column"):
        if options.index is not None and getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for files of items; an index has its own")
    if options.keywords < 0:
        raise InputError(f"--keywords must be at least 0, not {options.keywords}")
    for name in ("dtype", "threads"):
        if options.index is not None and options.model is None and getattr(options, name) is not None:
            raise InputError(f"--{name} with --index needs --model too; an index loads its own model as it is")
    check_outputs(options, options.output)


def _check_texts(options: Options, *columns: Sequence[str]) -> None:
    if options.output is not None:
        from munjang.data.writing import check_texts

        check_texts(Path(options.output), chain(*columns))


def _items(options: Options) -> "Items":
    from munjang.data.documents import Reading, read_documents
    from munjang.tasks.recommend.catalogue import Items

    reading = Reading(options.column, options.id_column, fields=(), is_lines=True)
    rows = list(read_documents(options.inputs, reading))
    ids = [str(place) if row.id is None else row.id for place, row in enumerate(rows)]
    texts = [row.text for row in rows]
    _check_texts(options, ids, texts)
    if options.vectors is None:
        return Items.of_texts(texts, _model(options), ids, not options.quiet)
    # a need in words has to be encoded by the model that made the vectors; liked ids don't
    model = _model(options) if options.need is not None or options.model is not None else None
    return Items.of_vectors(corpus_vectors(options, texts, options.vectors, model), ids, texts, model)


def _model(options: Options) -> "BiEncoder":
    from munjang.bi_encoder import BiEncoder

    return BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)


def _write(options: Options, found: "Sequence[Recommendation]") -> None:
    from munjang.data.writing import write_table

    if not found:
        say(options, "nothing is left to recommend")
    if options.output is None:
        for each in found:
            why = "the need" if each.because is None else each.because
            print(f"{each.score:7.4f}  {each.id}  {' '.join(each.text.split()):.200}")
            print(f"         for {why}{': ' if each.keywords else ''}{', '.join(each.keywords)}")
        return
    table: dict[str, Sequence[Any]] = {
        "id": [each.id for each in found],
        "text": [each.text for each in found],
        "score": [round(each.score, 6) for each in found],
        "because": [each.because or "" for each in found],
        "keywords": [", ".join(each.keywords) for each in found],
    }
    write_table(Path(options.output), table)
    say(options, f"{len(found):,} items in {options.output}")


def _write_page(options: Options, found: "Sequence[Recommendation]", items: "Items | Index") -> None:
    from munjang.tasks.recommend.page import recommendations_page

    titles = _titles(options) if options.index is None else None
    page = recommendations_page(found, items, options.like, options.dislike, options.need, titles)
    write_page(options.html or "", page)


def _titles(options: Options) -> dict[str, str]:
    """Return titles by id, where the files of items have a column of them."""
    from munjang.data.documents import Reading, read_documents

    for column in TITLE_COLUMNS:
        reading = Reading(options.column, options.id_column, fields=(column,), is_lines=True)
        try:
            rows = enumerate(read_documents(options.inputs, reading))
            return {str(place) if row.id is None else row.id: str(row.metadata.get(column, "")) for place, row in rows}
        except InputError:  # no such column, or not in every row
            continue
    return {}
