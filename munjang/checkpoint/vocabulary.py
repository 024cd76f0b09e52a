"""Take tokens out of tokenizer.json: which have to stay for the same segmentation, and the file rewritten.

Tokens are only ever taken away, and that is why a text whose tokens all stay is cut as before:

- WordPiece takes the longest token that fits, from the left: it is still there, and no longer one came.
- Unigram takes the best path: it is still there, and no better one came. What an unknown character costs depends on
  the smallest score of the vocabulary, so that token stays too.
- BPE joins the pair of the lowest rank again and again: every join on the way to a kept token stays, with both parts.

Single characters of the kept tokens stay as well, so that other words of the same script still have tokens.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from munjang.errors import UnsupportedModel

Spec = dict[str, Any]  # tokenizer.json, or a part of it
Ids = Mapping[str, int]  # token -> id


def vocab_of(spec: Spec) -> dict[str, int]:
    """Return the id of every token of the model and every added token by its spelling."""
    model = spec["model"]
    if model.get("type") not in NEEDED_TOKENS:
        raise UnsupportedModel(
            f"A vocabulary of type {model.get('type')!r} can't be pruned; only {', '.join(NEEDED_TOKENS)} can."
        )
    vocab = model["vocab"]
    own = {token: token_id for token_id, (token, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
    return own | {entry["content"]: entry["id"] for entry in spec.get("added_tokens") or []}


def needed(spec: Spec, used: Iterable[str]) -> set[str]:
    """Return the tokens that have to stay where these are used: those, what leads to them, characters, special ones."""
    model, vocab = spec["model"], vocab_of(spec)
    names = {token_id: token for token, token_id in vocab.items()}
    kept = {entry["content"] for entry in spec.get("added_tokens") or []}
    kept |= {names[token_id] for token_id in _ends(spec.get("post_processor")) if token_id in names}
    if model.get("unk_token") is not None:
        kept.add(model["unk_token"])
    if model.get("byte_fallback"):
        kept |= {f"<0x{byte:02X}>" for byte in range(256)}
    return {token for token in NEEDED_TOKENS[model["type"]](spec, vocab, set(used)) | kept if token in vocab}


def _word_piece(spec: Spec, vocab: Ids, used: set[str]) -> set[str]:
    prefix = spec["model"].get("continuing_subword_prefix", "##")
    characters = {character for token in used for character in token.removeprefix(prefix)}
    return used | characters | {prefix + character for character in characters}


def _unigram(spec: Spec, vocab: Ids, used: set[str]) -> set[str]:
    pairs = spec["model"]["vocab"]
    unknown = spec["model"].get("unk_id")
    special = {min(pairs, key=lambda pair: pair[1])[0]} if pairs else set()
    special |= set() if unknown is None else {pairs[unknown][0]}
    return used | set("".join(used)) | special


def _bpe(spec: Spec, vocab: Ids, used: set[str]) -> set[str]:
    model = spec["model"]
    made_of: dict[str, list[tuple[str, str]]] = {}
    for left, right in merges_of(model):
        made_of.setdefault(_joined(model, left, right), []).append((left, right))
    # a token may come about in several ways; all of them stay, as any word may take any of them
    kept, waiting = set(), {token for token in used if token in vocab}
    while waiting:
        token = waiting.pop()
        kept.add(token)
        waiting |= {part for pair in made_of.get(token, ()) for part in pair} - kept
    steps = json.dumps([spec.get("normalizer"), spec.get("pre_tokenizer")])
    return kept | (set(ByteLevel.alphabet()) if '"ByteLevel"' in steps else set("".join(kept)))


NEEDED_TOKENS: dict[str, Callable[[Spec, Ids, set[str]], set[str]]] = {
    "WordPiece": _word_piece,
    "Unigram": _unigram,
    "BPE": _bpe,
}


def merges_of(model: Spec) -> list[tuple[str, str]]:
    """Return the merges of a BPE model, which older files spell as one string each."""
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    return [(left, right) for left, right in pairs]


def _joined(model: Spec, left: str, right: str) -> str:
    return left + right.removeprefix(model.get("continuing_subword_prefix") or "")


def rewrite(spec: Spec, new_ids: Ids) -> Spec:
    """Return tokenizer.json with these tokens alone, under these ids."""
    model, old = dict(spec["model"]), vocab_of(spec)
    vocab = model["vocab"]
    if isinstance(vocab, list):
        kept = [pair for pair in vocab if pair[0] in new_ids]
        model["vocab"] = sorted(kept, key=lambda pair: new_ids[pair[0]])
        if model.get("unk_id") is not None:
            model["unk_id"] = new_ids[vocab[model["unk_id"]][0]]
    else:
        model["vocab"] = {token: new_ids[token] for token in vocab if token in new_ids}
    if "merges" in model:
        pairs = merges_of(model)
        model["merges"] = [list(pair) for pair in pairs if {*pair, _joined(model, *pair)} <= new_ids.keys()]
    added = [{**entry, "id": new_ids[entry["content"]]} for entry in spec.get("added_tokens") or []]
    new_of = {token_id: new_ids[token] for token, token_id in old.items() if token in new_ids}
    ends = _renumber(spec.get("post_processor"), new_of)
    return {
        **spec,
        "model": model,
        "added_tokens": sorted(added, key=lambda entry: entry["id"]),
        "post_processor": ends,
    }


def _ends(step: Spec | None) -> set[int]:
    """Return the ids that the post_processor puts around a text."""
    if step is None:
        return set()
    ids = {token_id for entry in (step.get("special_tokens") or {}).values() for token_id in entry["ids"]}
    ids |= {step[key][1] for key in ("cls", "sep") if key in step}
    return ids.union(*map(_ends, step.get("processors", ())))


def _renumber(step: Spec | None, new_of: Mapping[int, int]) -> Spec | None:
    if step is None:
        return None
    step = dict(step)
    if "processors" in step:
        step["processors"] = [_renumber(inner, new_of) for inner in step["processors"]]
    for key in {"cls", "sep"} & step.keys():
        step[key] = [step[key][0], new_of[step[key][1]]]
    if "special_tokens" in step:
        step["special_tokens"] = {
            name: {**entry, "ids": [new_of[token_id] for token_id in entry["ids"]]}
            for name, entry in step["special_tokens"].items()
        }
    return step
