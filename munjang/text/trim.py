"""Cut texts to a number of tokens at either end, as texts, so that prompts and special tokens can still be added."""

from munjang.text.tokenizer import Tokenizer


def trimmed(tokenizer: Tokenizer, text: str, max_tokens: int, keeps_end: bool = False) -> str:
    """Return the beginning of a text, or its end, that has at most `max_tokens` tokens."""
    if len(text) <= max_tokens and tokenizer.bodies([text])[1][0] <= max_tokens:
        return text
    rest = text
    while True:
        offsets = tokenizer.rust.encode(rest, add_special_tokens=False).offsets
        extra = len(offsets) - max_tokens
        if extra <= 0:
            return rest
        if max_tokens < 1:
            return ""
        # a cut inside a word may give it other tokens, and more of them: then cut again
        begin = max(offsets[extra][0], 1) if keeps_end else 0
        rest = rest[begin : None if keeps_end else min(offsets[max_tokens - 1][1], len(rest) - 1)]
