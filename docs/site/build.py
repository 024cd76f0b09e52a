"""Build the documentation site: python -m docs.site.build writes .site/VERSION/; warnings and broken links are errors.

.site/index.html leads to the newest version that was built here, .site/versions.json lists them.
"""

import json
import os
import subprocess
import sys

from docs.site.links import problems
from docs.site.prepare import ROOT, prepare
from munjang import __version__

SITE = ROOT / ".site"
ENTRANCE = '<!doctype html><meta charset="utf-8"><title>Munjang</title><meta http-equiv="refresh" content="0; url={}">'


def main() -> int:
    """Prepare, build, check; return 1 if something is wrong."""
    folder = SITE / __version__
    prepare(SITE / "source")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "--site-dir", str(folder)]
    # Material prints an announcement that would look like a warning of ours
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "MUNJANG_FOOTER": f"Munjang {__version__}"}
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        return 1
    (folder / "404.html").unlink()  # for a server at the top of an address; ours may lie anywhere
    found = problems(folder)
    if found:
        print("\n".join(found))
        return 1
    versions = sorted((path.name for path in SITE.iterdir() if (path / "index.html").is_file()), key=numbers)
    (SITE / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    (SITE / "index.html").write_text(ENTRANCE.format(f"{versions[-1]}/index.html"), encoding="utf-8")
    print(f"{folder.relative_to(ROOT)}: {len(list(folder.rglob('*.html')))} pages, every link works")
    return 0


def numbers(version: str) -> list[int]:
    """Return what versions are ordered by.

    >>> numbers("0.10.0") > numbers("0.9.1")
    True
    """
    return [int(part) if part.isdigit() else 0 for part in version.split(".")]


if __name__ == "__main__":
    sys.exit(main())
