"""munjang evaluate MODEL... --data FILE...: evaluate models and compare them side by side, one row per file.

munjang evaluate ko-en-small MODEL --data stsb-test.tsv
munjang evaluate path/to/model --data stsb-test.tsv
munjang evaluate model-a model-b --data stsb-test.tsv retrieval/cranfield --json report.json --html report.html
munjang evaluate path/to/model --data test.tsv --train train.tsv --kind classification
munjang evaluate ko-en-small MODEL --suite sts --data folder-of-published-files
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.models import load_any
from munjang.cli.options import option
from munjang.data.files import replacing
from munjang.errors import InputError

if TYPE_CHECKING:  # numpy and torch stay out of --help
    from munjang.evaluation import Report, Settings

# Options that are passed on as settings of the same name
SETTINGS = (
    *(
        "texts",
        "label",
        "score",
        "labels",
        "score_range",
        "format",
        "split",
        "max_rows",
        "train",
        "max_train_rows",
        "folds",
    ),
    *("candidates", "rerank_weight", "prompt", "query_prompt", "document_prompt", "long", "seed"),
)


SUMMARY_KO = "모델이 얼마나 좋은지 나란히 재기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang evaluate`."""

    models: tuple[str, ...] = option(
        "folders or Hub names of models of any kind (default: the bundled bi-encoder)",
        default=(),
        is_positional=True,
        metavar="MODEL",
    )
    data: tuple[str, ...] = option(
        "tables (.tsv .csv .json .jsonl .parquet, also with .xz .gz .bz2), published files as they are, or folders "
        "with corpus, queries and qrels; with --suite the folder of its sets, at any depth",
        default=(),
        metavar="FILE",
    )
    suite: str | None = option(
        "measure a collection by name: sts, senteval (published files below --data), or through mteb kor, nano, and "
        "sts without --data",
        default=None,
    )
    mteb_results: str | None = option(
        "write what mteb measures into this folder, in the files that its leaderboard takes",
        default=None,
        metavar="OUT",
    )
    by: tuple[str, ...] = option(
        "retrieval: search an index of the documents by these ways: words, dense, sparse, late",
        default=(),
        metavar="WAY",
    )
    sparse: str | None = option("model of sparse vectors, for --by sparse", default=None)
    late: str | None = option("late-interaction model, for --by late", default=None)
    kind: str | None = option(
        "kind of evaluation, such as sts or retrieval; docs/guides/evaluate.md lists them "
        "(default: recognized from the data)",
        default=None,
    )
    texts: tuple[str, ...] = option("text columns (default: recognized by name)", default=(), metavar="COLUMN")
    label: str | None = option("class column (default: recognized by name)", default=None)
    score: str | None = option("score column (default: recognized by name)", default=None)
    labels: tuple[str, ...] = option("names of the classes, in the model's order", default=(), metavar="NAME")
    score_range: tuple[float, float] | None = option("lowest and highest score (default: from the data)", default=None)
    format: Literal["csv", "tsv", "json", "jsonl", "parquet"] | None = option(
        "format of the tables (default: by suffix)", default=None
    )
    split: str = option("split to measure, of a folder or a table that has several", default="test")
    max_rows: int | None = option("read at most this many rows, or queries of a retrieval folder", default=None)
    train: str | None = option(
        "file to train the classifier on: for classification, and for nli of a bi-encoder", default=None
    )
    max_train_rows: int | None = option("train on at most this many rows, drawn at random", default=None)
    folds: int | None = option(
        "classification without --train: hold out one of so many parts at a time (SentEval: 10)", default=None
    )
    first_stage: str | None = option("bi-encoder that retrieves the candidates for reranking", default=None)
    candidates: int = option("number of candidates to rerank", default=100)
    rerank_weight: float | None = option(
        "weight of the re-ranker in the final order, 0 to 1; the first stage has the rest (default: the re-ranker's "
        "own, or 1)",
        default=None,
    )
    prompt: str | None = option("put this before texts that are compared with each other", default=None)
    query_prompt: str | None = option("put this before queries (default: the model's own)", default=None)
    document_prompt: str | None = option("put this before documents (default: the model's own)", default=None)
    long: Literal["truncate", "average", "error"] = option(
        "handling of texts longer than the model reads", default="truncate"
    )
    truncate_dim: int | None = option("keep this many leading dimensions of the vectors", default=None)
    pooling: tuple[str, ...] = option("replace the models' pooling: mean, cls, max, ...", default=(), metavar="MODE")
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    dtype: Literal["float32", "bfloat16", "float16", "int8"] | None = option(
        "dtype of the network (default: by device); int8 needs a CPU", default=None
    )
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    seed: int = option("random seed of clusters and folds", default=0)
    json: str | None = option("write all metrics to this file", default=None, metavar="OUT")
    html: str | None = option("write a page with a chart to this file", default=None, metavar="OUT")
    details: bool = option("print every metric (default: for one model and one file)", default=False)
    dry_run: bool = option("read the data, print what would be measured, and stop", default=False)
    quiet: bool = option("print only the table", default=False)


