"""A record of benchmarks.cpu as a table for the READMEs (`make docs FIX=1` writes it there) and as a chart."""

import json
from pathlib import Path
from typing import Any

from benchmarks.chart import bars

ROOT = Path(__file__).parents[1]
RECORD = "benchmarks/results/cpu.json"
# README: heads of the columns, what stands where nothing was measured, and the sentence below the table.
WORDS = {
    "README.md": {
        "encoder": "encoder",
        "one": "one sentence, ms",
        "cosine": "cosine, min / mean",
        "none": "Not measured yet: `make bench-peers`, then `python -m benchmarks.cpu --record`.",
        "below": "{model} on {machine}, {threads} threads, {day}: speed relative to sentence-transformers, median of "
        "{rounds} interleaved rounds, strings to numpy; smallest and mean cosine to its float32 vectors over all "
        "corpora. Tokens per text: {tokens}. Each encoder ran at its fastest batch size.",
        "skipped": "Did not run: {skipped}.",
        "chart": "Chart of the same figures",
    },
    "README.ko.md": {
        "encoder": "인코더",
        "one": "한 문장, ms",
        "cosine": "코사인, 최소 / 평균",
        "none": "아직 재지 않았습니다: `make bench-peers` 다음에 `python -m benchmarks.cpu --record`.",
        "below": "{model}, {machine}, 스레드 {threads}개, {day}: 번갈아 잰 {rounds}회의 중앙값으로 "
        "sentence-transformers의 몇 배인지, 문자열에서 numpy까지. 코사인은 그 float32 벡터와의 값으로, "
        "모든 글의 최솟값과 평균입니다. 글마다 토큰: {tokens}. 모두 자기에게 가장 빠른 배치 크기로 쟀습니다.",
        "skipped": "실행하지 못함: {skipped}.",
        "chart": "같은 수치의 그래프",
    },
}


def table(record: dict[str, Any] | None, words: dict[str, str]) -> str:
    """The block of a README."""
    if record is None:
        return words["none"]
    corpora, one = record["corpora"], record["one_sentence_ms"]
    heads = [words["encoder"], *(corpus["corpus"] for corpus in corpora), words["one"], words["cosine"]]
    lines = [heads, ["---"] * len(heads)]
    for name in one:
        found = [corpus["encoders"][name] for corpus in corpora if name in corpus["encoders"]]
        times = [_times(corpus["encoders"].get(name)) for corpus in corpora]
        worst = min(each["cosine_min"] for each in found)
        mean = sum(each["cosine_mean"] for each in found) / len(found)
        lines.append([name, *times, f"{one[name]:.1f}", f"{cosine(worst)} / {cosine(mean)}"])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    tokens = ", ".join(f"{corpus['corpus']} {corpus['tokens']:.0f}" for corpus in corpora)
    facts = {name: record[name] for name in ("model", "machine", "threads", "rounds")}
    below = words["below"].format(**facts, day=record["when"][:10], tokens=tokens)
    if record["skipped"]:
        below += " " + words["skipped"].format(skipped=", ".join(record["skipped"]))
    image = f"![{words['chart']}]({RECORD.removesuffix('.json')}.svg)"
    return f"{rows}\n\n{below}\n\n{image}"


def _times(row: dict[str, Any] | None) -> str:
    return "-" if row is None else f"{row['times_median']:.2f}"


def cosine(value: float) -> str:
    """As many digits as say something: never 1.000 for what is not 1.

    >>> cosine(0.99998), cosine(0.9953), cosine(0.9999999)
    ('0.99998', '0.995', '1.000000')
    """
    distance = 1 - value
    digits = next((digits for digits in (3, 4, 5, 6) if distance > 2 * 10**-digits), 6)
    return f"{min(value, 1):.{digits}f}"


def read(root: Path = ROOT) -> dict[str, Any] | None:
    """The record that the READMEs show, if there is one."""
    path = root / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(record: dict[str, Any], path: Path) -> None:
    """The record, and its chart beside it."""
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".svg").write_text(chart(record), encoding="utf-8")


def chart(record: dict[str, Any]) -> str:
    """Bars for every corpus, one an encoder."""
    groups = {
        f"{corpus['corpus']} ({corpus['tokens']:.0f} tokens)": {
            name: row["times_median"] for name, row in corpus["encoders"].items()
        }
        for corpus in record["corpora"]
    }
    title = f"Times as fast as {record['reference']}: {record['model']}, {record['machine']}, {record['when'][:10]}"
    return bars(title, groups)
