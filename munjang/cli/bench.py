"""munjang bench: measure how fast a model runs on this machine in each dtype; or plan a large encoding job.

munjang bench
munjang bench --model path/to/model
munjang bench --model path/to/model --dtypes float32 --padded
munjang bench --model path/to/model --texts reviews.txt.xz --count 2000 --json
munjang bench plan --sentences 1e9 --tokens 27 --gpus 8      bytes, hours and money, from recorded figures
"""

import json
import random
import warnings
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from munjang.cli.options import option
from munjang.errors import InputError, MunjangError, TruncationWarning, unknown

if TYPE_CHECKING:  # torch stays out of --help
    from munjang.bi_encoder import BiEncoder

DTYPES = ("float32", "bfloat16", "int8")
GPU_DTYPES = ("float32", "float16", "bfloat16")  # on a CPU float16 takes minutes: only if asked for
WORDS = (
    "the old radio played softly while seventeen engineers measured how fast light travels through glass and water",
    "nobody wanted to eat cold soup in winter but every kitchen of the town was closed and restaurants too",
    "semantic search finds similar sentences among millions of documents before breakfast and it's cheap",
    "나는 오늘 아침에 학교에 갔다 날씨가 매우 좋았고 바람이 불었다 서울은 대한민국의 수도이며 인구가 많다",
    "문장을 벡터로 바꾸면 비슷한 뜻을 가진 문장을 찾을 수 있다 어제 먹은 김치찌개는 정말 맛있었어요",
    "컴퓨터가 느려서 작업을 끝내지 못했다 책을 읽는 사람은 세상을 넓게 본다 다음에 또 가고 싶습니다",
)
SENTENCE = "How fast is one short sentence?"
NUM_LATENCY_ROUNDS = 60
PLAN_OPTIONS = ("sentences", "tokens", "gpus", "price_per_hour", "dimension", "cores_per_gpu", "disk_gb_per_s")


SUMMARY_KO = "이 컴퓨터에서 얼마나 빠른지 재기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang bench`."""

    action: str = option(
        "measure speed, or plan: estimate what encoding many sentences costs", default="measure", is_positional=True
    )
    model: str | None = option(
        "folder or Hub name of a bi-encoder (default: the bundled one)", default=None, short="-m"
    )
    texts: str | None = option("file of texts to encode (default: generated English and Korean texts)", default=None)
    column: str | None = option("text column of that file (default: recognized by name)", default=None)
    count: int = option("number of texts", default=1000)
    rounds: int = option("number of measurements per dtype", default=3)
    dtypes: tuple[str, ...] = option(
        f"dtypes to measure (default: those of {', '.join(DTYPES)} that work here, and float16 on a GPU)",
        default=(),
        metavar="DTYPE",
    )
    padded: bool = option("also encode in padded batches of 32, as others do, to see what padding costs", default=False)
    device: str | None = option("cpu, cuda, cuda:1, mps (default: the best available)", default=None)
    threads: int | None = option("CPU threads (default: all cores)", default=None)
    sentences: float | None = option("plan: number of sentences (default: 1e9)", default=None)
    tokens: float | None = option("plan: tokens per sentence (default: 27)", default=None)
    gpus: int | None = option("plan: number of GPUs; rates are those of an H200 (default: 1)", default=None)
    price_per_hour: float | None = option("plan: price of one GPU with its cores, in any currency", default=None)
    dimension: int | None = option("plan: dimension of the vectors (default: 384)", default=None)
    cores_per_gpu: int | None = option("plan: CPU cores per GPU (default: 16)", default=None)
    disk_gb_per_s: float | None = option("plan: write rate of the cluster's storage, GB/s (default: 2)", default=None)
    json: bool = option("print one JSON object", default=False)


def run(options: Options) -> int:
    """Measure and print the speed, or print a plan."""
    if options.action not in ("measure", "plan"):
        raise unknown("action", options.action, ("measure", "plan"))
    if options.action == "plan":
        return _plan(options)
    for name in PLAN_OPTIONS:
        if getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with `munjang bench plan`")
    record = measure(options, _texts(options))
    if options.json:
        print(json.dumps(record, ensure_ascii=False, indent=2))
    else:
        print("\n".join(describe(record)))
    return 0


def _plan(options: Options) -> int:
    from munjang.scale.plan import Cluster, plan
    from munjang.scale.plan import describe as lines_of

    for each in fields(options):
        is_other = each.name not in (*PLAN_OPTIONS, "action", "json")
        if is_other and getattr(options, each.name) != each.default:
            raise InputError(f"--{each.name.replace('_', '-')} goes with measuring, not with plan")
    names = ("gpus", "cores_per_gpu", "disk_gb_per_s", "price_per_hour")
    cluster = Cluster(**{name: getattr(options, name) for name in names if getattr(options, name) is not None})
    size, tokens, dimension = (
        default if given is None else given
        for given, default in ((options.sentences, 1e9), (options.tokens, 27.0), (options.dimension, 384))
    )
    planned = plan(size, tokens, int(dimension), cluster)
    print(json.dumps(planned, ensure_ascii=False, indent=2) if options.json else "\n".join(lines_of(planned)))
    return 0