def run(options: Options) -> int:
    """Read all data, then evaluate one model after the other."""
    from munjang.evaluation import Settings, prepare

    given = {name: getattr(options, name) for name in SETTINGS}
    given |= {name: given[name] or None for name in ("texts", "labels")}
    settings = Settings(**given, progress=False if options.quiet else None)
    options = _check(options)
    if options.suite is not None and _needs_mteb(options):
        reports = _measure_in_mteb(options)
    else:
        if options.suite is None:
            sources = _named(options.data).items()
            prepared = [(name, *prepare(source, options.kind, settings)) for name, source in sources]
        else:
            prepared = _read_suite(options, settings)
        if options.dry_run:
            _print_plan(options, prepared)
            return 0
        reports = _measure(options, prepared, settings)
    _print(options, reports)
    if options.html is not None:
        from munjang.evaluation.page import reports_page

        _write(options.html, reports_page(reports))
    return 0


def _check(options: Options) -> Options:
    """Raise InputError now for what would otherwise fail after hours; fill in the bundled model if none is named."""
    from munjang.data.writing import check_file

    for path in filter(None, (options.json, options.html)):
        check_file(Path(path))
    if options.suite is None and not options.data:
        raise InputError("name what to measure: --data FILE..., or --suite with sts, senteval, kor or nano")
    if options.suite is None and options.mteb_results is not None:
        raise InputError("--mteb-results is for a suite that mteb measures: --suite kor, nano, or sts without --data")
    if options.models:
        return options
    from munjang.checkpoint.bundled import default

    return replace(options, models=(default("bi"),))


def _needs_mteb(options: Options) -> bool:
    """Tell whether a suite is measured by mteb; refuse a suite with options that it would ignore."""
    from munjang.evaluation.suites import suite_of

    assert options.suite is not None
    suite = suite_of(options.suite)
    for name in ("kind", "texts", "label", "score", "labels", "score_range", "format", "train"):
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} is for --data alone: a suite knows it of each of its sets")
    if suite.benchmark is None and not suite.tasks and not options.data:
        raise InputError(f"--suite {options.suite} needs --data: the folder with its published files")
    if suite.benchmark is not None and options.data:
        raise InputError(f"--suite {options.suite} is measured by mteb, which loads its own data; drop --data")
    needs_mteb = not options.data
    if needs_mteb and options.dry_run:
        raise InputError("--dry-run reads data, and here mteb does; try it with --data")
    if not needs_mteb and options.mteb_results is not None:
        raise InputError("--mteb-results is for a suite that mteb measures; drop --data, or take --json")
    if not needs_mteb and len(options.data) > 1:
        raise InputError(f"--suite takes one folder, not {len(options.data)}")
    return needs_mteb


def _read_suite(options: Options, settings: "Settings") -> "list[tuple[str, str, Any]]":
    from munjang.evaluation.catalogue import Folder
    from munjang.evaluation.suites import read_suite

    assert options.suite is not None
    prepared, missing = read_suite(options.suite, Folder(options.data[0]), settings)
    for line in missing:
        _say(options, line)
    return prepared


def _measure_in_mteb(options: Options) -> "list[Report]":
    from munjang.evaluation.mteb import measure_suite
    from munjang.evaluation.report import dumps, shown
    from munjang.evaluation.suites import suite_of

    assert options.suite is not None
    reports: list[Report] = []
    for name, path in _named(options.models).items():
        for report in measure_suite(_load(options, path), suite_of(options.suite), name, options.mteb_results):
            _say(options, f"{name} on {report.dataset}: {report.main} {shown(report.main, report.score)}")
            reports.append(report)
            if options.json is not None:
                _write(options.json, dumps(reports))
    return reports


