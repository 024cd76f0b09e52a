"""Collect the texts that the static sibling of ko-en-small is made from; then distill and measure it.

    python -u -m recipes.ko_en_static DATA texts.txt [--count 100000]
    munjang distill ko-en-small texts.txt --static --max-length 64 -o static       ten minutes of two cores
    munjang evaluate static ko-en-small --data DATA/sts/korsts-test.tsv DATA/sts/stsb-test.tsv

Texts that stand in a set on which a score is reported are left out.
"""

import argparse
from pathlib import Path

import numpy as np

from munjang.data.files import replacing
from munjang.data.reading import folded
from munjang.data.tables import read_texts
from recipes.ko_en_small.data import everyday, file, read_table, reported

MAX_CHARACTERS = 400
# Weights in the mixture: everyday sentences of both languages most, documentation and reviews less
WEIGHTS = {"english": 0.25, "reviews": 0.2, "general ko": 0.2, "general en": 0.1, "docs ko": 0.15, "docs en": 0.1}


def texts(data: Path, out: Path, count: int, seed: int = 1) -> None:
    """Write `count` distinct texts, in random order."""
    avoid = {folded(text) for examples in reported(data) for column in examples.texts for text in column}
    random = np.random.default_rng(seed)
    found: list[str] = []
    for name, lines in _sources(data).items():
        new = [line for line in dict.fromkeys(" ".join(line.split()) for line in lines) if _is_good(line, avoid)]
        taken = random.permutation(len(new))[: round(WEIGHTS[name] * count)]
        found += [new[row] for row in taken]
        print(f"{name}: {len(taken):,} of {len(new):,}", flush=True)
    found = list(dict.fromkeys(found))
    with replacing(out) as target:
        target.write("".join(f"{found[row]}\n" for row in random.permutation(len(found))).encode())
    print(f"{len(found):,} texts in {out}")


def _sources(data: Path) -> dict[str, list[str]]:
    english, korean = everyday(data)
    docs = read_table(file(data, "parallel/en-ko-docs"), ("en", "ko"))
    return {
        "english": list(read_texts(data / "text/en-sentences.txt.xz")),
        "reviews": list(read_texts(data / "text/ko-reviews.txt.xz")),
        "general ko": korean,
        "general en": english,
        "docs ko": docs["ko"],
        "docs en": docs["en"],
    }


def _is_good(text: str, avoid: set[str]) -> bool:
    return 0 < len(text) <= MAX_CHARACTERS and folded(text) not in avoid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=100_000)
    options = parser.parse_args()
    texts(options.data, options.out, options.count)


if __name__ == "__main__":
    main()
