"""Questions of other sets in the other language, translated by hand: search across languages as people do it.

translated.tsv names each question by the blake2b hash (8 bytes) of its text; the texts stay where their sets are.
"""

import hashlib
from pathlib import Path

from munjang.data.writing import write_table
from recipes.models.sources import file, read_table

TABLE = Path(__file__).with_name("translated.tsv")


def translate(source: Path, name: str, out: Path) -> int:
    """Write a retrieval set with the translated questions of the one in `source`, and say how many there are."""
    table = read_table(TABLE, ("set", "question", "translation"))
    korean = {
        key: text
        for title, key, text in zip(table["set"], table["question"], table["translation"], strict=True)
        if title == name
    }
    queries = read_table(file(source, "queries"), ("id", "text"))
    keys = [hashlib.blake2b(text.encode(), digest_size=8).hexdigest() for text in queries["text"]]
    found = {id: korean[key] for id, key in zip(queries["id"], keys, strict=True) if key in korean}
    if not found:
        return 0
    out.mkdir(parents=True, exist_ok=True)
    corpus = read_table(file(source, "corpus"), ("id", "text"))
    judged = read_table(file(source, "qrels"), ("query-id", "corpus-id", "score"))
    rows = [row for row in zip(*judged.values(), strict=True) if row[0] in found]
    write_table(out / "corpus.tsv", corpus)
    write_table(out / "queries.tsv", {"id": list(found), "text": list(found.values())})
    write_table(out / "qrels.tsv", {key: [row[at] for row in rows] for at, key in enumerate(judged)})
    return len(found)
