"""The model card: README.md in the folder of a trained model, as the Hub and people read it."""

import json
import platform
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import metadata
from pathlib import Path, PurePath

from munjang import __version__
from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.data.files import replacing
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.pages.html import clean, number
from munjang.sparse_encoder import SparseEncoder
from munjang.training.config import TrainConfig, deciding
from munjang.training.datasets import PreparedDataset
from munjang.training.report import best_of, evaluations, plain
from munjang.training.run import Run
from munjang.training.trainee import Holder

MARKER = "<!-- written by munjang train -->"
NUM_EXAMPLE_ROWS, MAX_CHARACTERS = 3, 100  # of the examples that are shown
PACKAGES = ("torch", "numpy", "tokenizers", "safetensors")
# what Markdown would take for its own, as entities
MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "\\`*[]|~$!#@"}
EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word an underscore is one
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
MODULE = re.compile(r"\d+_\w+")  # 0_Transformer inside the folder of a model
TITLES = {
    "architecture": "Architecture",
    "layers": "Layers",
    "parameters": "Parameters",
    "dimension": "Dimensions of a vector",
    "labels": "Labels",
    "max_length": "Longest input in tokens",
    "pooling": "Pooling",
    "similarity": "Similarity",
    "activation": "Activation",
    "prompts": "Prompts",
}
PAIR = """[
    ("How fast is light?", "Light travels 300,000 km in a second."),
    ("How fast is light?", "A feather is light."),
]"""


def write_card(
    output: Path, holder: Holder, datasets: Sequence[PreparedDataset], run: Run, config: TrainConfig
) -> None:
    """Write README.md, or MODEL_CARD.md where the README is someone else's. A card that fails is a warning only."""
    try:
        free = [path for path in (output / "README.md", output / "MODEL_CARD.md") if _is_ours(path)]
        if not free:
            warnings.warn(f"No model card: README.md and MODEL_CARD.md in {output} are kept.", stacklevel=2)
            return
        with replacing(free[0]) as file:
            file.write("\n".join(_card(output, holder, datasets, run, config)).encode("utf-8", "replace"))
    except Exception as error:  # the model is trained and saved: nothing about its card may end the run
        warnings.warn(f"The model card in {output} can't be written: {error}", RuntimeWarning, stacklevel=2)


def _is_ours(path: Path) -> bool:
    try:
        return MARKER.encode() in path.read_bytes()
    except FileNotFoundError:
        return True


def _card(
    output: Path, holder: Holder, datasets: Sequence[PreparedDataset], run: Run, config: TrainConfig
) -> Iterator[str]:
    yield from _front(output, holder)
    yield from (MARKER, "", f"# {shown(output.name)}", "", _what(holder), "")
    yield from _table(["", ""], _facts(holder))
    yield from ("", "## Usage", "", "With Munjang:", "", "```python", _munjang(output, holder), "```", "")
    yield from ("With sentence-transformers:", "", "```python", _sentence_transformers(output, holder), "```", "")
    yield from ("## Scores", "", *_scores(run), "")
    yield from ("## Training data", "")
    for dataset in datasets:
        yield from _data(dataset)
    yield from ("## Training settings", "", *_settings(config), "")
    yield from ("## Software", "", ", ".join(_versions()), "")


def shown(text: object, max_characters: int = MAX_CHARACTERS) -> str:
    """Escape a text as one line of Markdown, shortened.

    >>> shown("a|b *c*")
    'a&#124;b &#42;c&#42;'
    """
    words = clean(" ".join(str(text)[: 10 * max_characters].split()))
    words = words if len(words) <= max_characters else words[: max_characters - 1].rstrip() + "…"
    return EMPHASIS.sub("&#95;", escape(words, quote=False).translate(MARKS).replace("://", "&#58;//"))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; its cells are Markdown already."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _front(output: Path, holder: Holder) -> Iterator[str]:
    """Yield the front matter that the Hub reads."""
    if isinstance(holder, BiEncoder):
        task, tags = "sentence-similarity", ["sentence-similarity", "feature-extraction"]
    elif isinstance(holder, MultiVectorEncoder):
        task, tags = "sentence-similarity", ["multi-vector", "late-interaction", "feature-extraction"]
    elif isinstance(holder, SparseEncoder):
        task, tags = "feature-extraction", ["sparse-encoder", "sparse"]
    else:
        task = "text-ranking" if holder.num_labels == 1 else "text-classification"
        tags = ["cross-encoder", task]
    base = _base(output, holder)
    yield from ("---", "library_name: sentence-transformers", f"pipeline_tag: {task}")
    if base is not None:
        yield f"base_model: {json.dumps(base)}"  # quoted: a folder may be called 1.0 or null
    yield from ("tags:", *(f"- {tag}" for tag in ("sentence-transformers", *tags, "munjang")), "---", "")


