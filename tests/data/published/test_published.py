"""Every published file is read by its name alone; half of a dataset, and what only looks like one, is not."""

import gzip
from pathlib import Path

import pytest

from munjang.data.published import PUBLISHED, shape_of, split_of
from munjang.data.reading import read_examples
from munjang.data.sources import splits_of
from munjang.data.tables import read_pairs, read_texts
from munjang.errors import InputError
from tests.data.published.files import PUBLISHED_FILES, Published, lines, put

BY_NAME = pytest.mark.parametrize("published", PUBLISHED_FILES.values(), ids=PUBLISHED_FILES)


def test_every_shape_has_a_file() -> None:
    assert {published.shape for published in PUBLISHED_FILES.values()} - {None} == PUBLISHED.keys()


@BY_NAME
def test_by_its_name_alone(published: Published, tmp_path: Path) -> None:
    path = put(tmp_path, published)
    assert shape_of(path) == published.shape
    examples = read_examples(path, target=published.target)
    assert examples.texts == published.texts
    if published.target == "labels":
        assert examples.label_names == published.values
    if published.target == "scores":
        assert examples.scores is not None
        assert examples.scores.tolist() == pytest.approx(list(published.values))
    is_told = any("read as a file of" in note for note in examples.notes)
    assert is_told == (published.shape is not None)


@BY_NAME
def test_a_folder_holds_it_once(published: Published, tmp_path: Path) -> None:
    put(tmp_path, published)
    assert read_examples(tmp_path, target=published.target).texts == published.texts


@pytest.mark.parametrize("name", ["STSb", "SICK", "KorQuAD", "Quora", "TED2020"])
def test_compressed(name: str, tmp_path: Path) -> None:
    published = PUBLISHED_FILES[name]
    path = put(tmp_path, published)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_examples(packed, target=published.target).texts == published.texts


def test_second_file_gives_the_same(tmp_path: Path) -> None:
    for name in ("SemEval", "OPUS", "MR of SentEval"):
        published = PUBLISHED_FILES[name]
        put(tmp_path, published)
        second = tmp_path / list(published.files)[1]
        assert read_examples(second).texts == published.texts
        (tmp_path / next(iter(published.files))).unlink()
        with pytest.raises(InputError, match="half of a dataset"):
            read_examples(second)


def test_lines_of_unequal_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Tatoeba.en-ko.en").write_text(lines("Go.", "I see."))
    (tmp_path / "Tatoeba.en-ko.ko").write_text(lines("가."))
    with pytest.raises(InputError, match=r"Tatoeba\.en-ko\.ko has fewer lines"):
        read_examples(tmp_path / "Tatoeba.en-ko.en")


def test_latin_1_of_the_oldest_sets(tmp_path: Path) -> None:
    (tmp_path / "rt-polarity.pos").write_bytes("a clich\u00e9 , but good\n".encode("latin-1"))
    (tmp_path / "rt-polarity.neg").write_bytes(b"so bad\n")
    assert read_examples(tmp_path / "rt-polarity.pos").texts == (["so bad", "a clich\u00e9 , but good"],)


def test_texts_and_pairs(tmp_path: Path) -> None:
    """Commands that read one text or two a row read published files, too."""
    assert next(read_texts(put(tmp_path, PUBLISHED_FILES["NSMC"]))) == '굳 "ㅋ'
    assert next(read_texts(put(tmp_path, PUBLISHED_FILES["TREC of SentEval"]))) == "How far is it ?"
    first, second = PUBLISHED_FILES["STSb"].texts
    assert next(read_pairs(put(tmp_path, PUBLISHED_FILES["STSb"]))) == (first[0], second[0])


def test_splits(tmp_path: Path) -> None:
    path = put(tmp_path, PUBLISHED_FILES["SICK"])
    test = read_examples(path, target="scores", split="test")
    assert test.texts[0] == ["Kids play tag"]
    assert any("1 of 3 rows: those of the split test" in note for note in test.notes)
    assert read_examples(path, split="dev").texts[0] == ["Kids play go"]  # SemEval calls it TRIAL
    with pytest.raises(InputError, match=r"has the splits dev, test, train, not 'held-out'"):
        read_examples(path, split="held-out")


def test_splits_of_a_folder(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"sts-{split}.tsv").write_text(lines("sentence1\tsentence2\tscore", f"{split}\tb\t1"))
    assert splits_of(tmp_path) == {"train", "dev", "test"}
    examples = read_examples(tmp_path, split="dev")
    assert examples.texts[0] == ["dev"]
    assert any("sts-dev.tsv" in note for note in examples.notes)
    assert [split_of(name) for name in ("latest.tsv", "devices.csv", "train-dev.tsv")] == [None, None, None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sentence1,sentence2,score\na,b,1\n"),
        ("a.txt", "an ordinary line\nand another\n"),
        ("a.tsv", "1\t2\t3\t4\n"),
        ("a.json", '[{"text": "paragraphs"}]'),
        ("en-ko.txt", "no tab here\n"),
    ],
)
def test_plain_tables_stay_plain(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert shape_of(tmp_path / name) is None


def test_what_is_written_differently_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "KorQuAD_v1.0_dev.json"
    path.write_text('{"data": [{"paragraphs": [{"qas": [{"id": "1", "question": "q"}]}]}]}')
    with pytest.raises(InputError, match="not written as SQuAD is: 'context'"):
        read_examples(path)
    path.write_text('{"data": [{"paragraphs": [')
    with pytest.raises(InputError, match="not valid JSON"):
        read_examples(path)


def test_a_folder_as_semeval_publishes_it(tmp_path: Path) -> None:
    # scores of all sets together, scores of sentences that may not be published, and texts about the data
    for name, content in {
        "STS.input.news.txt": "one sentence\tanother\na third\ta fourth\n",
        "STS.gs.news.txt": "4.2\n0\n",
        "STS.gs.ALL.txt": "4.2\n0\n",
        "STS.gs.SMT.txt": "1\n",
        "00-readme.txt": "These are pairs.\n",
        "LICENSE.txt": "Free.\n",
    }.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_examples(tmp_path, target="scores", num_texts=(2, 2))
    assert found.texts == (["one sentence", "a third"], ["another", "a fourth"])
    assert "left out, half of a dataset without the other half: STS.gs.ALL.txt, STS.gs.SMT.txt" in found.notes
    (tmp_path / "STS.input.news.txt").unlink()
    with pytest.raises(InputError, match=r"STS.gs.ALL.txt is half of a dataset; STS.input.ALL.txt has to be"):
        read_examples(tmp_path, target="scores", num_texts=(2, 2))
