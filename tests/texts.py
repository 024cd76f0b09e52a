"""Texts for tests: Korean and English of mixed lengths, and hostile ones."""

import csv
import random
from pathlib import Path

_ENGLISH = """the a quick brown fox jumps over lazy dogs while seventeen engineers measure how fast light travels
through glass and water in winter nobody wanted to eat cold soup but everyone did because kitchens
were closed and restaurants too music played softly from an old radio that someone had repaired
twice before breakfast don't can't it's we'll 42 1999 3.14 hello world semantic search finds similar
sentences among millions of documents (really) "quoted" co-operate
"""
_KOREAN = """나는 오늘 아침에 학교에 갔다 날씨가 매우 좋았고 바람이 불었다 서울은 대한민국의 수도이며 인구가 많다
문장을 벡터로 바꾸면 비슷한 뜻을 가진 문장을 찾을 수 있다 어제 먹은 김치찌개는 정말 맛있었어요 다음에 또
가고 싶습니다 컴퓨터가 느려서 작업을 끝내지 못했다 책을 읽는 사람은 세상을 넓게 본다 2024년 12월
영화 재미없다 ㅋㅋㅋ 안녕하세요 감사합니다
"""
ENGLISH, KOREAN = _ENGLISH.split(), _KOREAN.split()

HOSTILE = [
    "",
    " ",
    "\n\t ",
    " leading",
    "trailing ",
    "two  spaces   three",
    "tab\tand\nnewline\r\nand\u00a0no-break\u3000wide",
    "[MASK] at the start",
    "in the [MASK] middle",
    "glued[SEP]together [CLS]",
    "<s> roberta </s> <mask> <pad> <unk>",
    "x<mask> y <mask>z <MASK>",
    "한글 자모 한글",
    "각 각 ㄱㅏㄱ",
    "e\u0301 a \u0301b o\u0308\u0304 \u0308 x",
    "👨‍👩‍👧‍👦 👍🏽 🏽 🇰🇷 ❤️ 1️⃣",
    "control \x00 \x01 \x1f \x7f \x80 \x9f end",
    "lone \ud800 surrogates \udfff here\ud83d",
    "\u200f שלום \u200e عربي \u202e reversed \u202c",
    "\u0600 123 \u06dd ൎ ക",
    "▁metaspace ▁ ▁▁ a▁b",
    "a ¨b ´c ¸d ˘e ﷺ ﷻ",
    "zero\u200bwidth\ufeffbom\u2060joiner\u00adsoft",
    "中文 字符 日本語 テスト ﾊﾝｶｸ ﾞ ﾟx",
    "ก ำ น้ำ ລ ຳ",
    "' 's 've I'm you'll  'll can't  't",
    "1 2 33 4a b5 ½ Ⅷ ²",
    "ﬁ ﬂ ＡＢＣ ｶﾞ ㈜ ㎏ …",
    "\ufffd \ufffdx x\ufffd y",
    "x" * 10000 + " y",
    "가" * 10000,
    "a " * 3000,
    "\U000e0001\U000e0020tags \U0010ffff \ue000",
]

# What hostile texts are made of: spaces of all kinds next to everything that a tokenizer treats in its own way
PIECES = [
    *([" "] * 12),
    *("  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x0b", "\x85", "\u200b", "\ufeff"),
    *("a", "the", "fox", "X", "don't", "'s", "'", "''", "``", '"', ".", "1", "42", "½", "Ⅷ", "_", "▁", "▁▁", "##ing"),
    *("가", "각", "한글", "ㄱ", "ㅏ", "\u1100", "\u1161", "\u11a8", "\u1100\u1161\u11a8", "갂\u11a8", "ﾞ", "ﾊ", "ﾟ"),
    *("é", "e\u0301", "\u0301", "\u0308", "ö\u0304", "\u0345", "¨", "´", "ͺ", "\u0363", "\u20dd", "\u034f"),
    *("İ", "ı", "ß", "Σ", "σΣ", "ς", "ŉ", "ǰ", "ﬁ", "ﷺ", "㈜", "㎏", "…", "Å", "Ω", "ﾡ", "\u3164", "\u115f"),
    *("中", "文字", "か\u3099", "\u3099", "ｶﾞ", "𠀀", "ก", "ำ", "ำ้", "ລຳ", "ൎ", "\u0d4eക", "क्षि", "\u093f", "\u094d"),
    *(
        "👨\u200d👩\u200d👧",
        "👍🏽",
        "🏽",
        "🇰",
        "🇰🇷",
        "\ufe0f",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        "\u200d",
        "\U000e0041",
        "😀",
    ),
    *(
        "\x00",
        "\x01",
        "\x1f",
        "\x7f",
        "\x9f",
        "\u00ad",
        "\u0600",
        "\u06dd",
        "\u070f",
        "\u08e2",
        "\ufffe",
        "\U0010ffff",
        "\ue000",
    ),
    *("\u200e", "\u200f", "\u202e", "\u2066", "שלום", "عربي", "\u0378", "\ufffd", "\ud800", "\udfff", "\ud83d\ude00"),
    *(
        "[MASK]",
        "[CLS]",
        "[SEP]",
        "[mask]",
        "<s>",
        "</s>",
        "<mask>",
        "<unk>",
        "<pad>",
        "<MASK>",
        "[UNK]",
        "[PAD",
        "sk>",
    ),
    *("x" * 63, "y" * 64, "z" * 65, "가" * 101),
]


def hostile(count: int, seed: int = 0, longest: int = 12) -> list[str]:
    """Random texts of PIECES."""
    random_ = random.Random(seed)
    return ["".join(random_.choices(PIECES, k=random_.randint(1, longest))) for _ in range(count)]


def mixed(count: int, seed: int = 0, longest: int = 120) -> list[str]:
    """Random texts, half English and half Korean, mostly short, some long."""
    random_ = random.Random(seed)
    texts = []
    for row in range(count):
        words = ENGLISH if row % 2 else KOREAN
        texts.append(" ".join(random_.choice(words) for _ in range(1 + int(random_.random() ** 3 * longest))))
    return texts


def natural(count: int) -> list[str]:
    """Passages of the demo's corpus, Korean and English in turns."""
    path = Path(__file__).parents[1] / "examples/demo/corpus.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    korean = [text for text in texts if any("가" <= letter <= "힣" for letter in text)]
    english = [text for text in texts if text.isascii()]
    return [text for pair in zip(korean, english, strict=False) for text in pair][:count]
