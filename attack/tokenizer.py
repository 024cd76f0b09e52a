"""Tokenizer: hostile texts get the ids that the `tokenizers` package gives by the unchanged tokenizer.json.

The oracle is that package as its authors build it: nothing of our look-up, or of our changes, is in it.
"""

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as Oracle

from attack.verdict import Verdict
from benchmarks.models import fill_model
from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.text.tokenizer import Tokenizer
from tests.models import make_tokenizer
from tests.texts import HOSTILE, hostile

NUM_TEXTS = 250_000  # of each tokenizer, at scale 1
BATCH = 2000
MIXED = ("wordpiece", "unigram", "bytelevel")


def run(options: argparse.Namespace) -> Verdict:
    """Compare every kind of tokenizer, small ones and that of a real model."""
    verdict = Verdict("tokenizer")
    fill_model(options)
    number = max(BATCH, round(NUM_TEXTS * options.scale))
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for kind in MIXED:
            files[kind] = Path(folder) / f"{kind}.json"
            make_tokenizer(kind).save(str(files[kind]))
        files[options.name] = Path(options.model) / "tokenizer.json"
        bundled = checkpoint.default("bi")
        files[str(bundled)] = Path(checkpoint.resolve(bundled, BiEncoder.hub)) / "tokenizer.json"
        for name, path in files.items():
            verdict.counts[name] = _compare(name, path, number, options.seed, verdict)
    return verdict


def _compare(name: str, path: Path, number: int, seed: int, verdict: Verdict) -> dict[str, int]:
    oracle, ours = Oracle.from_file(str(path)), Tokenizer(Oracle.from_file(str(path)))
    oracle.no_padding()
    oracle.no_truncation()
    num_wrong = num_texts = 0
    draws = random.Random(seed)
    while num_texts < number:
        texts = [*HOSTILE, *hostile(BATCH, seed=draws.randrange(10**9))]
        texts = [_clean(text) for text in texts]
        tokens = ours(texts)
        found = np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])
        expected = oracle.encode_batch(texts)
        wrong = [at for at, ids in enumerate(found) if ids.tolist() != expected[at].ids]
        if wrong and not num_wrong:
            verdict.expect(False, f"{name}: {texts[wrong[0]]!r:.120} has other ids")
        num_wrong += len(wrong)
        num_texts += len(texts)
    return {"texts": num_texts, "other ids": num_wrong}


def _clean(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8, as both sides must."""
    return "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)
