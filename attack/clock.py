"""Clock changes: operations on one place a year ahead, a year behind, and now; all is there, and the newest."""

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from attack.kills import expect_right, place_for
from attack.operations import OPERATIONS
from attack.verdict import Verdict
from tests.models import make_model

YEAR_S = 31_536_000
SHIFTS_S = (0, YEAR_S, -YEAR_S, 0)
KINDS = ("ingest", "upsert", "delete", "compact", "export", "save", "encode", "train")
# Stands before libc's functions, so that LanceDB's Rust and Python see the same wrong time
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <sys/time.h>
static long shift(void) { const char *s = getenv("ATTACK_SHIFT_S"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += shift();
    return code;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec; t->tv_usec = now.tv_nsec / 1000; return 0;
}
time_t time(time_t *t) {
    struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""
CHILD = "import pickle, sys; pickle.load(sys.stdin.buffer).work()"


def run(options: argparse.Namespace) -> Verdict:
    """Run each operation at four times; skip by name without a compiler."""
    verdict = Verdict("clock")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        verdict.counts["skipped"] = "no C compiler"
        return verdict
    with tempfile.TemporaryDirectory() as folder:
        shim = Path(folder) / "shim.so"
        (Path(folder) / "shim.c").write_text(SHIM)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, Path(folder) / "shim.c", "-ldl"], check=True)
        models = [make_model("bert", Path(folder) / name, pooling=name) for name in ("mean", "cls")]
        for name in KINDS:
            operation = place_for(OPERATIONS[name], "LanceDB", models)
            for shift_s in SHIFTS_S:
                _work(name, operation, shim, shift_s, verdict)
            expect_right(operation, True, verdict, name)
            verdict.counts[name] = len(SHIFTS_S)
    return verdict


def _work(name: str, operation: object, shim: Path, shift_s: int, verdict: Verdict) -> None:
    environment = os.environ | {"LD_PRELOAD": str(shim), "ATTACK_SHIFT_S": str(shift_s)}
    child = [sys.executable, "-c", CHILD]
    done = subprocess.run(child, input=pickle.dumps(operation), env=environment, capture_output=True, timeout=600)
    verdict.expect(done.returncode == 0, f"{name}, {shift_s} s off: {done.stderr.decode()[-300:]}")
