"""The pictures of the learning path, in English and Korean: python -m docs.site.pictures writes docs/learn/images/."""

import math
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "learn/images"
INK, SOFT, BLUE, RED, GREEN, PAPER = "#1f2328", "#5d646c", "#24527a", "#b93a2b", "#2a7048", "#faf8f4"
WASH = {BLUE: "#e6eef5", RED: "#fae9e6", GREEN: "#e5f2ea", SOFT: "#f2efe8"}
FONT = "Pretendard, 'Noto Sans KR', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', 'Malgun Gothic', system-ui, sans-serif"
Words = Callable[[str, str], str]  # English, Korean -> the one that is drawn


def text(x: float, y: float, words: str, size: int = 15, colour: str = INK, anchor: str = "middle") -> str:
    """Write words around a point."""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, words: str, colour: str = BLUE, height: float = 36) -> str:
    """Draw a box with words in it."""
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{WASH[colour]}" '
        f'stroke="{colour}" stroke-width="1.5"/>'
    )
    return frame + text(x + width / 2, y + height / 2 + 5, words, colour=colour)


def arrow(x: float, y: float, to_x: float, to_y: float, colour: str = SOFT) -> str:
    """Draw an arrow."""
    angle = math.atan2(to_y - y, to_x - x)
    wings = " ".join(
        f"{to_x - 9 * math.cos(angle + turn):.1f},{to_y - 9 * math.sin(angle + turn):.1f}" for turn in (-0.45, 0.45)
    )
    line = f'<path d="M{x} {y}L{to_x} {to_y}" stroke="{colour}" stroke-width="1.8" fill="none"/>'
    return line + f'<polygon points="{to_x},{to_y} {wings}" fill="{colour}"/>'


def dot(x: float, y: float, colour: str = BLUE, radius: float = 6) -> str:
    """Draw a point."""
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>'


def words(say: Words) -> Iterator[str]:
    """Draw tokens, their vectors, and three ways to one vector."""
    tokens = say("[CLS] I went to school [SEP]", "[CLS] 나는 학교에 갔다 [SEP]").split()
    width = 640 / len(tokens)
    for place, token in enumerate(tokens):
        x = 40 + place * width
        yield box(x + 6, 20, width - 12, token, SOFT if token.startswith("[") else BLUE)
        yield arrow(x + width / 2, 58, x + width / 2, 84)
    yield box(46, 86, 628, say("encoder: 12 layers of attention", "인코더: 어텐션 열두 층"), BLUE)
    for place in range(len(tokens)):
        x = 40 + (place + 0.5) * width
        yield arrow(x, 124, x, 146)
        yield "".join(
            f'<rect x="{x - 28 + 14 * cell}" y="148" width="14" height="16" fill="{BLUE}" '
            f'opacity="{0.25 + 0.2 * ((cell * 3 + place * 2) % 4)}" stroke="{PAPER}"/>'
            for cell in range(4)
        )
    ways = (
        (say("CLS: the first", "CLS: 맨 앞"), 150),
        (say("mean: the average", "mean: 평균"), 360),
        (say("max: the largest", "max: 최댓값"), 570),
    )
    for name, x in ways:
        yield arrow(x, 172, x, 204, RED)
        yield box(x - 92, 206, 184, name, RED)


def objectives(say: Words) -> Iterator[str]:
    """Draw one encoder used twice, and what the softmax, cosine and triplet objectives look at."""
    for x, letter, sentence in ((40, "u", say("sentence A", "문장 A")), (200, "v", say("sentence B", "문장 B"))):
        yield box(x, 210, 130, sentence, SOFT)
        yield arrow(x + 65, 208, x + 65, 178)
        yield box(x, 140, 130, say("encoder", "인코더"), BLUE)
        yield arrow(x + 65, 138, x + 65, 112)
        yield box(x + 35, 76, 60, letter, BLUE)
    yield text(185, 163, "=", 18, RED)
    yield text(185, 268, say("the same weights twice", "같은 가중치를 두 번"), 13, SOFT)
    rows = (
        (
            say("softmax over (u, v, |u−v|)", "(u, v, |u−v|)의 소프트맥스"),
            say("entailment? neutral? contradiction?", "함의? 중립? 모순?"),
        ),
        (say("regression: cos(u, v)", "회귀: cos(u, v)"), say("close to a person's score", "사람의 점수에 가깝게")),
        (
            say("triplet: |a−p| + 1 < |a−n|", "삼중항: |a−p| + 1 < |a−n|"),
            say("nearer to the right one by a margin", "맞는 쪽이 여백만큼 가깝게"),
        ),
    )
    for place, (name, what) in enumerate(rows):
        y = 44 + place * 78
        yield box(400, y, 290, name, (RED, GREEN, BLUE)[place])
        yield text(545, y + 56, what, 13, SOFT)


