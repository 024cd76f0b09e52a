"""Schema: schemathesis reads /openapi.json, makes up requests for every route and holds each answer against it.

It lives in a venv of its own (`make schemathesis`), as it clashes with what we pin.
"""

import argparse
import re
import subprocess
from pathlib import Path

from attack.serving import served
from attack.verdict import Verdict
from munjang import checkpoint

COMMAND = Path(".venv-schemathesis/bin/schemathesis")
CONFIG = Path(__file__).with_name("schemathesis.toml")
NUM_EXAMPLES = 100  # of each route, at scale 1
MAX_S = 3600


def run(options: argparse.Namespace) -> Verdict:
    """Run all checks against one server; skip by name where it isn't installed."""
    verdict = Verdict("schema")
    if not COMMAND.exists():
        verdict.counts["skipped"] = "schemathesis is not installed; run make schemathesis"
        return verdict
    number = max(5, round(NUM_EXAMPLES * options.scale))
    with served(options, "--reranker", checkpoint.default("cross")) as server:
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        command = [
            str(COMMAND),
            "--config-file",
            str(CONFIG),
            "run",
            url,
            "--checks",
            "all",
            "--max-examples",
            str(number),
            "--seed",
            str(options.seed),
        ]
        done = subprocess.run([*command, "--no-color"], capture_output=True, text=True, timeout=MAX_S)
        verdict.expect(server.process.poll() is None, "the server ended")
    failures = re.findall(r"^- (.+)$", done.stdout, re.MULTILINE)
    verdict.counts |= {"examples of each route": number, "summary": done.stdout.strip().splitlines()[-1:]}
    verdict.counts["test cases"] = re.findall(r"(\d[\d,]*) generated", done.stdout)
    for failure in sorted(set(failures)):
        verdict.expect(False, f"{failure} ({failures.count(failure)} times)")
    verdict.expect(done.returncode == 0, f"schemathesis ended with {done.returncode}: {done.stdout[-1500:]}")
    return verdict
