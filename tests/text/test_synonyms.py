from pathlib import Path

import pytest

from munjang.errors import InputError
from munjang.text.synonyms import Synonyms
from munjang.text.terms import words_of


def test_groups_and_arrows(tmp_path: Path) -> None:
    path = tmp_path / "synonyms.txt"
    path.write_text("# 차\ncar, automobile, motor vehicle\n\nai => machine learning\n", encoding="utf-8")
    synonyms = Synonyms.read(path)
    assert synonyms.widened(words_of("an old car")) == ["automobile", "motor", "vehicle"]
    assert synonyms.widened(words_of("a motor vehicle")) == ["car", "automobile"]
    assert synonyms.widened(words_of("AI")) == ["machine", "learning"]
    assert synonyms.widened(words_of("machine learning")) == []
    assert synonyms.widened([]) == []


def test_a_korean_noun_with_a_particle() -> None:
    pytest.importorskip("kiwipiepy")
    assert Synonyms.parse(["자동차, 차량"]).widened(words_of("자동차를 산다")) == ["차량"]


def test_bad_lines(tmp_path: Path) -> None:
    for line in ("alone", "=> right", "left =>", ", ,"):
        with pytest.raises(InputError, match="line 2"):
            Synonyms.parse(["a, b", line])
    with pytest.raises(InputError, match="can't be read"):
        Synonyms.read(tmp_path / "none.txt")
