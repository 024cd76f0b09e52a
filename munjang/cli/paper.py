"""munjang paper MODEL --data FOLDER -o OUT: the Sentence-BERT paper's tables and ablations with your model; resumes.

munjang paper path/to/a/plain/bert --data folder-of-published-files -o paper
munjang paper path/to/a/plain/bert --data FOLDER -o paper --language en --seeds 1 2 3 4 5 --only similarity pooling
munjang paper path/to/a/plain/bert --data FOLDER -o try --quick        minutes, to see that all of it works
"""

import sys
from dataclasses import dataclass, fields
from pathlib import Path

from munjang.cli.options import option
from munjang.paper.config import PaperConfig

SUMMARY_KO = "Sentence-BERT 논문의 표와 절제 실험을 다시 하기"


@dataclass(frozen=True, kw_only=True)
class Options(PaperConfig):
    """Options of `munjang paper`."""

    model: str = option("folder or Hub name of a plain encoder to train", is_positional=True, metavar="MODEL")
    data: str = option(
        "folder of published files, at any depth (KorSTS, KLUE, STSb, SNLI, SentEval...); what is missing is named",
        metavar="FOLDER",
    )
    output: str = option("folder of paper.html, paper.md and paper.json; a stopped run goes on there", short="-o")
    dry_run: bool = option("list what would be trained and measured, and stop", default=False)


def run(options: Options) -> int:
    """Train and measure what is left, and print the tables."""
    from munjang.paper.report import markdown
    from munjang.paper.run import Paper, plan

    config = PaperConfig(**{each.name: getattr(options, each.name) for each in fields(PaperConfig)})
    paper = Paper(options.model, Path(options.data), Path(options.output), config)
    if options.dry_run:
        print("\n".join([*plan(paper), "nothing was trained (--dry-run)"]))
        return 0
    result = paper.run(lambda message: print("munjang:", message, file=sys.stderr))
    print(markdown(result))
    print(f"{options.output}/paper.html, paper.md, paper.json")
    return 0
