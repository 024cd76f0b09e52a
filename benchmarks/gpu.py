"""Encoding on a GPU beside sentence-transformers, in one run.

    python -m benchmarks.gpu MODEL_FOLDER TEXTS.txt [--out FILE.json] [--count 60000] [--profile]

Strings to numpy, best and median of several rounds; sentence-transformers at the best of its dtypes and batch sizes.
Host, device and whole stand beside each other, step by step. Beside it: a network of BERT-base's shape, a cross-encoder
of the model's shape, one short sentence, the device alone (batches ready, nothing tokenized), attention kernels by
length. CI has no GPU: records are kept in benchmarks/results/.
"""

import argparse
import json
import lzma
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.engine import on_device
from munjang.engine.copying import Copier
from munjang.engine.on_device import WINDOW
from munjang.engine.pack import Budget, pack_window
from munjang.engine.tokenize import Window
from munjang.nn import attention
from munjang.text.device import finish
from munjang.text.lookup.lookup import SpanLookup, by_groups
from munjang.text.packing import Packed, pack

TUNED = 5  # calls until the size of a batch is tuned and its kernels are compiled
Record = dict[str, Any]
THEIR_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
OTHER_WINDOWS = ((4096, 16384), (16384, 16384), (8192, 8192), (8192, 32768))  # the first one, the others


def timed(function: Callable[[], Any], rounds: int = 5, warm: int = 1) -> tuple[float, float]:
    """Best and median seconds; the first `warm` calls, which compile, capture and tune, are not counted."""
    for _ in range(warm):
        function()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times)


def rate(name: str, count: int, seconds: tuple[float, float], **more: Any) -> Record:
    """One line for a person, one record for the file."""
    record = {"what": name, "per_second": round(count / seconds[0]), "median": round(count / seconds[1]), **more}
    print(record, flush=True)
    return record


def incumbent(
    folder: Path, texts: list[str], sizes: tuple[int, ...] = (128, 1024), dtypes: tuple[torch.dtype, ...] = THEIR_DTYPES
) -> tuple[Record, np.ndarray]:
    """sentence-transformers at its best, and its fp32 vectors."""
    from sentence_transformers import SentenceTransformer

    best, reference = None, None
    for dtype in dtypes:
        model = SentenceTransformer(str(folder), device="cuda", model_kwargs={"dtype": dtype})
        for size in sizes:
            encode = lambda some: model.encode(some, batch_size=size, show_progress_bar=False)  # noqa: B023, E731
            encode(texts[:8192])
            start = time.perf_counter()
            vectors = encode(texts)
            seconds = time.perf_counter() - start
            found = rate(f"sentence-transformers {str(dtype)[6:]} batch {size}", len(texts), (seconds, seconds))
            best = found if best is None or found["per_second"] > best["per_second"] else best
            reference = vectors if reference is None else reference
    assert best is not None
    assert reference is not None
    return best, reference


def ours(folder: Path, texts: list[str], reference: np.ndarray | None, dtype: str | None = None) -> Record:
    """Strings to numpy; `dtype` None: the default."""
    model = BiEncoder.load(folder, "cuda", dtype)
    seconds = timed(lambda: model.encode(texts, progress=False), 11, TUNED)
    vectors = model.encode(texts, normalize=True)
    more = {} if reference is None else {"min_cosine": round(float((vectors * reference).sum(1).min()), 6)}
    return rate(f"munjang {name_of(model)}", len(texts), seconds, **more)


def name_of(model: BiEncoder | CrossEncoder) -> str:
    """Return the dtype that a model computes in."""
    return str(model.dtype).removeprefix("torch.")


