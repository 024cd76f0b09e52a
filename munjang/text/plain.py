"""Plain words straight to a tokenizer's model, without the steps in front of it.

`tokenizers` spends up to half of its time on normal forms, added tokens and on turning spaces into `▁`. A row of words
needs none of that if each character comes out of the normalizer in a way that its neighbours don't change, which a
table then does for all at once: the ranges below hold no marks, no jamo and nothing else that joins a neighbour, and no
character counts that begins an added token or what a rule replaces. Such rows go to a second tokenizer, which has the
model of the first and no other steps; the model is shared, not copied.

Where the ids of each word begin is seen by the pieces. The first one of a word has `▁` or `Ġ` in front and no other
has; in WordPiece the first one of each run of letters and each mark of punctuation has no `##`, and those are counted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordPiece

from munjang.text import structures

# ASCII, Latin, Cyrillic, punctuation, stars and hearts, quotation marks, single jamo (ㅋㅋ), wide ASCII
RANGES = ((0x21, 0x7E), (0xA1, 0x17F), (0x400, 0x481), (0x48A, 0x52F), (0x2010, 0x2027), (0x203B, 0x203B))
MORE = ((0x25A0, 0x266F), (0x3001, 0x3003), (0x3008, 0x3011), (0x3131, 0x318E), (0xFF01, 0xFF5E))
LARGE = ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3))  # plain as they are or not at all
MAX_WORD = 64  # characters
ROW = 128  # words in one text, of more than
ALONE = 512  # words: one text is tokenized in this thread, and waking others costs as much as 20 words
TEXTS = 32  # joined into one
SEPARATORS = "‡†§¶•^~|`zqx"  # rare ones first; the one with the fewest tokens is taken
MARKS = {"metaspace": "▁", "bytelevel": "Ġ"}  # how the first piece of a word begins


class PlainWords:
    """Tokenizes words that are plain; of a byte-level tokenizer those with their space in front."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure, added: Iterable[str]) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.normalize = (lambda text: text) if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str
        firsts = {text[0] for text in (*added, *structures.replaced(tokenizer)) if text}
        shown = self._shown(firsts | {case for first in firsts for case in first.lower() + first.upper()})
        self.table = {ord(character): other for character, other in shown.items() if other != character}
        changed = re.escape("".join(map(chr, self.table)))
        self.changes = re.compile(f"[{changed}]+") if changed else None
        self.lowers = all(shown[letter] == letter.lower() for letter in shown if letter.isascii())
        plain = re.escape("".join(shown)) + self._large(firsts)
        word = f"[{plain}]{{1,{MAX_WORD}}}+"  # possessive: nothing to be remembered of a long row
        row = f"(?: {word})++" if structure.keeps_space else f"{word}(?: {word})*+"
        can_be_cut = bool(plain) and self._can_be_cut()
        self.is_row = re.compile(row if can_be_cut else "(?!)").fullmatch  # of one word or more
        self.gap = "" if structure.keeps_space else " "  # between the words of such a row
        self.find_runs = re.compile(self._runs("".join(chain.from_iterable(shown.values())))).findall
        self.model = Tokenizer(tokenizer.model)
        if structure.name != "metaspace":
            self.model.pre_tokenizer = tokenizer.pre_tokenizer
        else:
            self.model.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="never")
        self.separator, self.separator_ids = self._separator(shown) if can_be_cut else ("", [-1])
        self.begins = bytearray(tokenizer.get_vocab_size() + 1)  # by id: 0 not asked yet, 1 begins a word, 2 not

    def are_plain(self, words: list[str]) -> bool:
        """Whether all of these are plain words."""
        row = self.gap.join(words)
        return self.is_row(row) is not None and row.count(" ") == len(words) - len(self.gap)

    def __call__(self, words: list[str]) -> tuple[list[int], list[int]] | None:
        """Flat ids and how many each word has; nothing if they can't be told apart."""
        size = ROW if len(words) > ALONE else ALONE
        rows = [self._show(self.gap.join(words[start : start + size])) for start in range(0, len(words), size)]
        ids = list(chain.from_iterable(self._encode(rows)))
        lengths = [len(rest) + 1 for rest in self._kinds(ids).split(b"\1")[1:]]
        if self.structure.name == "wordpiece":
            lengths = self._by_word(lengths, chain.from_iterable([row.split(" ") for row in rows]))
        return (ids, lengths) if len(lengths) == len(words) and sum(lengths) == len(ids) else None

    def texts(self, texts: Sequence[str]) -> list[list[int]] | None:
        """Ids of each of these plain texts; nothing if they can't be told apart."""
        if self.structure.keeps_space or not (self.separator or len(texts) == 1):
            return None
        if len(texts) == 1:
            return self._encode([self._show(texts[0])])
        rows = [f" {self.separator} ".join(texts[start : start + TEXTS]) for start in range(0, len(texts), TEXTS)]
        return self._cut(self._encode(list(map(self._show, rows))), len(texts))

    def _cut(self, ids_R: list[list[int]], num_texts: int) -> list[list[int]] | None:
        """Rows at their separators."""
        mark, bodies = self.separator_ids[-1], list[list[int]]()
        for ids in ids_R:
            begin = 0
            for _ in range(ids.count(mark)):
                end = ids.index(mark, begin)
                bodies.append(ids[begin : end + 1 - len(self.separator_ids)])
                begin = end + 1
            bodies.append(ids[begin:])
        return bodies if len(bodies) == num_texts else None  # more: a text has the separator, too

    def _encode(self, rows: list[str]) -> list[list[int]]:
        if self.structure.name == "metaspace":
            rows = ["▁" + row.replace(" ", "▁") for row in rows]
        return [found.ids for found in self.model.encode_batch_fast(rows, add_special_tokens=False)]

    def _show(self, row: str) -> str:
        """What the normalizer makes of a row of plain words."""
        if row.isascii() and self.lowers:
            return row.lower()
        return row if self.changes is None else self.changes.sub(lambda found: found[0].translate(self.table), row)

    def _kinds(self, ids: list[int]) -> bytes:
        """For each id 1 if it is of a first piece, else 2."""
        begins, last = self.begins, max(ids, default=0)
        if last >= len(begins):  # a vocabulary with gaps between its ids
            self.begins = begins = begins + bytes(last + 1)
        known = bytes(map(begins.__getitem__, ids))
        if 0 not in known:
            return known
        mark = MARKS.get(self.structure.name) or self._prefix()
        if_marked, if_not = (2, 1) if self.structure.name == "wordpiece" else (1, 2)
        new = list({token for token, kind in zip(ids, known, strict=True) if not kind})
        for token, piece in zip(new, self._pieces(new), strict=True):
            begins[token] = if_marked if piece.startswith(mark) else if_not
        return bytes(map(begins.__getitem__, ids))

    def _pieces(self, ids: list[int]) -> list[str]:
        pieces = self.model.decode(ids, skip_special_tokens=False).split(" ")  # faster than one by one
        return pieces if len(pieces) == len(ids) else [str(self.model.id_to_token(token)) for token in ids]

    def _by_word(self, lengths: list[int], words: Iterable[str]) -> list[int]:
        """Ids of each word from those of each of its runs."""
        runs = iter(lengths)
        return [
            next(runs, 0) if word.isalnum() else sum(islice(runs, len(self.find_runs(word)))) for word in words
        ]  # some are left over, and the sum is too small, if there are more runs than counted

    def _separator(self, shown: Mapping[str, str]) -> tuple[str, list[int]]:
        """A character and its ids, of which the last one is not among the others; none: an empty one."""
        best: tuple[str, list[int]] = ("", [-1])
        for sign in SEPARATORS:
            if shown.get(sign) != sign:
                continue
            try:
                ids = self._encode([sign])[0]
            except Exception:  # a bare one: it is unknown, and the vocabulary has no token for that
                continue
            is_known = ids and str(self.tokenizer.id_to_token(ids[-1])).endswith(sign) and ids.count(ids[-1]) == 1
            if is_known and (not best[0] or len(ids) < len(best[1])):
                best = sign, ids
        return best

    def _prefix(self) -> str:
        model = self.tokenizer.model
        return str(model.continuing_subword_prefix) if isinstance(model, WordPiece) else ""

    def _can_be_cut(self) -> bool:
        """Whether first pieces can be told from others."""
        if self.structure.name != "wordpiece":
            return self.tokenizer.token_to_id(MARKS[self.structure.name]) is not None
        model, prefix = self.tokenizer.model, self._prefix()
        is_sign = len(prefix) > 1 and prefix.isascii() and not any(map(str.isalnum, prefix))  # no run begins so
        return is_sign and isinstance(model, WordPiece) and not str(model.unk_token).startswith(prefix)

    def _shown(self, excluded: set[str]) -> dict[str, str]:
        """What the normalizer makes of plain characters that are asked for one by one."""
        is_charwise, plain = structures.is_charwise(self.tokenizer), {}
        for character in (chr(code) for first, last in RANGES + MORE for code in range(first, last + 1)):
            shown = self.normalize(character)
            may_change = is_charwise or shown == character or (shown == character.lower() and character.isascii())
            is_whole = not excluded.intersection(character + shown) and not any(map(str.isspace, shown))
            if may_change and is_whole and structures.is_safe_as(character, shown, self.structure) and "▁" not in shown:
                plain[character] = shown
        return plain

    def _large(self, excluded: set[str]) -> str:
        """The large ranges that the normalizer leaves as they are."""
        ranges = ""
        for first, last in LARGE:
            every = "".join(map(chr, range(first, last + 1)))
            is_same = (
                self.normalize(every[0]) == every[0] and self.normalize(every) == every
            )  # the first says it mostly
            if is_same and excluded.isdisjoint(every):
                ranges += f"{every[0]}-{every[-1]}"
        return ranges

    def _runs(self, shown: str) -> str:
        """A pattern of what BERT's pre-tokenizer cuts plain words into: runs of letters, single marks."""
        signs = {character for character in shown if not character.isalnum()}
        splitter = self.tokenizer.pre_tokenizer
        if self.structure.name != "wordpiece" or not signs or splitter is None:
            return ".+"
        alone = {piece for piece, _ in splitter.pre_tokenize_str(" ".join(f"a{sign}a" for sign in signs))}
        marks = re.escape("".join(signs & alone))
        return f"[^{marks}]+|[{marks}]" if marks else ".+"
