"""Check the documents: relative links resolve, commands exist, Python blocks compile, the table of objectives is true.

Run: make docs; `python docs/check.py --write` brings the table up to date.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)
SCRIPT = re.compile(r"\bpython3? ([\w./-]+\.py)")
VERB = re.compile(r"(?:^|`)munjang ([a-z]+)", re.MULTILINE)
TABLE = re.compile(r"(?<=<!-- objectives -->\n\n).*?(?=\n\n<!-- end of objectives -->)", re.DOTALL)
SHOWN = {"labels": "labels", "scores": "scores", "teacher": "a teacher"}  # what data has to bring; the rest is made
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def link_problem(document: Path, link: str) -> str | None:
    """Why a link leads nowhere; None if it does or if it leaves the repository."""
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
    verbs = {path.stem for path in ROOT.glob("munjang/cli/*.py")}  # one file per verb
    found += [f"munjang {verb}: no such command" for verb in VERB.findall(text) if verb not in verbs]
    for number, (language, code) in enumerate(FENCE.findall(text), start=1):
        if language == "python":
            try:
                compile(code, f"block {number}", "exec")
            except SyntaxError as error:
                found.append(f"code block {number}, line {error.lineno}: {error.msg}")
    return found


def objectives_table() -> str:
    """All objectives with what they do, take and can be set to, in Markdown."""
    from munjang.objectives import OBJECTIVES, options_of

    lines = ["| objective | model | what is minimised | data: text columns, and | settings |", "|---|---|---|---|---|"]
    for name, kind in OBJECTIVES.items():
        least, most = kind.num_texts
        count = str(least) if least == most else f"{least} or more"
        takes = ", ".join([count, *(SHOWN[extra] for extra in kind.extras if extra in SHOWN)])
        first = (kind.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")
        own = ", ".join(f"`{option}={each.default}`".replace("|", "\\|") for option, each in options_of(kind).items())
        model = "cross" if kind.needs == "logits" else "bi"
        lines.append(f"| `{name}` | {model} | {first} | {takes} | {own} |")
    return "\n".join(lines)


def table_problems(text: str) -> list[str]:
    """Whether the table of objectives is what the code says."""
    found = TABLE.search(text)
    is_true = found is not None and found[0] == objectives_table()
    return [] if is_true else ["the table of objectives is not what the code says: python docs/check.py --write"]


def main() -> int:
    training = ROOT / "docs/training.md"
    if "--write" in sys.argv:
        training.write_text(
            TABLE.sub(lambda _: objectives_table(), training.read_text(encoding="utf-8")), encoding="utf-8"
        )
    texts = {document: document.read_text(encoding="utf-8") for document in DOCUMENTS}
    found = [f"{path.relative_to(ROOT)}: {problem}" for path, text in texts.items() for problem in problems(path, text)]
    found += [f"docs/training.md: {problem}" for problem in table_problems(texts[training])]
    num_links = sum(len(LINK.findall(text)) for text in texts.values())
    print("\n".join(found) or f"{len(texts)} documents, {num_links} links: fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
