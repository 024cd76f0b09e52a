import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from munjang.data.office import FORMATS
from munjang.data.office.extractor import Extractor, Limits
from munjang.data.office.part import Unreadable
from tests.data.office.made import EXTRA, MAKERS, paragraph, section_xml, write_eml, write_html, write_hwpx

SECTIONS = [("휴가 규정", "연차는 열닷새이다."), ("Travel", "Trains before planes & taxis.")]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with Extractor() as made:
        yield made


@pytest.mark.parametrize("suffix", MAKERS)
def test_every_format(suffix: str, tmp_path: Path, extractor: Extractor) -> None:
    if suffix in EXTRA:
        pytest.importorskip(EXTRA[suffix])
    path = tmp_path / f"규정{suffix}"
    MAKERS[suffix](path, "회사 안내", SECTIONS)
    parts = extractor.read(str(path))
    whole = "\n".join(part.text for part in parts)
    for heading, text in SECTIONS:
        assert heading in whole
        assert text in whole
    (part,) = (part for part in parts if "Trains" in part.text)
    if suffix in (".pdf", ".pptx"):
        assert part.page == 2
        assert "열닷새" not in part.text
    heading = {".pdf": None, ".eml": "회사 안내", ".xlsx": "1 Travel"}.get(suffix, "Travel")
    assert part.heading == heading


def test_every_format_is_made() -> None:
    assert set(FORMATS) - set(MAKERS) == {".htm", ".msg"}  # as .html; markitdown's own


def test_hwpx_tables_marks_and_notes(tmp_path: Path, extractor: Extractor) -> None:
    path = tmp_path / "a.hwpx"
    cells = "".join(f"<hp:tc><hp:subList>{paragraph(text)}</hp:subList></hp:tc>" for text in ("이름", "나이"))
    table = f"<hp:tbl><hp:tr>{cells}</hp:tr></hp:tbl>"
    note = f"<hp:ctrl><hp:footNote><hp:subList>{paragraph('각주')}</hp:subList></hp:footNote></hp:ctrl>"
    head = f"<hp:ctrl><hp:header><hp:subList>{paragraph('머리말')}</hp:subList></hp:header></hp:ctrl>"
    broken = "<hp:p><hp:run><hp:t>앞<hp:tab/>뒤<hp:lineBreak/>끝</hp:t></hp:run></hp:p>"
    second = section_xml(paragraph("둘째 구역"))
    first = section_xml(paragraph("표", 0, table + note + head) + broken)
    write_hwpx(path, "", [], **{"Contents/section0.xml": first, "Contents/section10.xml": second})
    (part,) = extractor.read(str(path))
    assert part.text == "표\n이름 | 나이\n각주\n앞\t뒤\n끝\n둘째 구역"


def test_odd_mail_and_html(tmp_path: Path, extractor: Extractor) -> None:
    path = tmp_path / "a.eml"
    write_eml(path, "주간 보고", SECTIONS, is_html=True)
    (part,) = extractor.read(str(path))
    assert part.text.startswith("Subject: 주간 보고\nFrom: a@example.com")
    assert "휴가 규정\n연차는 열닷새이다.\nTravel\nTrains before planes & taxis." in part.text
    assert part.text.endswith("Attachments: 계획.bin")
    path.write_bytes(b"Subject: odd\nContent-Type: text/plain; charset=no-such\n\nbody \xff\n")
    assert extractor.read(str(path))[0].text == "Subject: odd\n\nbody \ufffd"
    pytest.importorskip("markitdown")
    page = tmp_path / "old.html"
    write_html(page, "옛 문서", SECTIONS, "euc-kr")
    assert "연차는 열닷새이다." in extractor.read(str(page))[0].text


def test_broken_files_are_named(tmp_path: Path, extractor: Extractor) -> None:
    path = tmp_path / "a.hwpx"
    for content, reason in ((b"", "not a zip"), (b"PK\x03\x04" + b"\x00" * 99, "not a zip")):
        path.write_bytes(content)
        with pytest.raises(Unreadable, match=reason):
            extractor.read(str(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    with pytest.raises(Unreadable, match="is it HWPX"):
        extractor.read(str(path))
    write_hwpx(path, "", [], **{"META-INF/manifest.xml": "<m><encryption-data/></m>"})
    with pytest.raises(Unreadable, match="password"):
        extractor.read(str(path))
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
    write_hwpx(path, "", [], **{"Contents/section0.xml": bomb})
    with pytest.raises(Unreadable, match="declares entities"):
        extractor.read(str(path))
    write_hwpx(path, "", [], **{"Contents/section0.xml": "<a><b></a>"})
    with pytest.raises(Unreadable, match="damaged"):
        extractor.read(str(path))
    write_hwpx(path, "", [])
    with pytest.raises(Unreadable, match="no text"):
        extractor.read(str(path))
    with pytest.raises(Unreadable, match="No such file"):
        extractor.read(str(tmp_path / "gone.hwpx"))


@pytest.mark.parametrize("suffix", EXTRA)
def test_half_a_file_is_named(suffix: str, tmp_path: Path, extractor: Extractor) -> None:
    pytest.importorskip(EXTRA[suffix])
    path = tmp_path / f"a{suffix}"
    MAKERS[suffix](path, "title", SECTIONS)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    if suffix == ".html":  # half of it is still a page
        assert extractor.read(str(path))
        return
    with pytest.raises(Unreadable):
        extractor.read(str(path))


def test_limits_of_time_and_memory_and_going_on_after_them(tmp_path: Path) -> None:
    slow, large, good = (tmp_path / name for name in ("slow.hwpx", "large.hwpx", "good.hwpx"))
    write_hwpx(slow, "", [], **{"Contents/section0.xml": section_xml(paragraph("가") * 200_000)})
    write_hwpx(large, "", [], **{"Contents/section0.xml": section_xml(paragraph("가" * 40_000_000))})
    write_hwpx(good, "제목", [])
    with Extractor(Limits(max_seconds=0.2, max_memory_mb=4096)) as extractor:
        with pytest.raises(Unreadable, match=r"took more than 0\.2 s"):
            extractor.read(str(slow))
        extractor.limits = Limits(max_seconds=60, max_memory_mb=400)
        with pytest.raises(Unreadable, match="more memory than is allowed"):
            extractor.read(str(large))
        assert extractor.read(str(good))[0].text == "제목"


def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    good = tmp_path / "good.hwpx"
    write_hwpx(good, "제목", [])
    with Extractor() as extractor:
        assert extractor.read(str(good))
        child = extractor._child
        assert child is not None
        child.kill()
        time.sleep(0.05)
        assert extractor.read(str(good))[0].text == "제목"


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules.update(markitdown=None, pypdfium2=None)\n"
        "from munjang.data.office.child import answer\n"
        "print(answer('a.docx')['error'], answer('a.pdf')['error'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs markitdown: pip install 'munjang[office]'" in done.stdout
    assert "needs pypdfium2: pip install 'munjang[office]'" in done.stdout
