"""The command line: `munjang VERB ...`. One file per verb, imported when it is called.

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

# Verb: its summary. munjang/cli/<verb>.py has a frozen dataclass `Options`, `run(options) -> int` and SUMMARY_KO, and
# its docstring begins with an example; help, documents and tests of a verb follow from these.
VERBS = {
    "encode": "encode files to vectors; resumes interrupted runs",
    "similarity": "score how similar texts are",
    "search": "search files or an index",
    "index": "build, update or inspect an index of documents",
    "rerank": "rank documents for a query with a cross-encoder",
    "negatives": "mine hard negatives for training pairs",
    "paraphrases": "find the most similar pairs of texts, or translations",
    "cluster": "cluster texts and name each cluster by its keywords",
    "dedupe": "drop duplicate texts and report why",
    "keywords": "extract keywords from texts",
    "topics": "find topics in texts and draw them as a map",
    "classify": "label texts, from examples or from descriptions of the labels",
    "recommend": "recommend items from likes or from a need in words",
    "evaluate": "evaluate models and compare them side by side",
    "train": "train a model on examples; --resume continues an interrupted run",
    "paper": "repeat the Sentence-BERT paper's tables and ablations",
    "distill": "train a model on another model's vectors or scores",
    "adapt": "adapt a model to the texts of a domain",
    "info": "describe a model",
    "export": "export a model to ONNX or to a sentence-transformers folder",
    "bench": "measure how fast a model runs on this machine",
    "serve": "serve embeddings, re-ranking and search over HTTP",
    "mcp": "let language models search an index, by the Model Context Protocol",
    "keys": "make, list and revoke the keys of a server's clients",
}
USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, what a shell reports
PIPE_CLOSED = 141  # 128 + SIGPIPE


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # don't fail on text that the terminal can't encode
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
    module, summary = import_module(f"munjang.cli.{verb}"), VERBS[verb]
    try:
        options = parse(module.Options, rest, prog=f"munjang {verb}", description=f"{summary[0].upper()}{summary[1:]}.")
    except SystemExit as end:  # argparse has printed its help, or what is wrong
        return int(end.code or 0)
    code: int = module.run(options)
    return code


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:{width}}  {summary}" for verb, summary in VERBS.items())
    return (
        "usage: munjang VERB ...\n\nSentence-BERT as one system.\n\n"
        f"verbs:\n{verbs}\n\n`munjang VERB --help` lists the options of a verb; `munjang --version` prints the version."
    )


def _fail(message: str) -> int:
    """Print an error on one line; a list of bad rows keeps one line each."""
    print("munjang:", re.sub(r"\n(?!  \S)", " ", message), file=sys.stderr)
    return USAGE_ERROR


def _show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
    """Print a warning on one line, without the file and line of our code."""
    print("munjang: warning:", str(message).replace("\n", " "), file=sys.stderr)


def _drop_output() -> None:
    """Discard buffered output that can't be written; Python would retry at exit and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
