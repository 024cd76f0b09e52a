"""Figures within sentences: counts of tables, sizes of files, scores."""

from pathlib import Path

from docs.generate import gpu
from docs.generate.part import Fact
from docs.generate.scores import headline
from munjang.cli import VERBS
from munjang.evaluation.kinds import KINDS
from munjang.objectives import OBJECTIVES


def folder_bytes(root: Path, name: str = "") -> int:
    """Return the size of one bundled model, or of all."""
    return sum(path.stat().st_size for path in (root / "munjang/models" / name).rglob("*") if path.is_file())


def demo_passages(root: Path) -> tuple[str, ...]:
    """Return how many rows the corpus of the demo has."""
    lines = (root / "examples/demo/corpus.tsv").read_text(encoding="utf-8").splitlines()
    return (str(len(lines) - 1),)


FACTS = (
    Fact(
        "number of objectives",
        {
            "docs/features.md": r"\*\*Training\*\*: (\d+) objectives",
            "docs/features.ko.md": r"(\d+)가지 목적 함수",
            "CHANGELOG.md": r"`munjang train`: (\d+) objectives",
        },
        lambda root: (str(len(OBJECTIVES)),),
    ),
    Fact(
        "number of kinds of evaluation",
        {
            "docs/features.md": r"\*\*Evaluation\*\* of (\d+) kinds",
            "docs/features.ko.md": r"\*\*평가\*\*: (\d+)가지 과제",
            "CHANGELOG.md": r"`munjang evaluate`: (\d+) kinds",
        },
        lambda root: (str(len(KINDS)),),
    ),
    Fact(
        "number of commands",
        {"docs/reference/commands.md": r"The (\d+) commands", "docs/reference/commands.ko.md": r"명령은 (\d+)가지"},
        lambda root: (str(len(VERBS)),),
    ),
    Fact(
        "passages of the demo",
        {"README.ko.md": r"짧은 글 (\d+)개", "CHANGELOG.md": r"corpus of (\d+) passages"},
        demo_passages,
    ),
    Fact(
        "speed on a GPU",
        {
            "README.md": r"encodes ([\d,]+) sentences a second .*?: (\d+) times .*?Training is ([\d.]+) times",
            "README.ko.md": r"초당 ([\d,]+)문장.*?설정보다 (\d+)배.*?학습은 ([\d.]+)배",
            "CHANGELOG.md": r"H200 ([\d,]+) sentences a second .*?, (\d+) times (?s:.*?)H200 ([\d.]+) times",
        },
        gpu.headline,
    ),
    Fact(
        "scores of the bundled encoder",
        {
            "docs/features.md": r"STSb test: ([\d.]+) and ([\d.]+); multilingual-e5-small, .*?, ([\d.]+) and ([\d.]+)",
            "docs/features.ko.md": r"스피어만 상관 × 100: ([\d.]+), ([\d.]+); .*?붙여 ([\d.]+), ([\d.]+)\)",
        },
        headline,
    ),
    Fact(
        "scores of multilingual-e5-small with its prompts",
        {"docs/models.md": r"KorSTS test ([\d.]+), STSb test ([\d.]+), KorQuAD nDCG"},
        lambda root: headline(root)[2:],
    ),
    Fact(
        "size of the bundled models",
        {
            "README.md": r"(\d+) MB together",
            "docs/features.md": r"(\d+) MB together",
            "docs/features.ko.md": r"합쳐 (\d+)MB",
        },
        lambda root: (f"{folder_bytes(root) / 1e6:.0f}",),
    ),
    Fact(
        "bytes of the bundled models",
        {"docs/models.md": r"\| all, with card and notice \| ([\d,]+) \| ([\d,]+) \|\n\n([\d.]+) MB together"},
        lambda root: (
            f"{folder_bytes(root, 'ko-en-small'):,}",
            f"{folder_bytes(root, 'ko-en-reranker'):,}",
            f"{folder_bytes(root) / 1e6:.1f}",
        ),
    ),
)
