from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.errors import InputError
from munjang.index import Index
from munjang.index.transfer import export_rows, import_rows, reembed
from tests.texts import ENGLISH, KOREAN

TEXTS = [text for text in dict.fromkeys([*ENGLISH, *KOREAN]) if text.strip() and len(text) < 200][:12]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_out_and_in_again(model: BiEncoder, tmp_path: Path, name: str) -> None:
    with Index.open("memory:", model) as index, Index.open("memory:", model) as other:
        index.add(TEXTS, metadata=[{"n": n, "lang": "ko" if n % 2 else "en"} for n in range(len(TEXTS))])
        assert export_rows(index, tmp_path / name, progress=False) == len(TEXTS)
        assert import_rows(other, tmp_path / name, progress=False) == len(TEXTS)
        assert import_rows(other, tmp_path / name, progress=False) == len(TEXTS)
        assert other.count() == len(TEXTS)
        assert other.count("lang = 'ko' and n > 6") == index.count("lang = 'ko' and n > 6") > 0
        for text in TEXTS:
            before, after = index.search(text, k=3), other.search(text, k=3)
            assert [hit.id for hit in before] == [hit.id for hit in after]
            np.testing.assert_allclose([hit.score for hit in before], [hit.score for hit in after], atol=1e-6)


def test_another_models_rows_are_refused(make: Callable[..., Path], model: BiEncoder, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with Index.open("memory:", model) as index:
        index.add(TEXTS[:2])
        export_rows(index, path, progress=False)
    with Index.open("memory:", BiEncoder.load(make("bert", pooling="max"), "cpu")) as other:
        with pytest.raises(InputError, match="another model"):
            import_rows(other, path, progress=False)
        (tmp_path / "other.jsonl").write_text('{"text": "a"}\n')
        with pytest.raises(InputError, match="munjang index export"):
            import_rows(other, tmp_path / "other.jsonl", progress=False)


def test_another_model_takes_over(make: Callable[..., Path], tiny_bert: Path, tmp_path: Path) -> None:
    """The folder's vectors are another model's afterwards, and its rows are the same."""
    pytest.importorskip("lancedb")
    place, better = str(tmp_path / "index"), make("bert", pooling="max")
    with Index.open(place, tiny_bert, device="cpu") as index:
        index.add(TEXTS, [f"d{n}" for n in range(len(TEXTS))], [{"n": n} for n in range(len(TEXTS))])
    assert main(["index", "reembed", place, "--model", str(better), "--device", "cpu", "--quiet"]) == 0
    encoder = BiEncoder.load(better, "cpu")
    with Index.open(place, device="cpu") as index:
        assert index.model.fingerprint == encoder.fingerprint
        assert index.count("n >= 3") == len(TEXTS) - 3
        hits = index.search(TEXTS[4], k=3, by="dense")
        wanted = encoder.similarity([TEXTS[4]], [hit.text for hit in hits])[0]
        np.testing.assert_allclose([hit.score for hit in hits], wanted, atol=1e-5)
        index.add(["one more"])
        assert index.count() == len(TEXTS) + 1
    with pytest.raises(InputError, match="already"):
        reembed(place, encoder, str(better))


def test_commands(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lancedb")
    place, texts = str(tmp_path / "index"), tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    given = ["--model", str(tiny_bert), "--device", "cpu", "--lines"]
    assert main(["index", "build", place, str(texts), *given]) == 0
    assert f"{len(TEXTS)} documents added" in capsys.readouterr().err
    assert main(["index", "add", place, str(texts), "--lines", "--device", "cpu"]) == 0
    assert f"{len(TEXTS)} were there already" in capsys.readouterr().err
    assert main(["index", "info", place, "--device", "cpu"]) == 0
    assert '"dimension": 32' in capsys.readouterr().out
    assert main(["search", TEXTS[0], "--index", place, "-k", "1", "--json", "--device", "cpu"]) == 0
    assert TEXTS[0].split()[0] in capsys.readouterr().out
    assert main(["index", "export", place, str(tmp_path / "out.jsonl.gz"), "--quiet"]) == 0
    assert main(["index", "compact", place, "--device", "cpu"]) == 0
    assert main(["index", "delete", place, "nothing", "--device", "cpu"]) == 0
    assert "0 of 1 documents deleted" in capsys.readouterr().err
    assert main(["index", "info", str(tmp_path / "nowhere"), "--device", "cpu"]) == 2
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a JSON object"),
        ("[]\n", "not a JSON object"),
        ('{"kind": "munjang index 1", "dimension": 32}\n', "munjang index export"),
        ('{"kind": "munjang index 1", "fingerprint": "other", "model": "m"}\n', "another model"),
        ("\x00\x01", "not a JSON object"),
    ],
)
def test_a_refused_import_leaves_nothing(
    tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    pytest.importorskip("lancedb")
    (tmp_path / "rows.jsonl").write_text(content)
    arguments = ["index", "import", str(tmp_path / "index"), str(tmp_path / "rows.jsonl"), "--device", "cpu"]
    assert main([*arguments, "--model", str(tiny_bert)]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl"]


@pytest.mark.parametrize("line", ["{", '{"id": "a"}', '{"id": "a", "vector": "AAAA"}', "7"])
def test_bad_rows_of_an_import(model: BiEncoder, tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    with Index.open("memory:", model) as index:
        index.add(TEXTS[:2])
        export_rows(index, path, progress=False)
        path.write_text(path.read_text() + line + "\n")
        with pytest.raises(InputError, match="munjang index export"):
            import_rows(index, path, progress=False)
        assert index.count() == 2
