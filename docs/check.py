"""Check the documents: links resolve, commands exist, Python blocks compile, generated parts are up to date.

Run: make docs; `make docs FIX=1` (python -m docs.check --fix) writes the generated parts (generate/) first.
"""

import re
import sys
from pathlib import Path

from docs.generate import stale, write
from munjang.cli import VERBS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)
SCRIPT = re.compile(r"\bpython3? ([\w./-]+\.py)")
VERB = re.compile(r"(?:^|`)munjang ([a-z]+)", re.MULTILINE)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def link_problem(document: Path, link: str) -> str | None:
    """Return why a link is broken; None if it works or leaves the repository."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.exists():
        return f"link to {link}: no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
        return f"link to {link}: no such heading"
    return None


def problems(document: Path, text: str) -> list[str]:
    found = [problem for link in LINK.findall(FENCE.sub("", text)) if (problem := link_problem(document, link))]
    found += [f"make {target}: no such target" for target in MAKE.findall(text) if target not in TARGETS]
    found += [f"python {script}: no such file" for script in SCRIPT.findall(text) if not (ROOT / script).exists()]
    found += [f"munjang {verb}: no such command" for verb in VERB.findall(text) if verb not in VERBS]
    for number, (language, code) in enumerate(FENCE.findall(text), start=1):
        if language == "python":
            try:
                compile(code, f"block {number}", "exec")
            except SyntaxError as error:
                found.append(f"code block {number}, line {error.lineno}: {error.msg}")
    return found


def main() -> int:
    if "--fix" in sys.argv:
        print("\n".join(f"{document}: brought up to date" for document in write(ROOT)) or "Nothing to write")
    texts = {document: document.read_text(encoding="utf-8") for document in DOCUMENTS}
    found = [f"{path.relative_to(ROOT)}: {problem}" for path, text in texts.items() for problem in problems(path, text)]
    found += stale(ROOT)
    num_links = sum(len(LINK.findall(text)) for text in texts.values())
    print("\n".join(found) or f"{len(texts)} documents, {num_links} links: fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
