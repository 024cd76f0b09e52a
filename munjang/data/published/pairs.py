"""Read published pairs and triplets of sentences with scores or labels."""

import csv
import re
from pathlib import Path

from munjang.data.files import read_lines
from munjang.data.published.shape import Fields, Head, any_lines, beside, is_number, plain_name
from munjang.data.rows import Source, csv_rows
from munjang.errors import InputError

STSB_COLUMNS = ("genre", "filename", "year", "id", "score", "sentence1", "sentence2")
MRPC_COLUMNS = {"quality": "label", "#1 string": "sentence1", "#2 string": "sentence2"}
SECTION_COLUMNS = {"sentence1": "anchor", "sentence2": "positive", "sentence3": "negative"}
MAX_LINES_OF_A_ROW = 20  # a quoted question of Quora's goes on over a few


def tabs(path: Source) -> Fields:
    """Read fields between tabs, nothing quoted, under a header: for tables that are named .txt."""
    return ((number, line.split("\t")) for number, line in read_lines(path))


def tells_sts_benchmark(head: Head) -> bool:
    """Tell the STS benchmark's own files: seven fields or more, no header, the score in the fifth."""
    fields = head.fields()
    return len(fields) >= 7 and is_number(fields[4], 0, 5) and re.match(r"(19|20)\d\d|MSR", fields[2]) is not None


def sts_benchmark(path: Source) -> Fields:
    """Read the STS benchmark; some rows end with the sources of their sentences, which are dropped."""
    yield 0, STSB_COLUMNS
    for number, line in read_lines(path):
        yield number, line.split("\t")[: len(STSB_COLUMNS)]


def tells_scored_csv(head: Head) -> bool:
    """Tell two sentences and a score of 0 to 5 with commas between and no header, as stsb_multi_mt has them."""
    if not head.name.endswith(".csv"):
        return False
    row = next(csv.reader(head.lines[:1]), [])
    return len(row) == 3 and is_number(row[2], 0, 5) and not any(map(is_number, row[:2]))


def scored_csv(path: Source) -> Fields:
    """Read rows of two sentences and a score."""
    yield 0, ("sentence1", "sentence2", "score")
    yield from csv_rows(path, read_lines(path))


def tells_semeval(head: Head) -> bool:
    """Tell SemEval's STS.input.NAME.txt, whose scores are in STS.gs.NAME.txt."""
    return re.fullmatch(r"sts\.(input|gs)\..+\.txt", head.name) is not None


def semeval_partner(path: Path) -> Path:
    """Return the file of scores of a file of sentences, and the other way round."""
    first, second = (".gs.", ".input.") if ".gs." in path.name.lower() else (".input.", ".gs.")
    return path.with_name(re.sub(re.escape(first), second, path.name, count=1, flags=re.IGNORECASE))


def semeval(path: Source) -> Fields:
    """Read SemEval's sentences and scores; pairs that nobody scored have a blank line there, and are left out."""
    given = Path(path)
    other = beside(path, semeval_partner(given))
    texts, scores = (other, given) if ".gs." in given.name.lower() else (given, other)
    yield 0, ("sentence1", "sentence2", "score")
    # Of some years the last lines without a score are missing.
    for (number, line), (_, score) in zip(any_lines(texts), any_lines(scores), strict=False):
        if score.strip():
            yield number, [*line.split("\t")[:2], score.strip()]


def mrpc(path: Source) -> Fields:
    """Read Microsoft's paraphrases under the names that others use."""
    return _renamed(tabs(path), MRPC_COLUMNS)


def tells_quora(head: Head) -> bool:
    """Tell Quora's questions with tabs, in which some questions are quoted."""
    return head.has_header("question1", "question2", "is_duplicate")


def quora(path: Source) -> Fields:
    """Read Quora's questions: quotes around a question are dropped, and a quoted one may have several lines."""
    lines = read_lines(path)
    _, header = next(lines)
    columns = header.split("\t")
    yield 0, columns
    for number, line in lines:
        text, num_lines = line, 1
        while text.count("\t") < len(columns) - 1 and num_lines < MAX_LINES_OF_A_ROW:
            more = next(lines, None)
            if more is None:
                break
            text, num_lines = f"{text}\n{more[1]}", num_lines + 1
        yield number, [_unquoted(field) for field in text.split("\t")]


def _unquoted(field: str) -> str:
    is_quoted = len(field) > 1 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if is_quoted else field


def tells_paws_x(head: Head) -> bool:
    """Tell PAWS and PAWS-X by their header."""
    return [field.lower() for field in head.fields()] == ["id", "sentence1", "sentence2", "label"]


def paws_x(path: Source) -> Fields:
    """Read PAWS-X; a sentence that was not translated is written NS, and read as blank."""
    for number, fields in tabs(path):
        yield number, ["" if field == "NS" else field for field in fields]


def tells_facets(head: Head) -> bool:
    """Tell the pairs of arguments, which are scored in the first column."""
    is_named = re.fullmatch(r"argpairs_\w+\.csv", head.name) is not None
    return is_named and head.has_header("sentence_1", "sentence_2", separator=",")


def facets(path: Source) -> Fields:
    """Read pairs of arguments about one topic; the topic is in the file's name: ArgPairs_GM.csv."""
    rows = csv_rows(path, any_lines(path))
    _, columns = next(rows)
    if is_number(columns[0]):
        raise InputError(f"{path}: the first line has to name the columns; it begins with {columns[0]!r}")
    yield 0, ["score", *columns[1:], "topic"]
    topic = plain_name(path).removeprefix("argpairs_").removesuffix(".csv").upper()
    for number, fields in rows:
        yield number, [*fields, topic]


def tells_sections(head: Head) -> bool:
    """Tell triplets of Wikipedia by their header."""
    return head.name.endswith(".csv") and head.has_header("sentence1", "sentence2", "sentence3", separator=",")


def sections(path: Source) -> Fields:
    """Read triplets of Wikipedia: two sentences of one section and one of another."""
    return _renamed(csv_rows(path, read_lines(path)), SECTION_COLUMNS)


def _renamed(rows: Fields, names: dict[str, str]) -> Fields:
    _, columns = next(rows)
    yield 0, [names.get(str(column).strip().lower(), column) for column in columns]
    yield from rows
