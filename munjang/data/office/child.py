"""The child process that reads office files: `python -m munjang.data.office.child MAX_MEMORY_MB`.

It gets a path per line and answers each with a line of JSON: the parts as [text, page, heading], or an error.
"""

import json
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import TextIO

from munjang.data.office import FORMATS
from munjang.errors import MunjangError


def limit_memory(max_memory_mb: int) -> None:
    """Let allocations fail above so many megabytes, and write no core files."""
    try:
        import resource
    except ImportError:  # Windows has no such limits; that of time holds
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "darwin":  # which ignores or refuses it
        resource.setrlimit(resource.RLIMIT_AS, (max_memory_mb << 20, max_memory_mb << 20))


def answer(path: str) -> dict[str, object]:
    """Read one file; whatever goes wrong is the answer."""
    try:
        module = import_module(f"munjang.data.office.{FORMATS[Path(path).suffix.lower()]}")
        return {"parts": [[part.text, part.page, part.heading] for part in module.read(path)]}
    except MunjangError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "it needs more memory than is allowed"}
    except OSError as error:
        return {"error": error.strerror or str(error)}
    except Exception as error:  # a parser met something that it did not expect
        return {"error": f"it is damaged ({type(error).__name__}: {error})"[:300]}


def serve(questions: TextIO, answers: TextIO) -> None:
    """Answer until the input ends."""
    for line in questions:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # a library that prints must not answer in our place
    warnings.simplefilter("ignore")
    limit_memory(int(sys.argv[1]))
    serve(sys.stdin, answers)