def measure(options: Options, texts: list[str]) -> dict[str, Any]:
    """Measure the dtypes in turns, after one warm-up turn of each."""
    from munjang.engine.measure import processor, take_turns

    models, skipped = _models(options)
    first = next(iter(models.values()))
    actions = {name: lambda model=model: _encode(model, texts) for name, model in models.items()}
    alone = {name: lambda model=model: _encode(model, [SENTENCE]) for name, model in models.items()}
    rates, latencies = take_turns(actions, options.rounds), take_turns(alone, NUM_LATENCY_ROUNDS)
    tokenizing = take_turns({"tokenizer": lambda: first.tokenizer(texts)}, options.rounds)["tokenizer"]
    exact = _encode(first, texts)
    computed = {
        name: {
            "texts_per_s": round(len(texts) / rates[name].median, 1),
            "best_texts_per_s": round(len(texts) / rates[name].best, 1),
            "one_text_ms": round(1000 * latencies[name].median, 3),
            f"cosine_to_{next(iter(models))}": _cosines(exact, _encode(model, texts)),
        }
        for name, model in models.items()
    }
    padded = _padded(first, texts, options.rounds) if options.padded else {}
    return {
        "model": options.model or first.model.folder.name,
        "machine": processor(first.device),
        "device": str(first.device),
        "texts": len(texts),
        "tokens_per_text": round(float(first.tokenizer(texts).lengths.mean()), 1),
        "rounds": options.rounds,
        "tokenizer_texts_per_s": round(len(texts) / tokenizing.median),
        "dtypes": computed,
        "skipped": skipped,
    } | padded


def _padded(model: "BiEncoder", texts: list[str], rounds: int) -> dict[str, Any]:
    """Time ways to batch with the first dtype, in turns: padded as texts come, padded by length, packed."""
    from munjang.engine.measure import take_turns
    from munjang.paper.speed import ways

    timings = take_turns(ways(model, texts), rounds)
    return {"batches": {name: round(len(texts) / timing.median, 1) for name, timing in timings.items()}}


def _models(options: Options) -> tuple[dict[str, "BiEncoder"], dict[str, str]]:
    """Load the model in every dtype that works here; return also why the others don't."""
    from munjang.bi_encoder import BiEncoder  # torch comes with it: not for --help
    from munjang.engine.devices import pick_device

    models: dict[str, BiEncoder] = {}
    skipped: dict[str, str] = {}
    for dtype in options.dtypes or (GPU_DTYPES if pick_device(options.device).type == "cuda" else DTYPES):
        try:
            models[dtype] = BiEncoder.load(options.model, options.device, dtype, options.threads)
            _encode(models[dtype], [SENTENCE])
        except (MunjangError, RuntimeError, NotImplementedError) as error:  # torch lacks some operators for some types
            models.pop(dtype, None)
            if options.dtypes or dtype == DTYPES[0]:
                raise  # asked for by name, or a model that can't be loaded at all
            skipped[dtype] = str(error)
    return models, skipped


def _encode(model: "BiEncoder", texts: list[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # a benchmark doesn't care how many texts were cut
        return model.encode(texts, progress=False)


def _cosines(exact: Any, vectors: Any) -> dict[str, float]:
    import numpy as np

    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(vectors, axis=1)
    cosines = (exact * vectors).sum(1) / np.maximum(lengths, 1e-12)
    return {"min": round(float(cosines.min()), 6), "mean": round(float(cosines.mean()), 6)}


def _texts(options: Options) -> list[str]:
    """Return the texts of the file, or generated ones."""
    if options.count < 1 or options.rounds < 1:
        raise InputError(f"--count and --rounds must be at least 1, not {options.count} and {options.rounds}")
    if options.texts is None:
        return made_up(options.count)
    from munjang.data.tables import read_texts

    texts = list(islice(read_texts(options.texts, options.column), options.count))
    if not texts:
        raise InputError(f"{options.texts} holds no texts")
    return texts


def made_up(count: int) -> list[str]:
    """Generate distinct texts, half English and half Korean, mostly short."""
    random_ = random.Random(0)
    half = len(WORDS) // 2
    languages = [" ".join(WORDS[:half]).split(), " ".join(WORDS[half:]).split()]
    texts = []
    for row in range(count):
        num_words = 3 + int(random_.random() ** 2 * 40)
        texts.append(f"{' '.join(random_.choices(languages[row % 2], k=num_words))} {row}")
    return texts


def describe(record: dict[str, Any]) -> list[str]:
    """Return readable lines: the machine, a table of the dtypes, what could not be measured."""
    lines = [
        f"{record['model']} on {record['machine']}",
        f"{record['texts']:,} texts of {record['tokens_per_text']:.0f} tokens, median of {record['rounds']} rounds",
        "",
        f"{'type':10} {'texts/s':>10} {'best':>10} {'one text':>10}  cosine, least and mean",
    ]
    for name, row in record["dtypes"].items():
        (cosine,) = (value for key, value in row.items() if key.startswith("cosine"))
        rates = f"{row['texts_per_s']:>10,.0f} {row['best_texts_per_s']:>10,.0f} {row['one_text_ms']:>7.2f} ms"
        lines.append(f"{name:10} {rates}  {cosine['min']:.6f} {cosine['mean']:.6f}")
    lines.append(f"{'tokenizer':10} {record['tokenizer_texts_per_s']:>10,.0f}")
    names = {"plain": "padded", "smart": "padded, by length", "packed": "packed (ours)"}
    lines.extend(f"{names[name]:17} {rate:>10,.0f} texts/s" for name, rate in record.get("batches", {}).items())
    lines.extend(f"not {name}: {why}" for name, why in record["skipped"].items())
    return lines
