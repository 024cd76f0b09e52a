"""Work in a process of its own, which may end in any way."""

import multiprocessing
from collections.abc import Callable
from typing import Any

PROCESSES = multiprocessing.get_context("forkserver")  # it has imported everything before it is asked


def outcome_of(target: Callable[..., None], arguments: tuple[Any, ...], max_s: float) -> str:
    """Call `target(*arguments, send)`; return the text that it sends, or how its process ended without one."""
    receive, send = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*arguments, send))
    process.start()
    send.close()
    try:
        return str(receive.recv()) if receive.poll(max_s) else f"no end after {max_s:g} s"
    except EOFError:
        process.join()
        return f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()
