"""Check what the GPU path computes, on a GPU: parity, invariance, attention kernels, dropout, memory, threads.

    python -m benchmarks.gpu_check MODEL_FOLDER TEXTS.txt OUT.json

CI has no GPU, so this runs by hand where one is; its outcome is kept in benchmarks/results/. Needs torch, tokenizers,
safetensors and, for the reference, sentence-transformers. Prints one line a check and exits with 1 if any fails.
"""

import gc
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from munjang import BiEncoder  # the source tree, not an installed copy
from munjang.nn import attention
from munjang.stores.exact_gpu import OnGpu
from munjang.text.packing import Packed, pack
from tests.models import NATIVE, make_model
from tests.training.made import difference, examples, gradient

RESULTS: list[dict[str, object]] = []
TIMES: dict[str, float] = {}


def report(name: str, value: float, limit: float, is_lower_better: bool = True) -> None:
    """One line for a person, one record for the file."""
    passed = value <= limit if is_lower_better else value >= limit
    RESULTS.append({"check": name, "value": value, "limit": limit, "passed": passed})
    print(f"{'ok  ' if passed else 'FAIL'} {name}: {value:.3g} (limit {limit:g})", flush=True)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """The smallest cosine of matching rows."""
    return float(((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


def check_kernels() -> None:
    """Every kernel against a plain softmax in double precision, forward and backward."""
    lengths = np.array([70, 33, 33, 20, 7, 1, 1])
    batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths).to(torch.device("cuda"))
    for dtype, limit in ((torch.float32, 2e-6), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)):
        for window in (None, 8):
            torch.manual_seed(0)
            qkv = torch.randn(int(lengths.sum()), 3, 4, 32, device="cuda", dtype=dtype, requires_grad=True)
            kernel = attention.choose(attention.Demand("cuda", dtype, 32, False, 0.0, window, 70, has_gradient=True))
            out = attention.attend(qkv, batch, window=window)
            out.float().pow(2).sum().backward()
            exact = qkv.detach().double().requires_grad_()
            reference = naive(exact, lengths, window)
            reference.pow(2).sum().backward()
            name = f"attention {kernel.__name__} {str(dtype)[6:]} window {window}"
            report(name, float((out.double() - reference).abs().max()), limit)
            worst = float((qkv.grad.double() - exact.grad).abs().max() / exact.grad.abs().max())  # type: ignore[union-attr]
            report(f"{name}, gradient", worst, limit * 5)
    check_tiles(lengths, batch)
    check_dropout(lengths, batch)
    check_long()
    torch.manual_seed(0)
    qkv = torch.randn(int(lengths.sum()), 3, 4, 32, device="cuda", dtype=torch.bfloat16)
    qkv[:, 2] = 1  # all values one: without dropout every output is one, with it their mean stays near one
    outs = torch.stack([attention.attend(qkv, batch, dropout=0.3) for _ in range(200)]).float()
    report("attention dropout keeps the mean", abs(float(outs.mean()) - 1), 0.02)
    report("attention dropout is applied (spread)", float(outs[:, :70].std()), 0.01, is_lower_better=False)


def check_tiles(lengths: np.ndarray, batch: Packed) -> None:
    """Our own attention kernel, for inference."""
    for dtype, limit in ((torch.bfloat16, 2e-2), (torch.float16, 3e-3)):
        for width in (16, 32, 64, 128):
            for window in (None, 8):
                torch.manual_seed(0)
                qkv = torch.randn(int(lengths.sum()), 3, 4, width, device="cuda", dtype=dtype)
                with torch.inference_mode():
                    out = attention.tiles(qkv, batch, None, 0.0, window)
                worst = float((out.double() - naive(qkv.double(), lengths, window)).abs().max())
                report(f"attention tiles {str(dtype)[6:]} width {width} window {window}", worst, limit)


def check_dropout(lengths: np.ndarray, batch: Packed) -> None:
    """The gradient sees the mask that the output saw: results are linear in the values, so value · gradient is output.

    torch's attention over nested tensors does not (0.65 and 0.39 instead of 0), so `jagged` is given no such work.
    """
    for dtype, kernel in ((torch.float32, attention.runs), (torch.bfloat16, attention.tiles_with_gradient)):
        torch.manual_seed(0)
        qkv = torch.randn(int(lengths.sum()), 3, 4, 32, device="cuda", dtype=dtype, requires_grad=True)
        out = kernel(qkv, batch, None, 0.3, None)
        weights = torch.randn_like(out)
        (out * weights).sum().backward()
        expected = float((out.double() * weights.double()).sum())
        found = float((qkv.grad[:, 2].double() * qkv[:, 2].double()).sum())  # type: ignore[index]
        size = float((out.double() * weights.double()).norm())
        report(
            f"dropout of {kernel.__name__} {str(dtype)[6:]}: gradient by the same mask",
            abs(found - expected) / size,
            0.02,
        )


def check_long() -> None:
    """Training with long texts: the kernel that takes them under dropout, and the time beside runs of equal length."""
    lengths = np.array([700, 300, 299, 65, 64, 1])
    batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths).to(torch.device("cuda"))
    torch.manual_seed(0)
    qkv = torch.randn(int(lengths.sum()), 3, 4, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    out = attention.tiles_with_gradient(qkv, batch, None, 0.0, None)
    out.float().pow(2).sum().backward()
    exact = qkv.detach().double().requires_grad_()
    reference = naive(exact, lengths, None)
    reference.pow(2).sum().backward()
    report("attention tiles_with_gradient, 700 tokens", float((out.double() - reference).abs().max()), 2e-2)
    worst = float((qkv.grad.double() - exact.grad).abs().max() / exact.grad.abs().max())  # type: ignore[union-attr]
    report("attention tiles_with_gradient, 700 tokens, gradient", worst, 0.1)
    check_dropout(lengths, batch)
    lengths = np.sort(np.random.default_rng(0).integers(8, 400, 640))[::-1].copy()
    batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths).to(torch.device("cuda"))
    qkv = torch.randn(int(lengths.sum()), 3, 12, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for kernel in (attention.runs, attention.tiles_with_gradient):
        for _ in range(3):
            torch.cuda.synchronize()
            start = time.perf_counter()
            kernel(qkv, batch, None, 0.1, None).sum().backward()
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
        TIMES[f"attention {kernel.__name__} under dropout, {len(lengths)} texts of 8 to 400 tokens, ms"] = seconds * 1e3
        print(f"     {kernel.__name__}: {seconds * 1e3:.1f} ms forward and back", flush=True)


def check_search() -> None:
    """Exact search: every row that is among the best ten in double precision is a candidate."""
    random = np.random.default_rng(3)
    vectors = random.standard_normal((200_000, 384), np.float32)
    queries, rows = random.standard_normal((64, 384), np.float32), np.arange(len(vectors))
    lengths = np.linalg.norm(vectors, axis=1)
    for metric in ("cosine", "dot", "euclidean"):
        search = OnGpu()
        found = search.candidates(queries, vectors, lengths, rows, 10, metric)
        products = queries.astype(np.float64) @ vectors.astype(np.float64).T
        exact = {"cosine": products / lengths, "dot": products, "euclidean": 2 * products - lengths.astype(float) ** 2}
        best = np.argpartition(-exact[metric], 10, axis=1)[:, :10]
        some = found or [rows[:0]] * len(queries)  # None: it left the work to the CPU
        lost = [len(np.setdiff1d(wanted, each)) for wanted, each in zip(best, some, strict=True)]
        report(f"exact search, {metric}: rows of the best ten that are no candidates", float(sum(lost)), 0)
        start = time.perf_counter()
        search.candidates(queries, vectors, lengths, rows, 10, metric)
        print(f"     64 queries, 200,000 rows: {1000 * (time.perf_counter() - start):.1f} ms", flush=True)


def naive(qkv: torch.Tensor, lengths: np.ndarray, window: int | None) -> torch.Tensor:
    """Softmax attention, text by text."""
    parts, start = [], 0
    for length in lengths.tolist():
        query, key, value = qkv[start : start + length].permute(1, 2, 0, 3)
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        if window is not None:
            place = torch.arange(length, device=qkv.device)
            scores = scores.masked_fill((place[:, None] - place[None]).abs() > window, float("-inf"))
        parts.append((scores.softmax(-1) @ value).transpose(0, 1))
        start += length
    return torch.cat(parts)


def check_families(root: Path, texts: list[str]) -> None:
    """Tiny wide models of every family: GPU fp32 against our CPU path."""
    for family in NATIVE:
        folder = make_model(family, root / family)
        on_cpu = BiEncoder.load(folder, device="cpu").encode(texts)
        exact = BiEncoder.load(folder, "cuda", "float32").encode(texts)
        report(f"{family} cuda fp32, largest difference", float(np.abs(exact - on_cpu).max()), 1e-5)
        half = BiEncoder.load(folder, "cuda", "bfloat16").encode(texts)
        report(f"{family} cuda bf16, cosine", cosine(half, on_cpu), 0.97, False)


def check_training(root: Path) -> None:
    """Gradients of every family in fp32 and bf16, and of the gradient cache, against our CPU path."""
    for family in NATIVE:
        _, wanted = gradient(root / family, "in_batch", examples(40), dropout=0.0)
        _, exact = gradient(root / family, "in_batch", examples(40), device="cuda", dropout=0.0)
        _, half = gradient(root / family, "in_batch", examples(40), device="cuda", dropout=0.0, dtype=torch.bfloat16)
        exact, half = ({name: value.cpu() for name, value in side.items()} for side in (exact, half))
        report(f"{family} cuda fp32, gradient", difference(exact, wanted), 1e-4)
        sides = [torch.cat([side[name].flatten() for name in wanted]).numpy()[None] for side in (half, wanted)]
        report(f"{family} cuda bf16, cosine of the gradient", cosine(*sides), 0.97, False)
    for dtype in (torch.float32, torch.bfloat16):
        given = {"device": "cuda", "dtype": dtype, "dropout": 0.2}
        kept, cached = (
            gradient(root / "bert", "in_batch", examples(40), 100, is_cached, **given)[1] for is_cached in (False, True)
        )
        report(f"gradient cache with dropout, {str(dtype)[6:]}", difference(cached, kept), 1e-6)


def check_model(folder: Path, texts: list[str]) -> None:
    """The real model: parity with sentence-transformers, invariance, threads, memory."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(folder), device="cuda", model_kwargs={"dtype": torch.float32})
    reference = theirs.encode(texts, show_progress_bar=False)
    exact = BiEncoder.load(folder, "cuda", "float32")
    vectors = exact.encode(texts)
    report("real model fp32, cosine to sentence-transformers", cosine(vectors, reference), 0.99999, False)
    half = BiEncoder.load(folder, "cuda", "bfloat16")
    in_half = half.encode(texts)
    report("real model bf16, cosine to sentence-transformers", cosine(in_half, reference), 0.999, False)
    for name, model, all_at_once, limit in (("fp32", exact, vectors, 2e-6), ("bf16", half, in_half, 2e-2)):
        some = list(range(0, len(texts), max(len(texts) // 60, 1)))
        alone = np.stack([model.encode(texts[row]) for row in some])
        report(f"{name} alone or in a batch, largest difference", float(np.abs(alone - all_at_once[some]).max()), limit)
        shuffled = model.encode(texts[::-1], batch_tokens=3000)[::-1]
        report(f"{name} in another order, largest difference", float(np.abs(shuffled - all_at_once).max()), limit)
        found: dict[int, np.ndarray] = {}

        def work(at: int, model: BiEncoder = model, found: dict[int, np.ndarray] = found) -> None:
            found[at] = model.encode(texts[at::4])

        threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        worst = max(float(np.abs(found[at] - all_at_once[at::4]).max()) for at in range(4))
        report(f"{name} from four threads, largest difference", worst, limit)
    stays = exact.encode(texts[:100], output="torch")
    report("torch output stays on the device", float(stays.is_cuda), 1, False)
    report("torch output, largest difference", float((stays.cpu() - torch.from_numpy(vectors[:100])).abs().max()), 2e-6)
    check_memory(exact, texts, vectors)


def check_memory(model: BiEncoder, texts: list[str], vectors: np.ndarray) -> None:
    """A batch that does not fit is halved until it does, and the limit is remembered."""
    gc.collect()
    torch.cuda.empty_cache()
    used = torch.cuda.memory_reserved()  # with what lies between tensors and can't be given back
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((used + 250e6) / total)
    again = model.encode(texts, batch_tokens=2_000_000)
    torch.cuda.set_per_process_memory_fraction(1.0)
    report("out of memory: halved until it fits, limit in tokens", float(model._engine.executor.limit or 0), 1, False)
    report("out of memory: results, largest difference", float(np.abs(again - vectors).max()), 2e-6)


def rates(folder: Path, texts: list[str]) -> dict[str, float]:
    """Sentences a second, strings to numpy, beside sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    def best(encode: Callable[[], object]) -> float:
        encode()
        times = []
        for _ in range(3):
            start = time.perf_counter()
            encode()
            times.append(time.perf_counter() - start)
        return len(texts) / min(times)

    found = {}
    theirs = SentenceTransformer(str(folder), device="cuda", model_kwargs={"dtype": torch.float32})
    found["sentence-transformers fp32, batch 1024"] = best(
        lambda: theirs.encode(texts, batch_size=1024, show_progress_bar=False)
    )
    for dtype in ("float32", "bfloat16"):
        ours = BiEncoder.load(folder, "cuda", dtype)
        found[f"munjang {dtype}"] = best(lambda ours=ours: ours.encode(texts))
    return found


def main() -> int:
    """Run all checks and write the record."""
    folder, texts_path, out = (Path(argument) for argument in sys.argv[1:4])
    texts = texts_path.read_text(encoding="utf-8").splitlines()
    warnings.simplefilter("ignore")
    import tempfile

    check_kernels()
    check_search()
    with tempfile.TemporaryDirectory() as root:
        check_families(Path(root), texts[:200])
        check_training(Path(root))
    check_model(folder, texts[:4000])
    speed = rates(folder, texts)
    for name, rate in speed.items():
        print(f"{name}: {rate:,.0f} sentences/s", flush=True)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "command": "python -m benchmarks.gpu_check MODEL TEXTS OUT",
        "num_texts": len(texts),
        "checks": RESULTS,
        "times": TIMES,
        "sentences_per_s": speed,
    }
    out.write_text(json.dumps(record, indent=1) + "\n")
    failed = [str(result["check"]) for result in RESULTS if not result["passed"]]
    print(f"{len(RESULTS) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