def device_alone(folder: Path, texts: list[str], budgets: tuple[int, ...], dtype: str | None = None) -> list[Record]:
    """Ready batches on the device: what is left when tokenizing and copying cost nothing."""
    model, out = BiEncoder.load(folder, "cuda", dtype), []
    tokens = model.tokenizer(texts)
    for budget in budgets:
        batches = [batch.packed for batch in pack_window(Window(np.arange(len(texts)), tokens), Budget(budget))]
        there = [batch.to(model.device) for batch in batches]

        def forward(batches: list[Packed] = there) -> None:
            with torch.inference_mode(), torch.cuda.stream(model._engine.executor.stream):
                for batch in batches:
                    model.network(batch)

        for _ in range(4):
            forward()
        out.append(rate(f"device alone, {name_of(model)}, {budget} tokens", len(texts), timed(forward)))
    return out


def steps(folder: Path, texts: list[str]) -> list[Record]:
    """Measure host, device and whole beside each other, each step alone, nothing overlapping."""
    model, out, device = BiEncoder.load(folder, "cuda"), [], torch.device("cuda")
    tokenizer, lookup = model.tokenizer, model.tokenizer.on(device)
    assert lookup is not None
    assert isinstance(tokenizer.tokenize_bodies, SpanLookup)
    model.encode(texts)
    look_up, windows = (
        tokenizer.tokenize_bodies.look_up,
        [texts[at : at + WINDOW] for at in range(0, len(texts), WINDOW)],
    )

    def join_texts() -> None:
        for window in windows:
            joined = "".join(window)
            joined.encode("ascii" if joined.isascii() else "utf-16-le", "surrogatepass")
            np.fromiter(map(len, window), np.int64, len(window))

    def tokenize() -> None:
        with torch.inference_mode():
            for window in windows:
                finish(lookup(window), tokenizer)

    rows_BD, array = (
        torch.randn(len(texts), model.width, device=device),
        np.zeros((len(texts), model.width), np.float32),
    )

    def copy(target: np.ndarray) -> None:
        copier = Copier(torch.from_numpy(target), device)
        copier(rows_BD, 0)
        copier.done()

    for name, step in (
        ("host: distinct texts", lambda: list(dict.fromkeys(texts))),
        ("host: join, bytes, lengths", join_texts),
        ("host: look-up, one thread", lambda: by_groups(look_up, texts)),
        ("device: look-up", lambda: [lookup(window) for window in windows]),
        ("device: look-up, special tokens, sorting", tokenize),
        ("copy: to a known array, by pinned pieces", lambda: copy(array)),
        ("copy: to a fresh array, by pinned pieces", lambda: copy(np.empty_like(array))),
        ("copy: to a fresh array, by torch", lambda: torch.from_numpy(np.empty_like(array)).copy_(rows_BD)),
        (f"whole: strings to torch, {name_of(model)}", lambda: model.encode(texts, output="torch", progress=False)),
        (f"whole: strings to numpy, {name_of(model)}", lambda: model.encode(texts, progress=False)),
    ):
        out.append(rate(name, len(texts), timed(step, 15 if "whole" in name else 5)))
    return out + device_alone(folder, texts, (65536, 131072))


def window_sizes(folder: Path, texts: list[str]) -> list[Record]:
    """Strings to numpy with other sizes of the first window and of the others."""
    model, out = BiEncoder.load(folder, "cuda"), []
    usual = on_device.FIRST_WINDOW, on_device.WINDOW
    for first, window in (usual, *OTHER_WINDOWS):
        on_device.FIRST_WINDOW, on_device.WINDOW = first, window
        model.encode(texts)
        seconds = timed(lambda: model.encode(texts, progress=False), 9)
        name = f"a window of {first}, others of {window}"
        out.append(rate(name, len(texts), seconds, tokenized_ms=when_tokenized(model, texts)))
    on_device.FIRST_WINDOW, on_device.WINDOW = usual
    return out


