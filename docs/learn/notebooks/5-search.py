# %% [markdown]
# # 5. 내 문서에서 의미로 찾기 · Search your own documents
#
# 설명은 사이트의 5장에 있습니다. The text is chapter 5 of the site; run this in a checkout of the repository.

# %% setup
from pathlib import Path

ROOT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "docs/learn/data").is_dir())
DATA = ROOT / "docs/learn/data"

# %% files
import tempfile

folder = Path(tempfile.mkdtemp())
notes = folder / "notes"
notes.mkdir()
FILES = {
    "휴가.txt": "연차는 사흘 전까지 팀장에게 신청합니다. 반차는 당일에도 쓸 수 있습니다.",
    "비품.txt": "의자나 모니터가 고장 나면 총무팀에 수리를 맡깁니다.",
    "출장.txt": "교통비는 영수증을 붙여 월말까지 청구합니다. 숙박비는 하루 십만 원까지입니다.",
    "주차.txt": "손님 차는 지하 2층에 세웁니다.",
    "visitors.txt": "Guests sign in at the front desk and wear a badge.",
}
for name, text in FILES.items():
    _ = (notes / name).write_text(text, encoding="utf-8")

# %% build
from munjang.cli import main

_ = main(["index", "build", str(folder / "notes-index"), str(notes)])  # munjang index build notes-index notes/

# %% search
from munjang import CrossEncoder, Index

index = Index.open(folder / "notes-index")
for query in ("쉬고 싶을 때는 어떻게 해요?", "모니터가 안 켜져요", "방문객은 어떻게 들어오나요?"):
    hit = index.search(query, k=1)[0]
    print(f"{query}\n  → {hit.text}  ({Path(hit.document_id).name})")

# %% ways
for by in ("words", "dense", ("words", "dense")):
    hits = index.search("의자 고치기", k=2, by=by)
    print(f"{by!s:22}", [(Path(hit.document_id).name, round(hit.score, 2)) for hit in hits])

# %% rerank
scorer = CrossEncoder.load()
index.search("택시비는 어떻게 돌려받나요?", k=3, rerank=scorer)

# %% change
_ = (notes / "주차.txt").write_text("손님 차는 이제 지상 1층에 세웁니다.", encoding="utf-8")
_ = main(["index", "build", str(folder / "notes-index"), str(notes)])  # 바뀐 것만 읽는다 · reads only what changed
with Index.open(folder / "notes-index") as index:
    print(index.search("주차장이 어디예요?", k=1)[0].text)
