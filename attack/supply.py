"""The supply chain: hashes of every file that pip may install, and licences of what is installed.

    python -m attack.supply licences
    python -m attack.supply audit PIP-AUDIT
    python -m attack.supply hashes        asks the package index that pip uses, and writes hashes.txt

`pip install --require-hashes --no-deps -r hashes.txt` then installs these files alone. torch is pinned, not hashed: the
builds for CPU, CUDA and macOS come from different places.
"""

import json
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distributions
from pathlib import Path

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
CONSTRAINTS, HASHES = ROOT / "constraints.txt", ROOT / "hashes.txt"
UNHASHED = ("torch",)
JSON = "application/vnd.pypi.simple.v1+json"
FILE = re.compile(r'href="[^"]*?([^"/#]+)#sha256=([0-9a-f]{64})"')
HEAD = """# The SHA-256 of every file of the pinned versions: make hashes. Only these are installed by
#   pip install --require-hashes --no-deps -r hashes.txt
"""


def pinned() -> list[tuple[str, str]]:
    """Return name and version of each line of constraints.txt."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return [(name, version) for line in lines if "==" in line for name, version in [line.split("==")]]


def index_url() -> str:
    """Return the address of the package index that pip is configured for."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return found or str(PyPI.simple_url)


def hashes_of(name: str, version: str, index: str) -> list[str]:
    """Return the hashes of a version's files, as the index states them."""
    page = f"{index.rstrip('/')}/{canonical(name)}/"
    with urllib.request.urlopen(urllib.request.Request(page, headers={"Accept": f"{JSON}, text/html;q=0.5"})) as answer:
        content, kind = answer.read().decode(), answer.headers.get_content_type()
    if kind.endswith("json"):
        files = [(file["filename"], file["hashes"].get("sha256")) for file in json.loads(content)["files"]]
    else:
        files = FILE.findall(content)
    return sorted({digest for file, digest in files if digest and is_of(file, name, version)})


def is_of(file: str, name: str, version: str) -> bool:
    """Tell whether a file is a wheel or source of this version.

    >>> is_of("PyYAML-6.0.3.tar.gz", "pyyaml", "6.0.3"), is_of("pyyaml_ft-6.0.3.tar.gz", "pyyaml", "6.0.3")
    (True, False)
    """
    start = re.sub(r"\.(tar\.gz|zip|tar\.bz2)$", "", file)
    if file.endswith(".whl"):
        found_name, found_version = file.split("-")[:2]
    else:
        found_name, _, found_version = start.rpartition("-")
    return canonical(found_name) == canonical(name) and found_version == version


def canonical(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_hashes() -> int:
    """Write hashes.txt; return how many versions have no file."""
    index, wanted = index_url(), [pair for pair in pinned() if pair[0] not in UNHASHED]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pair: hashes_of(*pair, index), wanted))
    blocks, missing = [], []
    for (name, version), digests in zip(wanted, found, strict=True):
        if not digests:
            missing.append(f"{name}=={version}")
            continue
        lines = "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests)
        blocks.append(f"{name}=={version}{lines}\n")
    HASHES.write_text(HEAD + "".join(blocks), encoding="utf-8")
    print(f"{len(blocks)} versions with {sum(map(len, found))} hashes; without: {', '.join(missing) or 'none'}")
    return len(missing)


def licence(package: Distribution) -> str:
    """Return a package's licence in its own words, shortened."""
    fields = package.metadata
    classifiers = [
        each.rpartition(" :: ")[2] for each in fields.get_all("Classifier", []) if each.startswith("License")
    ]
    stated = fields.get("License-Expression") or ", ".join(classifiers) or fields.get("License") or "not stated"
    return stated.strip().splitlines()[0][:60]


def licences() -> list[tuple[str, str, str]]:
    """Return name, version and licence of every installed package."""
    return sorted((each.name, each.version, licence(each)) for each in distributions() if each.name != "munjang")


def audit(command: str) -> int:
    """Look up what is pinned in a database of known weaknesses; return how many there are. Without one, say so."""
    given = [command, "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    done = subprocess.run([*given, "--format", "json"], capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        packages = []
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        print("No database of weaknesses can be reached from here; nothing was looked up.")
    weak = [(package["name"], package["version"], each["id"]) for package in known for each in package["vulns"]]
    for name, version, weakness in weak:
        print(f"{name} {version}: {weakness}")
    if known:
        print(f"{len(known)} packages looked up, {len(weak)} weaknesses known")
    return len(weak)


def main(what: str, *given: str) -> int:
    """List licences, write hashes or look up weaknesses."""
    if what == "hashes":
        return write_hashes()
    if what == "audit":
        return min(audit(*given), 1)
    for name, version, stated in licences():
        print(f"{name:<36} {version:<18} {stated}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
