"""Which columns of a table hold the texts: the ones asked for, else the ones with a telling name."""

from munjang.errors import InputError

TEXT_COLUMNS = (
    *("text", "texts", "sentence", "sentences", "content", "body", "passage", "document", "question", "query"),
    *("문장", "텍스트", "내용", "본문", "문서", "질문"),
)
PAIR_COLUMNS = (
    *(("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("sentence_a", "sentence_b")),
    *(
        ("text1", "text2"),
        ("text_1", "text_2"),
        ("text_a", "text_b"),
        ("premise", "hypothesis"),
        ("anchor", "positive"),
    ),
    *(("query", "passage"), ("query", "document"), ("question", "answer"), ("question1", "question2")),
)


def choose_text(source: str, column: str | None, columns: list[str]) -> list[str]:
    if column is not None:
        return _found(source, [column], columns)
    known = [name for name in columns if name.strip().lower() in TEXT_COLUMNS]
    if len(known) == 1:
        return _found(source, known, columns)
    # A lone name with a space in it is more likely the first text of a file without a header.
    if len(columns) == 1 and columns[0] and not any(map(str.isspace, columns[0])):
        return columns
    why = "several could be the text" if known else "none is known to be the text"
    raise InputError(f"{source}: which column? {why} of {', '.join(map(repr, columns))}; give --column (column=)")


def choose_pair(source: str, pair: tuple[str, str] | None, columns: list[str]) -> list[str]:
    if pair is not None:
        return _found(source, list(pair), columns)
    by_name = {name.strip().lower(): name for name in columns}
    known = [pair for pair in PAIR_COLUMNS if set(pair) <= by_name.keys()]
    if len(known) == 1:
        return _found(source, [by_name[name] for name in known[0]], columns)
    raise InputError(f"{source}: which two columns of {', '.join(map(repr, columns))}? Give --columns (columns=)")


def _found(source: str, wanted: list[str], columns: list[str]) -> list[str]:
    for name in wanted:
        if columns.count(name) != 1:
            problem = "more than one column" if name in columns else "no column"
            raise InputError(f"{source} has {problem} {name!r}; its columns are {', '.join(map(repr, columns))}")
    return wanted
