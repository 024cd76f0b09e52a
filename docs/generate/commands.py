"""The list of commands: an example of each and its summary, from the command line's own table and modules."""

import re
import shlex
import unicodedata
from importlib import import_module
from pathlib import Path

from docs.generate.part import Stale
from munjang.cli import VERBS
from munjang.cli.options import parse


def example(verb: str) -> str:
    """Return the first example of a verb's docstring, which the verb's own parser has to take."""
    module = import_module(f"munjang.cli.{verb}")
    line = (module.__doc__ or "").partition("\n\n")[2].partition("\n")[0]
    command = re.split(r" {2,}", line)[0].strip()  # a remark may follow it
    if not command.startswith(f"munjang {verb}"):
        raise Stale(f"the docstring of munjang/cli/{verb}.py has no example: begin its second paragraph with one")
    try:
        parse(module.Options, shlex.split(command)[2:], f"munjang {verb}", "")
    except SystemExit:  # argparse has said what is wrong
        raise Stale(f"munjang/cli/{verb}.py: the example `{command}` is not what the command takes") from None
    return command


def summary(verb: str, document: str) -> str:
    """Return what a verb does, in the language of a document."""
    if not document.endswith(".ko.md"):
        return VERBS[verb]
    korean = getattr(import_module(f"munjang.cli.{verb}"), "SUMMARY_KO", None)
    if korean is None:
        raise Stale(f"munjang/cli/{verb}.py has no SUMMARY_KO, the verb's line of docs/reference/commands.ko.md")
    return str(korean)


def listing(root: Path, document: str) -> str:
    """Return one line per verb in the document's language."""
    examples = {verb: example(verb) for verb in VERBS}
    width = max(map(num_cells, examples.values())) + 2
    lines = [f"{text}{' ' * (width - num_cells(text))}# {summary(verb, document)}" for verb, text in examples.items()]
    return "\n".join(["```", *lines, "```"])


def num_cells(text: str) -> int:
    """Return how many columns a text takes: two for a syllable of Hangul."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
