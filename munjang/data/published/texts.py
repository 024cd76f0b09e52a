"""Read published texts with classes, and texts with their translations."""

import re
from itertools import zip_longest
from pathlib import Path

from munjang.data.columns import LANGUAGES
from munjang.data.files import read_lines
from munjang.data.published.shape import Fields, Head, any_lines, beside, plain_name
from munjang.data.rows import Source
from munjang.errors import InputError

# The end of a name and its class, of both files of a set
POLARITIES = ({".pos": "positive", ".neg": "negative"}, {".subjective": "subjective", ".objective": "objective"})
POLARITY_NAMES = re.compile(r"(rt-polarity|custrev|mpqa)\.(pos|neg)(\.txt)?|(subj|quote)\.(subjective|objective)")
MOSES = re.compile(r".*\.([a-z]{2,3})(?:_[a-z]{2})?-([a-z]{2,3})(?:_[a-z]{2})?\.([a-z]{2,3})(?:_[a-z]{2})?")
LANGUAGES_IN_NAME = re.compile(r"(?<![a-z])([a-z]{2,3})-([a-z]{2,3})(?![a-z])")


def tells_polarity(head: Head) -> bool:
    """Tell MR, CR, MPQA and SUBJ by the names of their files."""
    return POLARITY_NAMES.fullmatch(head.name) is not None


def polarity_partner(path: Path) -> Path:
    """Return the file of the other class."""
    for ends in POLARITIES:
        for end in ends:
            if end in path.name.lower():
                (other,) = (name for name in ends if name != end)
                return path.with_name(re.sub(re.escape(end), other, path.name, count=1, flags=re.IGNORECASE))
    raise AssertionError(path)


def polarity(path: Source) -> Fields:
    """Read both files of a set, each of one class."""
    both = sorted([Path(path), beside(path, polarity_partner(Path(path)))])
    yield 0, ("text", "label")
    for file in both:
        (name,) = (name for ends in POLARITIES for end, name in ends.items() if end in file.name.lower())
        yield from ((number, [line, name]) for number, line in any_lines(file) if line.strip())


def tells_sentiment(head: Head) -> bool:
    """Tell SentEval's treebank by name: sentiment-train, without a suffix."""
    return re.fullmatch(r"sentiment-(train|dev|test)", head.name) is not None and len(head.fields()) == 2


def sentiment(path: Source) -> Fields:
    """Read a phrase and its class, with a tab between and no header."""
    yield 0, ("text", "label")
    yield from ((number, line.split("\t")) for number, line in any_lines(path) if line)


def tells_trec(head: Head) -> bool:
    """Tell TREC's questions: CLASS:subclass, a space, the question."""
    return head.name.endswith(".label") and re.match(r"[A-Z]{3,4}:\w+ ", head.content) is not None


def trec(path: Source) -> Fields:
    """Read questions with their coarse class, which is what SentEval measures, and the fine one."""
    yield 0, ("text", "label", "subclass")
    for number, line in any_lines(path):
        fine, _, text = line.partition(" ")
        yield number, [text, fine.partition(":")[0], fine]


def tells_moses(head: Head) -> bool:
    """Tell one of two files of lines that translate each other: Tatoeba.en-ko.en, beside Tatoeba.en-ko.ko."""
    match = MOSES.fullmatch(head.name)
    return match is not None and match[3] in match.group(1, 2) and {*match.group(1, 2)} <= LANGUAGES


def moses_partner(path: Path) -> Path:
    """Return the file in the other language."""
    one, two, this = _languages(path)
    return path.with_name(path.name[: -len(this)] + (two if this == one else one))


def moses(path: Source) -> Fields:
    """Read two files line by line."""
    one, two, this = _languages(Path(path))
    other = beside(path, moses_partner(Path(path)))
    first, second = (Path(path), other) if this == one else (other, Path(path))
    yield 0, (one, two)
    for one_line, other_line in zip_longest(read_lines(first), read_lines(second)):
        if one_line is None or other_line is None:
            shorter = first if one_line is None else second
            raise InputError(f"{shorter} has fewer lines than the file that it translates; line by line they must fit")
        yield one_line[0], (one_line[1], other_line[1])


def _languages(path: Path) -> tuple[str, str, str]:
    match = MOSES.fullmatch(plain_name(path))
    assert match is not None
    return match[1], match[2], match[3]


def tells_tatoeba(head: Head) -> bool:
    """Tell Tatoeba's own pairs: id, sentence, id, translation."""
    fields = head.fields()
    return len(fields) == 4 and fields[0].isdigit() and fields[2].isdigit() and not fields[1].isdigit()


def tatoeba(path: Source) -> Fields:
    """Read a sentence and its translation between their ids."""
    yield 0, ("source_id", "source", "target_id", "target")
    yield from ((number, line.split("\t")) for number, line in read_lines(path) if line)


def tells_attributed(head: Head) -> bool:
    """Tell Tatoeba's pairs with an attribution, as they are sold to learners: kor.txt."""
    fields = head.fields()
    return len(fields) == 3 and fields[2].startswith("CC-BY") and "tatoeba" in fields[2].lower()


def attributed(path: Source) -> Fields:
    """Read a sentence, its translation and who wrote them."""
    yield 0, ("source", "target", "attribution")
    yield from ((number, line.split("\t")) for number, line in read_lines(path) if line)


def tells_parallel(head: Head) -> bool:
    """Tell two columns without a header in a file that names two languages: TED2020-en-ko-train.tsv.gz."""
    match = LANGUAGES_IN_NAME.search(head.name)
    is_named = head.name.endswith((".tsv", ".txt")) and match is not None and {*match.group(1, 2)} <= LANGUAGES
    fields = head.fields()
    return is_named and len(fields) == 2 and any(" " in field for field in fields)


def parallel(path: Source) -> Fields:
    """Read a sentence and its translation."""
    match = LANGUAGES_IN_NAME.search(plain_name(path))
    assert match is not None
    yield 0, match.group(1, 2)
    yield from ((number, line.split("\t")) for number, line in read_lines(path) if line)
