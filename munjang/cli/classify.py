"""munjang classify ACTION ...: label texts, from examples or from descriptions of the labels.

munjang classify train examples.csv -o classifier
munjang classify train examples.csv -o classifier --model path/to/model          columns text and label
munjang classify train examples.csv -o classifier --method few_shot --html held-out.html
munjang classify predict classifier texts.txt -o labels.csv --threshold 0.5       below it: none of these
munjang classify zero-shot texts.txt --label "sport" --label "money=banks, prices and shares"
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from munjang.cli.corpus import RunOptions, check_outputs, say, write_page
from munjang.cli.options import option
from munjang.errors import InputError
from munjang.tasks.classify.config import ClassifyConfig

if TYPE_CHECKING:
    from munjang.types import Doubles


SUMMARY_KO = "예문이나 설명으로 글에 이름표 붙이기"


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions, ClassifyConfig):
    """Options of `munjang classify`."""

    action: Literal["train", "predict", "zero-shot"] = option(
        "train EXAMPLES..., predict CLASSIFIER TEXTS..., or zero-shot TEXTS...", is_positional=True, metavar="ACTION"
    )
    inputs: tuple[str, ...] = option(
        "files: .txt (one text per line) .csv .tsv .jsonl .parquet, also with .gz .xz .bz2; for predict, preceded by "
        "the classifier's folder",
        is_positional=True,
        metavar="INPUT",
    )
    output: str | None = option(
        "train: the classifier's folder; otherwise a table: .tsv .csv .jsonl .parquet (default: print)", None, "-o"
    )
    model: str | None = option("folder or Hub name of the bi-encoder (a classifier remembers its own)", None, "-m")
    column: str | None = option("text column (default: recognized by name)", None)
    label_column: str | None = option(
        "label column (default: recognized by name); predict and zero-shot report their accuracy on it", None
    )
    separator: str | None = option("separator between several labels of one text, such as ';'", None)
    others: tuple[str, ...] = option("train: files of texts that have none of the labels", ())
    with_model: bool = option("train: copy the model into the folder (few_shot always does)", False)
    label: tuple[str, ...] = option("zero-shot: NAME or NAME=DESCRIPTION; repeat for each label", ())
    nli: str | None = option("zero-shot: use this NLI cross-encoder (folder or Hub name) instead of a model", None)
    template: str | None = option("zero-shot: template around a description, such as 'a question about {}'", None)
    temperature: float | None = option("zero-shot: temperature of the cosines; lower is surer (default: 0.05)", None)
    threshold: float | None = option("assign no label below this probability", None)
    none: str = option("text to write where no label applies", "")
    probabilities: bool = option("write the probability of each label too", False)
    html: str | None = option("write a page: confusion matrix and reliability, or the number of texts per label", None)


FITTING_OPTIONS = {each.name for each in fields(ClassifyConfig)}
COMMON_OPTIONS = {"action", "inputs", "output", "column", "label_column", "html", "replace", "quiet"}
COMMON_OPTIONS |= {"device", "dtype", "threads"}
ANSWER_OPTIONS = {"threshold", "none", "probabilities", "separator"}
# options of each action beside the common ones; any other would be ignored silently
ACTION_OPTIONS = {
    "train": FITTING_OPTIONS | {"model", "separator", "others", "with_model"},
    "predict": ANSWER_OPTIONS | {"model"},
    "zero-shot": ANSWER_OPTIONS | {"model", "label", "nli", "template", "temperature"},
}


def run(options: Options) -> int:
    """Check the options before a model is loaded, then run the action."""
    for each in fields(options):
        is_given = getattr(options, each.name) != each.default and each.name != "config"
        if is_given and each.name not in COMMON_OPTIONS | ACTION_OPTIONS[options.action]:
            flag = "--" + each.name.replace("_", "-")
            fitting = " and ".join(action for action, names in ACTION_OPTIONS.items() if each.name in names)
            raise InputError(f"{flag} is for {fitting}, not for {options.action}")
    check_outputs(options, None if options.action == "train" else options.output)
    return ACTIONS[options.action](options)


def _train(options: Options) -> int:
    from munjang.tasks.classify.files import check_place
    from munjang.tasks.classify.reading import read_labelled

    if options.output is None:
        raise InputError("Where to? Give -o FOLDER for the classifier")
    output = Path(options.output)
    check_place(output, options.replace)
    if options.html is not None and Path(options.html) == output:
        raise InputError("Two outputs have the same name; choose another for one of them")
    texts, labels = read_labelled(options.inputs, options.column, options.label_column, options.separator)
    others = _texts(options, options.others) if options.others else None
    from munjang.bi_encoder import BiEncoder
    from munjang.pages.html import say as phrase
    from munjang.tasks.classify.classifier import Classifier
    from munjang.tasks.classify.page import classifier_page

    model = BiEncoder.load(options.model, **_where(options))
    config = ClassifyConfig(**{name: getattr(options, name) for name in FITTING_OPTIONS})
    made = Classifier.fit(texts, labels, model, config, others, not options.quiet)
    made.save(output, options.with_model or None, options.replace)
    if options.html is not None:
        title = phrase("classifier", count=len(made.labels))
        write_page(options.html, classifier_page(title, made.labels, made.report))
    say(options, _summary(made.report))
    say(options, f"the classifier is in {output}")
    return 0


def _predict(options: Options) -> int:
    folder, *inputs = options.inputs
    if not inputs:
        raise InputError("No texts: munjang classify predict CLASSIFIER TEXTS...")
    texts, truth = _read(options, inputs)
    from munjang.bi_encoder import BiEncoder
    from munjang.tasks.classify.classifier import Classifier

    model = None if options.model is None else BiEncoder.load(options.model, **_where(options))
    made = Classifier.load(folder, model, **_where(options))
    return _answer(options, made, texts, truth)


def _zero_shot(options: Options) -> int:
    if not options.label:
        raise InputError("Which labels? Give --label NAME or --label NAME=DESCRIPTION after the files, once for each")
    parts = [each.partition("=") for each in options.label]
    if len({name.strip() for name, _, _ in parts}) < len(parts):
        raise InputError("A label occurs twice; give each once")
    labels = {name.strip(): (words if equals else name).strip() for name, equals, words in parts}
    for given, name in ((options.model, "--model"), (options.temperature, "--temperature")):
        if options.nli is not None and given is not None:
            raise InputError(f"--nli reads text and label together; leave {name} out")
    texts, truth = _read(options, options.inputs)
    made: Any
    if options.nli is not None:
        from munjang.cross_encoder import CrossEncoder
        from munjang.tasks.classify.zero_shot_classifiers import NliClassifier

        scorer = CrossEncoder.load(options.nli, **_where(options))
        made = NliClassifier.of(labels, scorer, options.template)
    else:
        from munjang.bi_encoder import BiEncoder
        from munjang.tasks.classify.zero_shot_classifiers import TEMPERATURE, zero_shot

        model = BiEncoder.load(options.model, **_where(options))
        made = zero_shot(labels, model, options.template or "{}", options.temperature or TEMPERATURE)
    return _answer(options, made, texts, truth)


def _where(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("device", "dtype", "threads")}


def _read(options: Options, inputs: Any) -> tuple[list[str], list[Any] | None]:
    from munjang.data.writing import check_texts
    from munjang.tasks.classify.reading import read_labelled

    if options.threshold is not None and not 0 <= options.threshold <= 1:
        raise InputError(f"--threshold is a probability, 0 to 1, not {options.threshold}")
    if options.label_column is not None:
        texts, truth = read_labelled(inputs, options.column, options.label_column, options.separator)
    else:
        texts, truth = _texts(options, inputs), None
    if options.output is not None:
        check_texts(Path(options.output), texts)
    return texts, truth


def _texts(options: Options, paths: Any) -> list[str]:
    from munjang.data.tables import read_texts

    texts = [text for path in paths for text in read_texts(path, options.column)]
    if not texts:
        raise InputError(f"{', '.join(paths)}: there are no texts")
    return texts


def _answer(options: Options, made: Any, texts: list[str], truth: list[Any] | None) -> int:
    from munjang.pages.html import say as phrase
    from munjang.tasks.classify.classifier import answers
    from munjang.tasks.classify.page import classifier_page
    from munjang.tasks.classify.report import measure, truth_table

    probabilities_NC = made.probabilities(texts, not options.quiet)
    least = made.threshold if options.threshold is None else options.threshold
    found = answers(probabilities_NC, made.labels, least, made.is_multi_label)
    _write(options, made, texts, found, probabilities_NC)
    report: dict[str, Any] = {"rows": len(texts), "threshold": least, "counts": _counts(found)}
    if truth is not None:
        report |= measure(probabilities_NC, truth_table(made.labels, truth), made.is_multi_label, least)
        say(options, _summary(report))
    if options.html is not None:
        write_page(options.html, classifier_page(phrase("classified", count=len(texts)), made.labels, report))
    return 0


def _write(options: Options, made: Any, texts: list[str], found: list[Any], probabilities_NC: "Doubles") -> None:
    from munjang.data.writing import write_table

    between = options.separator or ";"
    shown = [between.join(map(str, each)) if isinstance(each, list) else each for each in found]
    shown = [options.none if each in (None, "") else each for each in shown]
    sure = probabilities_NC.max(1).round(6).tolist()
    if options.output is None:
        for text, label, probability in zip(texts, shown, sure, strict=True):
            print(f"{label or '(none)'}\t{probability:.3f}\t{' '.join(text.split()):.100}")
        return
    table: dict[str, Any] = {"text": texts, "label": shown, "probability": sure}
    if options.probabilities:
        columns = zip(made.labels, probabilities_NC.T, strict=True)
        table |= {f"p({label})": column.round(6).tolist() for label, column in columns}
    write_table(Path(options.output), table)
    say(options, f"{len(texts):,} rows in {options.output}")


def _counts(found: list[Any]) -> dict[str, int]:
    flat = [str(name) for each in found for name in (each if isinstance(each, list) else [each]) if name is not None]
    num_none = sum(each is None or each == [] for each in found)
    return dict(Counter(flat).most_common(30)) | ({"(none)": num_none} if num_none else {})


def _summary(report: Mapping[str, Any]) -> str:
    if report.get("accuracy") is None:
        return "; ".join(report["notes"]) or "nothing was held out"
    # rows that come with labels later may have been trained on; only held-out rows are known to be unseen
    rows = f"{report['held_out']:,} rows that it had not seen" if "held_out" in report else f"{report['rows']:,} rows"
    words = [f"accuracy {report['accuracy']:.3f} on {rows}"]
    if "calibration_error_before" in report:
        before, after = report["calibration_error_before"], report["calibration_error"]
        words.append(f"calibration error {before:.3f} before, {after:.3f} after")
    if report["threshold"] and report.get("answered_accuracy") is not None:
        answered, right = report["answered"], report["answered_accuracy"]
        words.append(f"from {report['threshold']:.3f} on {answered:.0%} answered, {right:.3f} of them right")
    return "; ".join([*words, *report.get("notes", ())])


ACTIONS: dict[str, Callable[[Options], int]] = {"train": _train, "predict": _predict, "zero-shot": _zero_shot}