def when_tokenized(model: BiEncoder, texts: list[str]) -> list[list[float]]:
    """Return when each window's tokenizing began and ended in one call, and when the call did, in milliseconds."""
    tokenize, seen = on_device.DeviceTexts.tokenize, list[list[float]]()

    def noted(units: Any, start: int) -> Any:
        begin = time.perf_counter()
        window = tokenize(units, start)
        seen.append([begin, time.perf_counter()])
        return window

    on_device.DeviceTexts.tokenize = noted  # type: ignore[method-assign]
    begin = time.perf_counter()
    model.encode(texts, progress=False)
    seen.append([begin, time.perf_counter()])
    on_device.DeviceTexts.tokenize = tokenize  # type: ignore[method-assign]
    return [[round(1000 * (moment - begin), 1) for moment in both] for both in seen]


def few(folder: Path, texts: list[str]) -> list[Record]:
    """Strings to numpy for small lists, tokenized on the device and on the host: where the one overtakes the other."""
    model, out, usual = BiEncoder.load(folder, "cuda"), [], on_device.MIN_UNITS
    for count in (64, 1024, 2048, 4096):
        for where, limit in (("device", 1), ("host", 10**9)):
            on_device.MIN_UNITS = limit
            run = lambda: model.encode(texts[:count], progress=False)  # noqa: B023, E731
            out.append(rate(f"{count} texts, tokenized on the {where}", count, timed(run, 20)))
    on_device.MIN_UNITS = usual
    return out


def profile(folder: Path, texts: list[str]) -> None:
    """Profile the device's time."""
    model = BiEncoder.load(folder, "cuda")
    model.encode(texts)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        model.encode(texts, progress=False)
    print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=25, max_name_column_width=70), flush=True)


def kernels() -> list[Record]:
    """Attention by length, 65,536 tokens, 12 heads of 32: our tiles and flash attention."""
    out = []
    for length in (8, 27, 64, 128, 256, 512):
        lengths = np.full(65536 // length, length)
        batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths).to(torch.device("cuda"))
        qkv = torch.randn(batch.num_tokens, 3, 12, 32, device="cuda", dtype=torch.bfloat16)
        with torch.inference_mode():
            both = {
                kernel.__name__: timed(lambda: [kernel(qkv, batch, None, 0.0, None) for _ in range(20)])[0] / 20  # noqa: B023
                for kernel in (attention.tiles, attention.varlen)
            }
        record = {"what": f"attention, texts of {length}", **{name: round(1e6 * s) for name, s in both.items()}}
        print(record, "microseconds", flush=True)
        out.append(record)
    return out


def base_shape(folder: Path, texts: list[str], root: Path) -> list[Record]:
    """BERT-base's shape with random weights and the model's tokenizer: only time matters."""
    from sentence_transformers import SentenceTransformer, models
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(root / "plain")
    tokenizer.save_pretrained(root / "plain")
    parts = models.Transformer(str(root / "plain"), max_seq_length=256)
    SentenceTransformer(modules=[parts, models.Pooling(768)]).save(str(root / "base"))
    best, reference = incumbent(root / "base", texts, (512,))
    reference /= np.linalg.norm(reference, axis=1, keepdims=True)
    return [{**best, "what": f"BERT-base shape, {best['what']}"}, ours(root / "base", texts, reference)]