def _named(paths: Sequence[str]) -> dict[str, str]:
    """Map names to paths: short names if they are distinct, else the paths themselves."""
    from munjang.evaluation import dataset_name

    distinct = list(dict.fromkeys(paths))
    names = [dataset_name(path) for path in distinct]
    return dict(zip(names if len(set(names)) == len(names) else distinct, distinct, strict=True))


def _measure(options: Options, prepared: list[tuple[str, str, Any]], settings: "Settings") -> "list[Report]":
    from munjang import checkpoint  # imports torch: after everything that can fail without it
    from munjang.evaluation import check_model, measure
    from munjang.evaluation.report import dumps, shown

    models = _named(options.models)
    for model in models.values():
        for _, kind, data in prepared:
            check_model(kind, checkpoint.kind(model), data)
    if options.by:
        sparse, late = (None if path is None else load_any(path) for path in (options.sparse, options.late))
        settings = replace(settings, by=options.by, sparse=sparse, late=late)
    if options.first_stage is not None:
        settings = replace(settings, first_stage=_load(options, options.first_stage))
    reports: list[Report] = []
    for name, path in models.items():
        model = _load(options, path)
        for dataset, kind, data in prepared:
            report = replace(measure(model, kind, data, settings, name), dataset=dataset)
            reports.append(report)
            main = f"{report.main} {shown(report.main, report.score)}"
            _say(options, f"{name} on {dataset} ({kind}, {report.rows:,} rows): {main}, {report.seconds:.1f} s")
            if options.json is not None:  # keep what is measured, whatever happens to the rest
                _write(options.json, dumps(reports))
    return reports


def _load(options: Options, path: str) -> Any:
    from munjang import checkpoint

    place = {"device": options.device, "dtype": options.dtype, "threads": options.threads}
    if (kind := checkpoint.kind(path)) != "bi":
        if options.truncate_dim is not None or options.pooling:
            called = f"{kind}-encoder" if kind == "cross" else f"{kind} model"
            raise InputError(f"{path} is a {called}: it has no single vector, so no --truncate-dim and no --pooling")
        return load_any(path, **place)
    from munjang.bi_encoder import BiEncoder

    model = BiEncoder.load(path, **place, pooling=options.pooling or None)  # type: ignore[arg-type]
    if options.truncate_dim is not None:
        if not 1 <= options.truncate_dim <= model.width:
            raise InputError(f"--truncate-dim must be between 1 and {model.width} for {path}")
        model.truncate_dim = options.truncate_dim
    return model


def _print(options: Options, reports: "list[Report]") -> None:
    from munjang.evaluation.report import comparisons, details, table

    print(table(reports))
    compared = comparisons(reports)
    if compared:
        print("\n".join(["", "best of each dataset (95 % confidence, paired bootstrap over the rows):", *compared]))
    for report in reports if options.details or len(reports) == 1 else []:
        print(f"\n{report.model} on {report.dataset}" if len(reports) > 1 else "")
        print("\n".join(details(report)))


def _print_plan(options: Options, prepared: list[tuple[str, str, Any]]) -> None:
    from munjang.evaluation import KINDS
    from munjang.evaluation.report import aligned

    rows = [["dataset", "kind", "rows", "main metric"]]
    for name, kind, data in prepared:
        mains = dict.fromkeys(KINDS[kind].main.values())
        rows.append([name, kind, f"{len(data):,}", " or ".join(mains)])
    print(aligned(rows))
    for name, kind, data in prepared:
        for note in dict.fromkeys(getattr(data, "notes", ())):
            print(f"{name}: {note}")
        if kind == "nli" and data.train is None:
            print(f"{name}: cross-encoders alone can be measured; a bi-encoder needs rows to train on, --train")
    print(f"models: {', '.join(options.models)}; nothing was measured (--dry-run)")


def _write(path: str, text: str) -> None:
    with replacing(Path(path)) as file:
        file.write(text.encode("utf-8"))


def _say(options: Options, message: str) -> None:
    if not options.quiet:
        print("munjang:", message, file=sys.stderr)
