"""The corpus and its index: built once, kept in a folder, opened again as long as corpus and model are the same."""

import hashlib
import shutil
from pathlib import Path

from munjang import BiEncoder, Index
from munjang.data.documents import Document, Reading, read_documents

FILE = Path(__file__).with_name("corpus.tsv")  # lang, topic, year (of what it speaks of, if there is one), text
STAMP = "complete"


def passages() -> list[Document]:
    """All passages, with language, topic and year."""
    return list(read_documents([str(FILE)], Reading(column="text", kinds={"year": "int"})))


def open_index(folder: Path, model: BiEncoder) -> Index:
    """The index in a folder; what visitors added or deleted stays until the corpus or the model changes."""
    stamp, content = folder / STAMP, hashlib.blake2b(FILE.read_bytes() + model.fingerprint.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == content:
        return Index.open(folder / "index", model, create=False)
    shutil.rmtree(folder / "index", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    index = Index.open(folder / "index", model)
    found = passages()
    print(f"Indexing {len(found)} passages ...", flush=True)
    index.add([each.text for each in found], _ids(found), [each.metadata for each in found])
    stamp.write_text(content, encoding="utf-8")  # last: a build that was interrupted begins again
    return index


def _ids(documents: list[Document]) -> list[str]:
    """Short names that people can read: ko-science-3."""
    counts: dict[str, int] = {}
    ids = []
    for each in documents:
        group = f"{each.metadata['lang']}-{each.metadata['topic']}"
        counts[group] = counts.get(group, 0) + 1
        ids.append(f"{group}-{counts[group]}")
    return ids
