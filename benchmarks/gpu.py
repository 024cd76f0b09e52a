"""Encoding on a GPU beside sentence-transformers, in one run.

    python -m benchmarks.gpu MODEL_FOLDER TEXTS.txt [--out FILE.json] [--count 60000] [--profile]

Strings to numpy, best and median of several rounds; sentence-transformers at the best of its dtypes and batch sizes.
Beside it: a network of BERT-base's shape, a cross-encoder of the model's shape, one short sentence, the device alone
(batches ready, nothing tokenized), attention kernels by length. CI has no GPU: records are kept in benchmarks/results/.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.engine.ahead import ahead
from munjang.engine.pack import Budget, pack_window
from munjang.engine.tokenize import Texts, Window
from munjang.nn import attention
from munjang.text.packing import pack

Record = dict[str, Any]


def timed(function: Callable[[], Any], rounds: int = 5) -> tuple[float, float]:
    """Best and median seconds; the first call, which compiles and captures, is not counted."""
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


def incumbent(folder: Path, texts: list[str], sizes: tuple[int, ...] = (128, 1024)) -> tuple[Record, np.ndarray]:
    """sentence-transformers at its best, and its fp32 vectors."""
    from sentence_transformers import SentenceTransformer

    best, reference = None, None
    for dtype in (torch.float32, torch.bfloat16):
        model = SentenceTransformer(str(folder), device="cuda", model_kwargs={"dtype": dtype})
        for size in sizes:
            encode = lambda: model.encode(texts, batch_size=size, show_progress_bar=False)  # noqa: B023, E731
            found = rate(f"sentence-transformers {str(dtype)[6:]} batch {size}", len(texts), timed(encode, 1))
            best = found if best is None or found["per_second"] > best["per_second"] else best
        reference = model.encode(texts, show_progress_bar=False) if reference is None else reference
    assert best is not None
    assert reference is not None
    return best, reference


def ours(folder: Path, texts: list[str], reference: np.ndarray | None, dtype: str = "bfloat16") -> Record:
    """Strings to numpy."""
    model = BiEncoder.load(folder, "cuda", dtype)
    model.encode(texts)
    seconds = timed(lambda: model.encode(texts, progress=False))
    vectors = model.encode(texts, normalize=True)
    more = {} if reference is None else {"min_cosine": round(float((vectors * reference).sum(1).min()), 6)}
    return rate(f"munjang {dtype}", len(texts), seconds, **more)


def device_alone(folder: Path, texts: list[str], budgets: tuple[int, ...]) -> list[Record]:
    """Ready batches on the device: what is left when tokenizing and copying cost nothing."""
    model, out = BiEncoder.load(folder, "cuda", "bfloat16"), []
    tokens = model.tokenizer(texts)
    graphs = model._engine.executor.graphs
    for budget in budgets:
        window = Window(np.arange(len(texts)), tokens)
        assert graphs is not None
        graphs.budget = budget
        laid_out = [batch.packed for batch in pack_window(window, Budget(budget), lay_out=graphs.lay_out)]
        there = [batch.to(model.device) for batch in laid_out]
        ways: dict[str, Callable[[], Any]] = {
            "eager": lambda: [model.network(batch) for batch in there],  # noqa: B023
            "graph": lambda: [graphs(batch, model.network) for batch in laid_out if batch.laid_out is not None],  # noqa: B023
        }
        for name, run in ways.items():

            def forward(run: Any = run) -> None:
                with torch.inference_mode(), torch.cuda.stream(model._engine.executor.stream):
                    run()

            for _ in range(4):
                forward()
            out.append(rate(f"device alone, {name}, {budget} tokens", len(texts), timed(forward)))
    return out


def host(folder: Path, texts: list[str]) -> list[Record]:
    """Measure the host alone: tokenizing by threads, with packing and copying, rows into place."""
    model, out = BiEncoder.load(folder, "cuda", "bfloat16"), []
    units = Texts(texts, model.tokenizer, model.network.encoder.vocab_size)

    def prepare(start: int) -> Any:
        return model._engine._pack(units, start, None)

    for name, job in (("tokenizing", units.tokenize), ("and packing", prepare)):
        for threads in (0, 1, 2, 4, 8):
            jobs = [partial(job, start) for start in range(0, len(units), units.window)]
            run = lambda: list(ahead(jobs, threads))  # noqa: B023, E731
            out.append(rate(f"host, {name}, {threads} threads", len(texts), timed(run, 3)))
    row_of = np.random.default_rng(0).permutation(len(texts))
    vectors = np.zeros((len(texts), model.width), np.float32)

    def collect() -> None:
        target = np.empty_like(vectors)
        for start in range(0, len(texts), 2400):
            target[row_of[start : start + 2400]] = vectors[start : start + 2400]

    out.append(rate("host, rows into place", len(texts), timed(collect, 3)))
    out.append(rate("host, distinct texts", len(texts), timed(lambda: list(dict.fromkeys(texts)), 3)))
    return out


def profile(folder: Path, texts: list[str]) -> None:
    """Profile the device's time."""
    model = BiEncoder.load(folder, "cuda", "bfloat16")
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
    best, reference = incumbent(root / "base", texts, (128, 512))
    reference /= np.linalg.norm(reference, axis=1, keepdims=True)
    return [{**best, "what": f"BERT-base shape, {best['what']}"}, ours(root / "base", texts, reference)]


def pairs(folder: Path, texts: list[str], root: Path) -> list[Record]:
    """A cross-encoder of the model's shape, pairs of about 60 tokens."""
    from sentence_transformers import CrossEncoder as Theirs

    CrossEncoder.create(folder, num_labels=1, device="cpu").save(root / "cross")
    both = [" ".join(texts[row : row + 1]) for row in range(len(texts))]
    given = list(zip(both[: len(both) // 2], both[len(both) // 2 :], strict=False))
    model = CrossEncoder.load(root / "cross", "cuda")
    model.predict(given)
    mine = rate("cross-encoder, munjang bfloat16", len(given), timed(lambda: model.predict(given, progress=False), 3))
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
    parser.add_argument(
        "--parts", nargs="*", default=["ours", "alone", "kernels", "incumbent", "base", "pairs", "latency"]
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = list(dict.fromkeys(options.texts.read_text(encoding="utf-8").splitlines()))[: options.count]
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
        "host": lambda: host(options.model, texts),
        "profile": lambda: profile(options.model, texts),
        "incumbent": lambda: compare(options.model, texts),
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


def compare(folder: Path, texts: list[str]) -> list[Record]:
    """Both, and the cosine between them."""
    best, reference = incumbent(folder, texts)
    rows = [best, *(ours(folder, texts, reference, dtype) for dtype in ("bfloat16", "float16", "float32"))]
    for row in rows[1:]:
        row["times"] = round(row["per_second"] / best["per_second"], 1)
    print([row.get("times") for row in rows], flush=True)
    return rows


if __name__ == "__main__":
    main()
