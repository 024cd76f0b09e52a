"""The command line: `munjang VERB ...`. One file per verb, loaded when it is called.

munjang --help
munjang encode sentences.txt -o vectors.npy --model path/to/model
"""

import io
import os
import re
import sys
import warnings
from importlib import import_module
from typing import Any

from munjang import __version__
from munjang.cli.options import parse
from munjang.errors import MunjangError, unknown

# Verb: the module that does it (a frozen dataclass `Options` and `run(options) -> int`), and what it is for.
VERBS = {
    "encode": ("munjang.cli.encode", "turn the texts of files into vectors; a stopped run is resumed"),
    "similarity": ("munjang.cli.similarity", "score how similar texts are"),
    "search": ("munjang.cli.search", "search files or an index"),
    "index": ("munjang.cli.index", "build an index of documents, change or inspect it"),
    "rerank": ("munjang.cli.rerank", "order documents for a query with a cross-encoder"),
    "negatives": ("munjang.cli.negatives", "find hard negatives for pairs of texts, to train on"),
    "paraphrases": ("munjang.cli.paraphrases", "find the most similar pairs of texts, or translations"),
    "cluster": ("munjang.cli.cluster", "put texts into clusters, each with its keywords"),
    "dedupe": ("munjang.cli.dedupe", "drop texts that repeat others, with the reason"),
    "keywords": ("munjang.cli.keywords", "find the keywords of texts"),
    "topics": ("munjang.cli.topics", "find the topics of texts and draw them as a map"),
    "classify": ("munjang.cli.classify", "label texts, by examples or by descriptions of the labels"),
    "recommend": ("munjang.cli.recommend", "recommend items by what somebody likes, or for a need in words"),
    "evaluate": ("munjang.cli.evaluate", "measure how good models are, side by side"),
    "train": ("munjang.cli.train", "train a model on examples; --resume continues a stopped run"),
    "distill": ("munjang.cli.distill", "train a model on another one's vectors or scores"),
    "adapt": ("munjang.cli.adapt", "adapt a model to the texts of a domain"),
    "info": ("munjang.cli.info", "describe a model"),
    "export": ("munjang.cli.export", "write a model as ONNX, or as a sentence-transformers folder"),
    "bench": ("munjang.cli.bench", "measure how fast this machine is with a model"),
    "serve": ("munjang.cli.serve", "serve vectors, re-ranking and search over HTTP"),
}
USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, what a shell reports
PIPE_CLOSED = 141  # 128 + SIGPIPE


def main(argv: list[str] | None = None) -> int:
    """Run one command; what it returns is the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a text that the terminal can't show is no reason to fail
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run(arguments)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
        return code
    except MunjangError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `munjang ... | head`
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")


def _run(arguments: list[str]) -> int:
    if not arguments:
        print(_help(), file=sys.stderr)
        return USAGE_ERROR
    verb, *rest = arguments
    if verb in ("-h", "--help", "help"):
        print(_help())
        return 0
    if verb in ("-V", "--version"):
        print(f"munjang {__version__}")
        return 0
    if verb not in VERBS:
        raise unknown("command", verb, VERBS)
    name, purpose = VERBS[verb]
    module = import_module(name)
    try:
        options = parse(module.Options, rest, prog=f"munjang {verb}", description=f"{purpose[0].upper()}{purpose[1:]}.")
    except SystemExit as end:  # argparse has printed its help, or what is wrong
        return int(end.code or 0)
    code: int = module.run(options)
    return code


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:{width}}  {purpose}" for verb, (_, purpose) in VERBS.items())
    return (
        "usage: munjang VERB ...\n\nSentence-BERT as one system.\n\n"
        f"verbs:\n{verbs}\n\n`munjang VERB --help` tells the options of a verb; `munjang --version` the version."
    )


def _fail(message: str) -> int:
    """One line; a list of bad rows keeps one for each."""
    print("munjang:", re.sub(r"\n(?!  \S)", " ", message), file=sys.stderr)
    return USAGE_ERROR


def _show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
    """One line without the place in our code, which says nothing to who typed a command."""
    print("munjang: warning:", str(message).replace("\n", " "), file=sys.stderr)


def _drop_output() -> None:
    """What is still buffered can't be written; Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