def pairs(folder: Path, texts: list[str], root: Path) -> list[Record]:
    """A cross-encoder of the model's shape, pairs of about 60 tokens."""
    from sentence_transformers import CrossEncoder as Theirs

    CrossEncoder.create(folder, num_labels=1, device="cpu").save(root / "cross")
    both = [" ".join(texts[row : row + 1]) for row in range(len(texts))]
    given = list(zip(both[: len(both) // 2], both[len(both) // 2 :], strict=False))
    model = CrossEncoder.load(root / "cross", "cuda")
    seconds = timed(lambda: model.predict(given, progress=False), 11, TUNED)
    mine = rate(f"cross-encoder, munjang {name_of(model)}", len(given), seconds)
    rows = [mine]
    for dtype in (torch.float32, torch.bfloat16):
        theirs = Theirs(str(root / "cross"), device="cuda", model_kwargs={"dtype": dtype})
        some = given[:8192]
        seconds = timed(lambda: theirs.predict(some, batch_size=256, show_progress_bar=False), 1)  # noqa: B023
        rows.append(rate(f"cross-encoder, sentence-transformers {str(dtype)[6:]}", len(some), seconds))
    return rows


def latency(folder: Path) -> list[Record]:
    """One short sentence, median of 200, in milliseconds."""
    from sentence_transformers import SentenceTransformer

    text, out = "How fast is one short sentence?", []
    theirs = SentenceTransformer(str(folder), device="cuda")
    model = BiEncoder.load(folder, "cuda")
    for name, encode in (
        ("sentence-transformers", lambda: theirs.encode(text, show_progress_bar=False)),
        ("munjang", lambda: model.encode(text)),
    ):
        for _ in range(20):
            encode()
        times = []
        for _ in range(200):
            start = time.perf_counter()
            encode()
            times.append(time.perf_counter() - start)
        out.append({"what": f"one short sentence, {name}", "milliseconds": round(1000 * statistics.median(times), 3)})
        print(out[-1], flush=True)
    return out


def main() -> None:
    """Parse, measure, print, write after every part: a run may be cut off."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="one text a line")
    parser.add_argument("--count", type=int, default=60000)
    parser.add_argument("--parts", nargs="*", default=["steps", "kernels", "incumbent", "base", "pairs", "latency"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    opened = lzma.open if options.texts.suffix == ".xz" else open
    with opened(options.texts, "rt", encoding="utf-8") as file:
        texts = list(dict.fromkeys(file.read().splitlines()))[: options.count]
    record: Record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.gpu", *sys.argv[1:]]),
        "machine": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "texts": len(texts),
        "tokens": round(float(BiEncoder.load(options.model, "cpu").tokenizer(texts).lengths.mean()), 1),
    }
    print(record, flush=True)
    root = Path(tempfile.mkdtemp())
    parts: dict[str, Callable[[], Any]] = {
        "ours": lambda: [ours(options.model, texts, None)],
        "large": lambda: [
            {**ours(options.model, [f"{text} {n}" for n in range(4) for text in texts], None), "texts": 4}
        ],
        "alone": lambda: device_alone(options.model, texts, (32768, 65536, 131072)),
        "kernels": kernels,
        "steps": lambda: steps(options.model, texts),
        "windows": lambda: window_sizes(options.model, texts),
        "few": lambda: few(options.model, texts),
        "profile": lambda: profile(options.model, texts),
        "incumbent": lambda: compare(options.model, texts),
        "best": lambda: beside_best(options.model, texts),
        "base": lambda: base_shape(options.model, texts[:20000], root),
        "pairs": lambda: pairs(options.model, texts, root),
        "latency": lambda: latency(options.model),
    }
    for part in options.parts:
        start = time.perf_counter()
        record[part] = parts[part]()
        print(f"-- {part}: {time.perf_counter() - start:.0f} s", flush=True)
        if options.out:
            options.out.write_text(json.dumps(record, indent=1) + "\n")


def beside_best(folder: Path, texts: list[str]) -> list[Record]:
    """Measure our default and bfloat16 beside the fastest setting of sentence-transformers so far."""
    best, reference = incumbent(folder, texts, (1024,), THEIR_DTYPES[:1])
    rows = [best, *(ours(folder, texts, reference, dtype) for dtype in (None, "bfloat16"))]
    return [{**row, "times": round(row["per_second"] / best["per_second"], 1)} for row in rows]


def compare(folder: Path, texts: list[str]) -> list[Record]:
    """Both, and the cosine between them."""
    best, reference = incumbent(folder, texts)
    rows = [best, *(ours(folder, texts, reference, dtype) for dtype in ("float16", "bfloat16", "float32"))]
    for row in rows[1:]:
        row["times"] = round(row["per_second"] / best["per_second"], 1)
    print([row.get("times") for row in rows], flush=True)
    return rows


if __name__ == "__main__":
    main()
