"""Find the columns of a table by role: the ones asked for, else the ones with a telling name."""

import re
from collections.abc import Iterable, Sequence

from munjang.errors import InputError

TEXT_COLUMNS = (
    *("text", "texts", "sentence", "sentences", "content", "body", "passage", "document", "question", "query"),
    *("문장", "텍스트", "내용", "본문", "문서", "질문", "질의"),
)
# Codes and names of languages, by which columns and files are called
LANGUAGES = frozenset(
    (
        *("en", "ko", "ja", "zh", "de", "fr", "es", "it", "pt", "ru", "ar", "hi", "vi", "th", "id", "tr", "pl", "nl"),
        *("sv", "da", "fi", "no", "cs", "el", "he", "hu", "ro", "uk", "fa", "bg", "ms", "bn", "ur", "sw", "mn"),
        *("eng", "kor", "jpn", "cmn", "zho", "deu", "fra", "spa", "ita", "por", "rus", "ara", "hin", "vie", "tha"),
        *("english", "korean", "japanese", "chinese", "german", "french", "spanish"),
        *("영어", "한국어", "일본어", "중국어"),
    )
)
TRANSLATED_PAIRS = (("source", "target"), ("src", "tgt"), ("원문", "번역문"), ("원문", "번역"))
ANCHORS = ("anchor", "query", "question", "기준", "질의", "질문")
POSITIVES = ("positive", "pos", "긍정")
PAIR_COLUMNS = (
    *(("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("sentence_a", "sentence_b")),
    *(("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b")),
    *(("premise", "hypothesis"), ("query", "passage"), ("query", "document"), ("query", "answer")),
    *(("question", "answer"), ("question1", "question2"), ("question", "sentence"), ("question", "passage")),
    *(("premise", "hypo"), ("en", "ko"), ("english", "korean"), ("영어", "한국어")),
    *TRANSLATED_PAIRS,
    *(("문장1", "문장2"), ("전제", "가설"), ("질문", "답변"), ("질문", "답"), ("질문1", "질문2")),
    ("질의", "문서"),
    *((anchor, positive) for anchor in ANCHORS for positive in POSITIVES),
)
# negative, negative_1, negative1, neg_1, hard_negative_1, 부정1
NEGATIVE = re.compile(r"(?:hard_)?(?:negative|neg)s?_?(\d*)|부정_?(\d*)")
SCORE_OF = re.compile(r"(?:score|점수)_?(\d+)")  # of one candidate
YES_NO_COLUMNS = ("is_duplicate", "is_answer", "is_paraphrase")  # 0 and 1: a class, and a score
LABEL_COLUMNS = (
    *("label", "labels", "gold_label", "entailment_judgment", "entailment_label", "class", "category", *YES_NO_COLUMNS),
    *("라벨", "레이블", "분류", "범주", "클래스"),
)
SCORE_COLUMNS = (
    *("score", "scores", "similarity", "similarity_score", "relevance", "relatedness_score", "teacher_scores"),
    *("점수", "유사도"),
)
SPLIT_COLUMNS = ("split", "semeval_set")
MIN_WORDS_OF_A_TEXT = 3  # a column's name rarely has as many


def choose_text(source: str, column: str | None, columns: list[str]) -> list[str]:
    if column is not None:
        return found(source, [column], columns)
    known = [name for name in columns if name.strip().lower() in TEXT_COLUMNS]
    if len(known) == 1:
        return found(source, known, columns)
    if _is_one_column(columns):
        return columns
    why = "several could be the text" if known else "none is known to be the text"
    raise InputError(
        f"{source}: which column? {why} of {_listed(columns)}; give --column (column=){_header_hint(columns)}"
    )


def choose_pair(source: str, pair: tuple[str, str] | None, columns: list[str]) -> list[str]:
    if pair is not None:
        return found(source, list(pair), columns)
    by_name = _by_name(columns)
    known = [pair for pair in PAIR_COLUMNS if set(pair) <= by_name.keys()]
    if len(known) == 1:
        return found(source, [by_name[name] for name in known[0]], columns)
    raise InputError(
        f"{source}: which two columns of {_listed(columns)}? Give --columns (columns=){_header_hint(columns)}"
    )


def choose_texts(
    source: str, names: Sequence[str] | None, columns: list[str], num_texts: tuple[int, int | None]
) -> list[str]:
    """Choose the text columns of an example in order: one text, a pair, or an anchor, a positive and any negatives."""
    least, most = num_texts
    if names is not None:
        return found(source, list(names), columns)
    by_name = _by_name(columns)
    pairs = [pair for pair in PAIR_COLUMNS if set(pair) <= by_name.keys()]
    languages = [name for name in by_name if name in LANGUAGES]
    if len(languages) == 2 and not {frozenset(languages)} & {frozenset(pair) for pair in pairs}:
        pairs.append((languages[0], languages[1]))
    negatives = _numbered(NEGATIVE, by_name)
    groups: list[tuple[str, ...]] = [(name,) for name in by_name if name in TEXT_COLUMNS]
    groups += pairs
    groups += [(*pair, *negatives) for pair in pairs if pair[1] in POSITIVES and negatives]
    fitting = [group for group in groups if least <= len(group) and (most is None or len(group) <= most)]
    # question and answer are a pair, though question alone could be a text.
    widest = [group for group in fitting if not any(set(group) < set(other) for other in fitting)]
    if len(widest) == 1:
        _refuse_third(source, widest[0], by_name)
        return found(source, [by_name[name] for name in widest[0]], columns)
    if not widest and least <= 1 and _is_one_column(columns):
        return columns
    known = [group for group in groups if not any(set(group) < set(other) for other in groups)]
    named = _listed(columns)
    why = f"Of {named}, these could be: {'; '.join(map(', '.join, widest or known))}" if known else f"{named} don't say"
    raise InputError(
        f"{source}: which columns hold the texts ({counted(num_texts)} wanted)? {why}. "
        f"Give --texts (texts=), their names in order{_header_hint(columns)}"
    )


def is_translated(names: Sequence[str]) -> bool:
    """Tell whether the names of two columns say that one translates the other.

    >>> is_translated(["en", "ko"]), is_translated(["sentence1", "sentence2"])
    (True, False)
    """
    lower = tuple(name.strip().lower() for name in names)
    return len(lower) == 2 and (set(lower) <= LANGUAGES or lower in TRANSLATED_PAIRS)


def _refuse_third(source: str, chosen: Sequence[str], by_name: dict[str, str]) -> None:
    """Refuse sentence1 and sentence2 where there is a sentence3: nobody knows what it is for."""
    if len(chosen) != 2 or chosen[0][:-1] != chosen[1][:-1]:
        return
    third = chosen[1][:-1] + chr(ord(chosen[1][-1]) + 1)
    if third in by_name:
        raise InputError(
            f"{source}: which columns hold the texts? There are {', '.join(chosen)} and {third}; "
            "give --texts (texts=), their names in order: two for a pair, anchor, positive and negative for a triplet"
        )


def _header_hint(columns: list[str]) -> str:
    """Say that the first row may be data, where it looks so."""
    is_data = any(len(name.split()) >= MIN_WORDS_OF_A_TEXT or _is_number(name) for name in columns)
    return ". The first line looks like a row, not like names of columns; add a line that names them" if is_data else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def choose_label(source: str, name: str | None, columns: list[str]) -> list[str]:
    """Choose the column of classes."""
    return _one_of(source, "label", name, LABEL_COLUMNS, columns)


def choose_scores(source: str, names: str | Sequence[str] | None, columns: list[str]) -> list[str]:
    """Choose the column of scores, or one column for each candidate's."""
    if names is None:
        by_name = _by_name(columns)
        each = _numbered(SCORE_OF, by_name)
        if each and not set(SCORE_COLUMNS) & by_name.keys():
            return found(source, [by_name[name] for name in each], columns)
        known = SCORE_COLUMNS if set(SCORE_COLUMNS) & by_name.keys() else YES_NO_COLUMNS
        return _one_of(source, "score", None, known, columns)
    return found(source, [names] if isinstance(names, str) else list(names), columns)


def found(source: str, wanted: list[str], columns: list[str]) -> list[str]:
    """Return `wanted` if every one of them is a column, once."""
    for name in wanted:
        if columns.count(name) != 1:
            problem = "more than one column" if name in columns else "no column"
            raise InputError(f"{source} has {problem} {name!r}; its columns are {_listed(columns)}")
    return wanted


def counted(num_texts: tuple[int, int | None]) -> str:
    """Put a number of columns into words.

    >>> counted((2, 2)), counted((1, None)), counted((2, 3))
    ('2', '1 or more', '2 to 3')
    """
    least, most = num_texts
    return f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"


def _one_of(source: str, what: str, name: str | None, known: Iterable[str], columns: list[str]) -> list[str]:
    if name is not None:
        return found(source, [name], columns)
    by_name = _by_name(columns)
    matches = [by_name[name] for name in known if name in by_name]
    if len(matches) == 1:
        return found(source, matches, columns)
    why = f"{_listed(matches)} could be" if matches else "no telling name"
    raise InputError(f"{source}: which column is the {what}? Of {_listed(columns)}, {why}. Give --{what} ({what}=)")


def _numbered(pattern: re.Pattern[str], by_name: dict[str, str]) -> list[str]:
    """Return the names that match, by the number at their end; the one without a number first."""
    matches = [(name, match) for name in by_name if (match := pattern.fullmatch(name))]
    return [name for name, match in sorted(matches, key=lambda item: int("".join(filter(None, item[1].groups())) or 0))]


def _is_one_column(columns: list[str]) -> bool:
    # A lone name with a space in it is more likely the first text of a file without a header.
    return len(columns) == 1 and bool(columns[0]) and not any(map(str.isspace, columns[0]))


def _by_name(columns: list[str]) -> dict[str, str]:
    return {name.strip().lower(): name for name in columns}


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(map(repr, columns))
