"""Run the steps of a Dockerfile where there is no docker: each stage in a folder of Debian, by chroot, as root.

python -m tests.deploy.clean_root [--bind /etc/pip.conf ...] deploy/Dockerfile WORK [-- serve ...]

WORK/base is Debian as debootstrap makes it (made here if it is missing). What the image would start is started as its
user, with the folder of the image mounted read-only but for the volume and /tmp. Prints the image's size and the
command's process id.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
SLIM = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale")


@dataclass
class Stage:
    """What the instructions of a stage have set so far."""

    root: Path
    name: str = ""
    folder: str = "/"
    variables: dict[str, str] = field(default_factory=dict)
    user: str = "root"
    command: list[str] = field(default_factory=list)
    lent: list[Path] = field(default_factory=list)


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, their lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for line in joined.splitlines() if line.strip() for name, _, rest in [line.partition(" ")]]


def inside(stage: Stage, command: Sequence[str], user: str = "root") -> list[str]:
    """Return the command line that runs a command in a stage."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", **stage.variables}
    settings = [f"{name}={value}" for name, value in environment.items()]
    who = [] if user == "root" else [f"--userspec={user}:{user}"]
    run = ["env", "-i", *settings, "sh", "-c", f'cd {stage.folder} && exec "$@"', "sh", *command]
    return ["chroot", *who, str(stage.root), *run]


def build(path: Path, work: Path, arguments: dict[str, str], binds: Sequence[str]) -> Stage:
    """Run every stage; return the last one."""
    stages: dict[str, Stage] = {}
    stage = Stage(work)
    for name, rest in instructions(path):
        words = shlex.split(rest, posix=True) if name not in ("RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK") else []
        if name == "FROM":
            called = words[2] if len(words) == 3 else "image"
            stage = stages[called] = Stage(work / called, called)
            subprocess.run(["cp", "-a", "--reflink=auto", str(work / "base"), str(stage.root)], check=True)
            for place in ["/etc/resolv.conf", *binds]:
                _lend(Path(place), stage)
        elif name == "ARG":
            key, _, value = rest.partition("=")
            stage.variables[key] = arguments.get(key, value)
        elif name == "ENV":
            stage.variables |= {
                key: value.replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
                for key, _, value in (word.partition("=") for word in words)
            }
        elif name == "WORKDIR":
            stage.folder = rest
            (stage.root / rest[1:]).mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            source = stages[words.pop(0).partition("=")[2]].root if words[0].startswith("--from") else ROOT
            _copy_all(source, words, stage)
        elif name == "RUN":
            subprocess.run(inside(stage, ["sh", "-ec", rest]), check=True)
        elif name == "USER":
            stage.user = rest
        elif name in ("ENTRYPOINT", "CMD"):
            stage.command += json.loads(rest)
        print(f"{name} {rest[:100]}", file=sys.stderr, flush=True)
    for target in [target for each in stages.values() for target in each.lent]:
        subprocess.run(["umount", str(target)], check=True)
    return stage


def _copy_all(source: Path, words: list[str], stage: Stage) -> None:
    *given, target = words
    place = stage.root / (target if target.startswith("/") else f"{stage.folder}/{target}").lstrip("/")
    for each in given:
        found = source / each.lstrip("/")
        if found.is_dir():
            skip = shutil.ignore_patterns("__pycache__")
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=None if source != ROOT else skip)
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, place / found.name)


def _lend(place: Path, stage: Stage) -> None:
    """Give a stage what this machine's network needs: how names are found, where pip looks."""
    target = stage.root / str(place)[1:]
    target.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        target.mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", str(place), str(target)], check=True)
        stage.lent.append(target)
        # Read-only: ca-certificates, for one, writes /etc/ssl/certs anew, and would write this machine's
        subprocess.run(["mount", "-o", "remount,bind,ro", str(target)], check=True)
    else:
        shutil.copy2(place, target)


def start(stage: Stage, arguments: Sequence[str], variables: dict[str, str]) -> subprocess.Popen[str]:
    """Start what the image starts: its user, everything read-only but /data and /tmp."""
    stage.variables |= variables
    root, data = stage.root, stage.root.parent / "data"
    data.mkdir(exist_ok=True)
    os.chown(data, int(stage.user), int(stage.user))
    whole = [*stage.command[:1], *(arguments or stage.command[1:])]
    run = shlex.join(inside(stage, whole, stage.user))
    mounts = [
        f"mount --bind {root} {root}",
        f"mount -o remount,bind,ro {root}",
        f"mount -t tmpfs tmpfs {root}/tmp",
        f"mount --bind {data} {root}/data",
        f"mount --bind /dev {root}/dev",
        f"mount -t proc proc {root}/proc",
    ]
    script = " && ".join([*mounts, f"exec {run}"])
    return subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec", script], text=True)


def main() -> int:
    """Build, say how large the image is, start it and wait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--bind", action="append", default=[])
    parser.add_argument("--build-arg", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    if not (given.work / "base").exists():
        command = ["debootstrap", "--variant=minbase", SUITE, str(given.work / "base")]
        subprocess.run(command, check=True, stdout=sys.stderr)
        for place in SLIM:  # what the slim image of Debian leaves out
            shutil.rmtree(given.work / "base" / place, ignore_errors=True)
    arguments = dict(each.split("=", 1) for each in given.build_arg)
    stage = build(given.dockerfile, given.work, arguments, given.bind)
    size = subprocess.run(["du", "-sm", str(stage.root)], capture_output=True, text=True, check=True).stdout.split()[0]
    print(f"image: {size} MB", flush=True)
    process = start(stage, given.command, dict(each.split("=", 1) for each in given.env))
    print(f"started: process {process.pid}", flush=True)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