def _base(output: Path, holder: Holder) -> str | None:
    """Return the base model's name on the Hub if it came from there, else its folder's."""
    folder = holder.model.folder.absolute()
    folder = folder.parent if MODULE.fullmatch(folder.name) else folder
    cached = [part for part in folder.parts if part.startswith("models--")]  # models--owner--name/snapshots/hash
    name = cached[-1].removeprefix("models--").replace("--", "/", 1) if cached else folder.name
    return name if REPOSITORY.fullmatch(name) and folder != output.absolute() else None


def _what(holder: Holder) -> str:
    if isinstance(holder, BiEncoder):
        return (
            f"A bi-encoder (BiEncoder, SentenceTransformer): it turns texts into vectors of {holder.dimension} "
            "dimensions that are close where the texts mean the same."
        )
    if isinstance(holder, MultiVectorEncoder):
        return (
            "A late-interaction model (MultiVectorEncoder): it turns a text into a vector of "
            f"{holder.dimension} dimensions for each token; a query's tokens look for their best match in a document."
        )
    if isinstance(holder, SparseEncoder):
        return f"A sparse encoder (SparseEncoder): it turns texts into sparse vectors of {holder.dimension} dimensions."
    if holder.num_labels == 1:
        return "A cross-encoder (CrossEncoder): it reads two texts together and gives one score, higher is better."
    return (
        f"A cross-encoder (CrossEncoder): it reads two texts together and gives a score for {holder.num_labels} labels."
    )


def _facts(holder: Holder) -> Iterator[tuple[str, str]]:
    info = holder.info()
    for name, title in TITLES.items():
        value = info.get(name)
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in value.items() if text)
        if value is None or value == "":
            continue
        yield title, shown(", ".join(map(str, value)) if isinstance(value, list) else number(value), 500)


def _munjang(output: Path, holder: Holder) -> str:
    name = json.dumps(clean(output.name), ensure_ascii=False)
    if isinstance(holder, CrossEncoder):
        return (
            f"from munjang import CrossEncoder\n\nmodel = CrossEncoder.load({name})  # its folder, or its Hub name\n"
            + _pairs(holder)
        )
    kind = type(holder).__name__
    start = f"from munjang import {kind}\n\nmodel = {kind}.load({name})  # its folder, or its Hub name\n"
    return start + _vectors(holder)


def _sentence_transformers(output: Path, holder: Holder) -> str:
    kind = "SentenceTransformer" if isinstance(holder, BiEncoder) else type(holder).__name__
    name = json.dumps(clean(output.name), ensure_ascii=False)
    code = _pairs(holder) if isinstance(holder, CrossEncoder) else _vectors(holder)
    return f"from sentence_transformers import {kind}\n\nmodel = {kind}({name})\n{code}"


def _vectors(holder: BiEncoder | MultiVectorEncoder | SparseEncoder) -> str:
    """Return the code that is the same for both libraries."""
    if holder.prompts.get("query") or not isinstance(holder, BiEncoder):
        return (
            'queries = model.encode_query(["How fast is light?"])\n'
            'documents = model.encode_document(["Light travels 300,000 km in a second.", "A feather is light."])\n'
            "print(model.similarity(queries, documents))  # one row a query, one column a document"
        )
    return (
        'vectors = model.encode(["A man is eating.", "Someone has a meal.", "It will rain tomorrow."])\n'
        f"print(vectors.shape)  # (3, {holder.dimension})\n"
        "print(model.similarity(vectors, vectors))"
    )