def stages(say: Words) -> Iterator[str]:
    """Draw the two stages of training and the measurement."""
    steps = (
        (say("plain encoder", "배우지 않은 인코더"), SOFT),
        (say("NLI: three labels", "NLI: 이름표 셋"), RED),
        (say("STS: a score", "STS: 점수"), GREEN),
        (say("sentence encoder", "문장 인코더"), BLUE),
    )
    for place, (name, colour) in enumerate(steps):
        yield box(20 + place * 178, 50, 150, name, colour, 48)
        if place:
            yield arrow(20 + place * 178 - 26, 74, 20 + place * 178 - 3, 74)
    yield text(273, 130, say("what follows from what", "무엇이 무엇에서 따라 나오는가"), 13, SOFT)
    yield text(451, 130, say("how alike, 0 to 5", "얼마나 비슷한가, 0~5"), 13, SOFT)
    for x in (95, 273, 451, 629):
        yield arrow(x, 142, x, 166)
    yield box(
        20,
        168,
        684,
        say(
            "the same test each time: Spearman on pairs never trained on",
            "매번 같은 시험: 배우지 않은 쌍으로 스피어만 상관",
        ),
        SOFT,
    )


def encoders(say: Words) -> Iterator[str]:
    """Draw a bi-encoder beside a cross-encoder."""
    yield text(170, 30, say("bi-encoder", "바이 인코더"), 17, BLUE)
    for x, name in ((40, say("question", "질문")), (190, say("document", "문서"))):
        yield box(x, 200, 110, name, SOFT)
        yield arrow(x + 55, 198, x + 55, 164)
        yield box(x, 126, 110, say("encoder", "인코더"), BLUE)
        yield arrow(x + 55, 124, 170, 92)
    yield box(110, 54, 120, say("cosine", "코사인"), BLUE)
    yield text(170, 262, say("n encodings: documents once, ahead", "인코딩 n번, 문서는 미리 한 번만"), 13, SOFT)
    yield text(540, 30, say("cross-encoder", "크로스 인코더"), 17, RED)
    yield box(420, 200, 240, say("question [SEP] document", "질문 [SEP] 문서"), SOFT)
    yield arrow(540, 198, 540, 164)
    yield box(420, 126, 240, say("encoder reads both together", "둘을 함께 읽는 인코더"), RED)
    yield arrow(540, 124, 540, 92)
    yield box(480, 54, 120, say("score", "점수"), RED)
    yield text(540, 262, say("a pass for every pair: n² / 2", "쌍마다 한 번씩: n² / 2"), 13, SOFT)


def search(say: Words) -> Iterator[str]:
    """Draw the way of a query through an index."""
    yield box(20, 20, 130, say("your files", "내 파일"), SOFT)
    yield arrow(152, 38, 184, 38)
    yield box(186, 20, 150, say("passages", "구절로 자르기"), SOFT)
    yield arrow(338, 38, 370, 38)
    yield box(372, 20, 330, say("index: words and vectors", "색인: 낱말과 벡터"), BLUE)
    yield box(20, 130, 130, say("question", "질문"), RED)
    yield arrow(152, 140, 244, 116)
    yield arrow(152, 156, 244, 180)
    yield box(246, 94, 150, say("words (BM25)", "낱말 (BM25)"), BLUE)
    yield box(246, 164, 150, say("meaning (cosine)", "의미 (코사인)"), BLUE)
    yield arrow(398, 116, 450, 140)
    yield arrow(398, 180, 450, 156)
    yield box(452, 130, 100, say("fuse", "합치기"), GREEN)
    yield arrow(554, 148, 586, 148)
    yield box(588, 130, 114, say("re-rank", "다시 줄 세우기"), RED)
    yield arrow(470, 58, 330, 92)
    yield arrow(500, 58, 380, 162)


