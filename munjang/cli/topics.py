"""munjang topics FILE... -o OUT: find topics in texts and assign each text to one; --html draws a map.

munjang topics reviews.csv -o topics.csv --html map.html
munjang topics reviews.csv -o topics.csv --html map.html --save topics --times date
munjang topics new.csv -o new-topics.csv --load topics
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.cli.corpus import CorpusOptions, check_outputs, corpus_vectors, read_corpus, say
from munjang.cli.options import option
from munjang.data.columns import choose_text, found
from munjang.data.files import label
from munjang.data.rows import Broken
from munjang.data.tables import place, read_rows
from munjang.errors import InputError
from munjang.tasks.topics.config import TopicConfig

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.tasks.topics.model import TopicModel
    from munjang.tasks.topics.times import TopicAtTime


SUMMARY_KO = "글이 다루는 주제를 찾아 지도로 그리기"


@dataclass(frozen=True, kw_only=True)
class Options(CorpusOptions, TopicConfig):
    """Options of `munjang topics`."""

    output: str = option("output file of row, topic, similarity, label, text: .csv .tsv .jsonl .parquet", short="-o")
    html: str | None = option("write a map of the topics to this file", default=None, metavar="OUT")
    vectors: str | None = option("use these vectors of the texts, from `munjang encode -o x.npy`", default=None)
    save: str | None = option("save the topics to this folder, to assign new texts later", default=None)
    load: str | None = option("assign the texts to the topics of this folder instead of finding new ones", default=None)
    min_similarity: float | None = option("with --load: assign no topic below this similarity", default=None)
    times: str | None = option("column of dates or numbers: follow topics over time", default=None)


def run(options: Options) -> int:
    """Read the texts, find topics or assign saved ones, write the result."""
    from munjang.data.writing import check_texts, write_table

    check_outputs(options, options.output)
    _check_folder(options)
    config = TopicConfig(**{each.name: getattr(options, each.name) for each in fields(TopicConfig)})
    _check(options, config)
    texts, times = _read(options)
    check_texts(Path(options.output), texts)
    topic_of, similarity, model = _assigned(options, texts) if options.load else _found(options, config, texts, times)
    labels = [topic.label for topic in model.topics]
    table = {
        "row": list(range(len(texts))),
        "topic": topic_of.tolist(),
        "similarity": [round(value, 4) for value in similarity.tolist()],
        "label": [labels[topic] if topic >= 0 else "" for topic in topic_of.tolist()],
        "text": texts,
    }
    write_table(Path(options.output), table)
    say(options, f"{len(texts):,} texts, {len(labels)} topics in {options.output}")
    return 0


def _check_folder(options: Options) -> None:
    """Raise InputError now if the folder of --save could not be written later."""
    if options.save is None:
        return
    from munjang.tasks.topics.files import check_folder

    folder = Path(options.save)
    if folder in (Path(options.output), Path(options.html or options.output)):
        raise InputError("Two outputs have the same name; choose another for one of them")
    if folder.exists() and not options.replace:
        raise InputError(f"{folder} is already there; choose another name, or replace it with --replace")
    check_folder(folder)


def _check(options: Options, config: TopicConfig) -> None:
    if options.load is None and options.min_similarity is not None:
        raise InputError("--min-similarity is for --load; new topics have --cluster hdbscan for texts that fit nowhere")
    if options.load is not None:
        if config != TopicConfig():
            raise InputError("--load takes the topics as they are: leave out what says how topics are found")
        for name in ("html", "save", "times"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is of the texts that topics are found in, not of those of --load")
    if options.vectors is not None and options.diversity and options.model is None:
        raise InputError("--diversity compares terms by their vectors: give the --model of the --vectors too")


def _found(
    options: Options, config: TopicConfig, texts: list[str], times: list[Any] | None
) -> "tuple[Any, Any, TopicModel]":
    from munjang.pages.html import say as phrase
    from munjang.tasks.topics.files import save_topics
    from munjang.tasks.topics.find import find_topics
    from munjang.tasks.topics.map import write_map
    from munjang.tasks.topics.times import topics_over_time

    encoder, vectors = _encoded(options, texts)
    say(options, f"finding topics of {len(texts):,} texts")  # UMAP and HDBSCAN report no progress
    model = find_topics(texts, encoder, config, vectors, not options.quiet)
    periods = None if times is None else topics_over_time(model, times)
    if options.save is not None:
        save_topics(model, options.save)
    if options.html is not None:
        title = phrase("topics_of", name=Path(options.inputs[0]).name)
        write_map(Path(options.html), model, vectors, title, periods)
    if not options.quiet:
        _print(model, periods or [])
    return model.topic_of_N, model.similarity_N, model


def _print(model: "TopicModel", periods: "list[TopicAtTime]") -> None:
    for topic in model.topics:
        print(f"{topic.number}\t{topic.size}\t{', '.join(term for term, _ in topic.terms)}")
    if model.num_outliers:
        print(f"-1\t{model.num_outliers}\t")
    for each in periods:
        print(f"{each.start}\t{each.topic}\t{each.size}\t{', '.join(term for term, _ in each.terms)}")


def _assigned(options: Options, texts: list[str]) -> "tuple[Any, Any, TopicModel]":
    from munjang.tasks.topics.files import load_topics

    model = load_topics(str(options.load))
    encoder, vectors = _encoded(options, texts)
    assigned = model.assign(vectors, encoder, -1.0 if options.min_similarity is None else options.min_similarity)
    return assigned.topic_of_N, assigned.similarity_N, model


def _encoded(options: Options, texts: list[str]) -> tuple[Any, Any]:
    """Load the model if one is needed; return it and the vectors of the texts."""
    from munjang.bi_encoder import BiEncoder

    encoder = None
    if options.vectors is None or options.model is not None:
        encoder = BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)
    return encoder, corpus_vectors(options, texts, options.vectors, encoder)


def _read(options: Options) -> tuple[list[str], list[Any] | None]:
    if options.times is None:
        return read_corpus(options, options.inputs), None
    texts: list[str] = []
    times: list[Any] = []
    for path in options.inputs:

        def choose(columns: list[str], path: str = path) -> list[str]:
            (text,) = choose_text(label(path), options.column, columns)
            return [text, *found(label(path), [str(options.times)], columns)]

        for where, values in read_rows(path, choose, options.format):
            if isinstance(values, Broken):
                raise InputError(f"{place(path, where, options.format)}: {values.reason}")
            text, time = values
            if not isinstance(text, str):
                raise InputError(f"{place(path, where, options.format)}: {text!r:.40} is not a text")
            texts.append(text)
            times.append(time)
    if not texts:
        raise InputError(f"There are no texts in {', '.join(options.inputs)}")
    return texts, _numbers(times)


def _numbers(times: list[Any]) -> list[Any]:
    """Convert times to numbers if all are numbers: years of a .csv arrive as text."""
    try:
        return [float(time) for time in times]
    except (TypeError, ValueError):
        return times