def _pairs(holder: CrossEncoder) -> str:
    if holder.num_labels > 1:
        return f"pairs = {PAIR}\nprint(model.predict(pairs).shape)  # (2, {holder.num_labels}), one column a label"
    documents = '["Light travels 300,000 km in a second.", "A feather is light."]'
    return f'pairs = {PAIR}\nprint(model.predict(pairs))\nprint(model.rank("How fast is light?", {documents}))'


def _scores(run: Run) -> Iterator[str]:
    best = best_of(evaluations(run.read_log()))
    if best is None:
        yield "None: no evaluation was made during this run. These are the weights of its last update."
        return
    step, found = best
    name = shown(name_of(found.get("name", "")))
    yield f"Of the weights that were kept, those of update {step:,}, the best on {name}."
    yield ""
    rows = []
    for name, report in found.get("on", {}).items():
        for metric, value in report["metrics"].items():
            mark = "**" if metric == report["main"] else ""
            rows.append([shown(name_of(name)), f"{mark}{shown(metric)}{mark}", f"{mark}{shown(number(value))}{mark}"])
    yield from _table(["Dataset", "Metric", "Score"], rows)


def name_of(path: str) -> str:
    """Return a dataset's name without the folders of the machine it was on."""
    return PurePath(path).name if PurePath(path).is_absolute() else path


def _data(dataset: PreparedDataset) -> Iterator[str]:
    examples = dataset.batches.examples
    yield from (f"### {shown(name_of(dataset.name))}", "")
    yield f"- {dataset.num_rows:,} rows, hash `{dataset.fingerprint}`"
    objective, sampler = shown(dataset.objective_name), shown(dataset.sampler_name)
    yield f"- objective {objective}, batches of {dataset.batch_size:,}, sampler {sampler}"
    if examples.labels is not None and examples.label_names:
        yield f"- labels: {', '.join(f'{at} {shown(name)}' for at, name in enumerate(examples.label_names[:20]))}"
    prompts = dataset.settings.get("prompts", ())
    if any(prompts):
        yield f"- prompts: {', '.join(shown(json.dumps(text, ensure_ascii=False)) for text in prompts)}"
    yield from (f"- {shown(note, 300)}" for note in examples.notes)
    yield from ("", "The first rows:", "")
    names = examples.columns or tuple(f"text {place}" for place in range(1, len(examples.texts) + 1))
    heads = [*names, *(["label"] if examples.labels is not None else [])]
    heads += ["score"] if examples.scores is not None else []
    yield from _table(
        [shown(head) for head in heads], (_row(examples, row) for row in range(min(NUM_EXAMPLE_ROWS, len(examples))))
    )
    yield ""


def _row(examples: Examples, row: int) -> list[str]:
    cells = [shown(column[row]) for column in examples.texts]
    if examples.labels is not None:
        label = int(examples.labels[row])
        cells.append(shown(examples.label_names[label] if label < len(examples.label_names) else label))
    if examples.scores is not None:
        values = examples.scores[row].reshape(-1).tolist()
        cells.append(shown(", ".join(map(number, values))))
    return cells


def _settings(config: TrainConfig) -> Iterator[str]:
    given, default = deciding(config), deciding(TrainConfig())
    rows = []
    for name, value in given.items():
        if value != default[name]:
            value = (
                [name_of(each) if isinstance(each, str) else each for each in value]
                if isinstance(value, list)
                else value
            )
            rows.append([f"`{name}`", shown(plain(value), 500), shown(plain(default[name]))])
    if rows:
        yield from _table(["Setting", "Value", "Default"], rows)
    else:
        yield "All settings have their defaults."


def _versions() -> Iterator[str]:
    yield f"Python {platform.python_version()}"
    yield f"munjang {__version__}"
    for package in PACKAGES:
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:  # unpacked by hand
            continue