def languages(say: Words) -> Iterator[str]:
    """Draw a teacher, a student, and both languages in one space."""
    yield box(20, 30, 190, "The cat sleeps.", SOFT)
    yield box(20, 130, 190, "고양이가 잔다.", SOFT)
    yield arrow(212, 48, 262, 48)
    yield box(264, 30, 130, say("teacher", "선생님"), BLUE)
    yield arrow(212, 58, 262, 132)
    yield arrow(212, 148, 262, 148)
    yield box(264, 130, 130, say("student", "학생"), RED)
    yield arrow(396, 48, 520, 84)
    yield arrow(396, 142, 520, 96)
    yield arrow(396, 154, 526, 104)
    yield f'<circle cx="600" cy="96" r="84" fill="{WASH[SOFT]}" stroke="{SOFT}"/>'
    yield dot(536, 90, BLUE) + dot(548, 98, RED) + dot(540, 106, RED)
    yield dot(640, 60, BLUE) + dot(648, 70, RED) + dot(634, 134, BLUE) + dot(644, 142, RED)
    yield text(
        600, 204, say("one space: a sentence and its translation meet", "하나의 공간: 문장과 번역이 만난다"), 13, SOFT
    )
    yield text(329, 204, say("distance between the vectors = the loss", "벡터 사이의 거리 = 손실"), 13, SOFT)


def domain(say: Words) -> Iterator[str]:
    """Draw the three ways to a domain by what they need."""
    rows = (
        (
            say("only texts", "글만 있을 때"),
            say("adapt: masked, denoising, SimCSE", "적응: 빈칸, 복원, SimCSE"),
            SOFT,
            say("measure: it may harm", "재 볼 것: 해로울 수 있다"),
        ),
        (
            say("a few scored pairs", "점수가 있는 쌍 조금"),
            say("fine-tune: regression, CoSENT", "미세 조정: 회귀, CoSENT"),
            GREEN,
            say("learns the words of the field", "분야의 말을 배운다"),
        ),
        (
            say("questions and answers", "질문과 답"),
            say("in-batch and hard negatives", "배치 안 음성, 어려운 음성"),
            BLUE,
            say("learns to search", "찾는 법을 배운다"),
        ),
    )
    for place, (have, do, colour, get) in enumerate(rows):
        y = 24 + place * 66
        yield box(16, y, 176, have, SOFT)
        yield arrow(194, y + 18, 222, y + 18)
        yield box(224, y, 256, do, colour)
        yield arrow(482, y + 18, 508, y + 18)
        yield text(516, y + 23, get, 13, SOFT, "start")


def build(say: Words) -> Iterator[str]:
    """Draw what grows out of vectors."""
    yield box(280, 110, 160, say("sentence vectors", "문장 벡터"), BLUE, 44)
    around = (
        (say("keywords", "핵심어"), 40, 24),
        (say("topics", "주제"), 290, 16),
        (say("clusters", "군집"), 540, 24),
        (say("duplicates", "중복"), 40, 206),
        (say("labels", "분류"), 290, 214),
        (say("recommendations", "추천"), 540, 206),
    )
    for name, x, y in around:
        yield arrow(
            360 + (x - 290) * 0.28,
            108 if y < 100 else 156,
            x + 70 + (x < 100) * 40 - (x > 500) * 40,
            y + (38 if y < 100 else -3),
        )
        yield box(x, y, 140, name, GREEN)


PICTURES = {
    "words": (words, 256),
    "objectives": (objectives, 284),
    "stages": (stages, 224),
    "encoders": (encoders, 282),
    "search": (search, 224),
    "languages": (languages, 224),
    "domain": (domain, 216),
    "build": (build, 268),
}


def drawn(name: str, is_korean: bool) -> str:
    """Return a picture as SVG, on paper so that it reads well in light and dark."""
    draw, height = PICTURES[name]
    parts = "\n".join(draw(lambda english, korean: korean if is_korean else english))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" font-family="{FONT}">\n'
        f'<rect width="720" height="{height}" rx="12" fill="{PAPER}"/>\n{parts}\n</svg>\n'
    )


def main() -> int:
    """Write all pictures."""
    for name in PICTURES:
        (IMAGES / f"{name}.svg").write_text(drawn(name, False), encoding="utf-8")
        (IMAGES / f"{name}.ko.svg").write_text(drawn(name, True), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
