"""Load and call each encoder. Runs inside the peer's own venv, so nothing of ours is imported on top.

A loader takes a model folder, a folder for what it converts, the number of threads and the row's options, and gives
`encode(texts, setting)` with the settings it may be run with: a benchmark tries them and keeps the fastest, so that
nobody is measured at a batch size that does not suit it. The first setting is the peer's own default.
"""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Setting = dict[str, int]


@dataclass(frozen=True)
class Loaded:
    """An encoder that is ready, and what it runs on."""

    encode: Callable[[list[str], Setting], Any]
    settings: list[Setting]
    packages: tuple[str, ...]


def munjang(model: Path, made: Path, threads: int, dtype: str) -> Loaded:
    """Ours. It picks its own batches."""
    from munjang import BiEncoder

    ours = BiEncoder.load(model, device="cpu", dtype=dtype, threads=threads)
    return Loaded(lambda texts, setting: ours.encode(texts, progress=False), [{}], ("torch", "tokenizers"))


def sentence_transformers(model: Path, made: Path, threads: int, backend: str) -> Loaded:
    """The incumbent with each of its backends; the ONNX and OpenVINO files are exported by itself."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    kind, _, is_small = backend.partition("-")
    folder, settings = str(model), {}
    if kind == "torch":
        settings = {"dtype" if _is_new("transformers", 4, 56) else "torch_dtype": torch.float32}
    else:
        folder = str(_exported(model, made, kind))
        settings = {"provider": "CPUExecutionProvider"} if kind == "onnx" else {}
        if kind == "onnx":
            settings["session_options"] = _session_options(threads)
        else:
            settings["ov_config"] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        if is_small:
            settings["file_name"] = _quantized(Path(folder))
    theirs = SentenceTransformer(folder, device="cpu", backend=kind, model_kwargs=settings)

    def encode(texts: list[str], setting: Setting) -> Any:
        return theirs.encode(texts, show_progress_bar=False, **setting)

    packages = {"torch": (), "onnx": ("optimum-onnx", "onnxruntime"), "openvino": ("optimum-intel", "openvino")}[kind]
    batches = [{"batch_size": size} for size in (32, 8, 16, 64, 128)]
    return Loaded(encode, batches, ("sentence-transformers", "transformers", "torch", *packages))


def _is_new(package: str, *version: int) -> bool:
    from importlib.metadata import version as installed

    return tuple(int(part) for part in installed(package).split(".")[: len(version)]) >= version


def _exported(model: Path, made: Path, kind: str) -> Path:
    """The folder as sentence-transformers saves it for another backend."""
    folder = made / f"sentence-transformers-{kind}"
    if not folder.exists():
        from sentence_transformers import SentenceTransformer

        settings = {"export": True, **({"provider": "CPUExecutionProvider"} if kind == "onnx" else {})}
        exported = SentenceTransformer(str(model), device="cpu", backend=kind, model_kwargs=settings)
        exported.save_pretrained(f"{folder}.tmp")
        os.rename(f"{folder}.tmp", folder)  # whole or not at all
    return folder


def _quantized(folder: Path) -> str:
    """Dynamic int8 by sentence-transformers' own function, for the vector instructions of this CPU."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    kind = "avx512_vnni" if "avx512_vnni" in flags else "avx2"
    name = f"onnx/model_qint8_{kind}.onnx" if kind != "avx2" else "onnx/model_quint8_avx2.onnx"
    if not (folder / name).exists():
        from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

        settings = {"provider": "CPUExecutionProvider"}
        exact = SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs=settings)
        export_dynamic_quantized_onnx_model(exact, kind, str(folder))
    return name


def _session_options(threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return options


def ctranslate2(model: Path, made: Path, threads: int, compute_type: str) -> Loaded:
    """CTranslate2's encoder over the same weights, pooled by us; one batch on all threads, or one on each."""
    import ctranslate2 as library

    folder = made / "ctranslate2"
    if not folder.exists():
        from ctranslate2.converters import TransformersConverter

        TransformersConverter(str(model)).convert(f"{folder}.tmp")
        os.rename(f"{folder}.tmp", folder)
    tokenizer = _tokenizer(model)
    layouts = {1: library.Encoder(str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads)}
    if threads > 1:
        layouts[threads] = library.Encoder(
            str(folder), compute_type=compute_type, inter_threads=threads, intra_threads=1
        )

    def forward(ids: list[list[int]], workers: int) -> np.ndarray:
        output = layouts[workers].forward_batch(ids)
        return np.array(output.last_hidden_state)

    batches = [{"batch_size": size, "workers": workers} for workers in layouts for size in (32, 8, 16, 64, 128)]
    return Loaded(_sorted_batches(tokenizer, forward), batches, ("ctranslate2", "tokenizers"))


def onnxruntime(model: Path, made: Path, threads: int) -> Loaded:
    """A session over our own export, pooled by us; one batch on all threads, or one on each."""
    import onnxruntime as library

    path = made / "onnx" / "model.onnx"
    if not path.exists():
        _export(model, path)
    layouts = {
        workers: library.InferenceSession(
            str(path), _session_options(threads // workers), providers=["CPUExecutionProvider"]
        )
        for workers in {1, threads}
    }

    def forward(ids: list[list[int]], workers: int) -> np.ndarray:
        lengths = np.array([len(row) for row in ids])
        table = np.zeros((len(ids), int(lengths.max())), np.int64)
        mask = np.arange(table.shape[1])[None] < lengths[:, None]
        table[mask] = np.concatenate([np.asarray(row, np.int64) for row in ids])
        inputs = {"input_ids": table, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(table)}
        return layouts[workers].run(None, inputs)[0]

    batches = [{"batch_size": size, "workers": workers} for workers in layouts for size in (32, 8, 16, 64, 128)]
    return Loaded(_sorted_batches(_tokenizer(model), forward), batches, ("onnxruntime", "tokenizers"))


def _export(model: Path, path: Path) -> None:
    """Eager attention through the older exporter: the only form in which onnxruntime fuses attention."""
    import torch
    from transformers import AutoModel

    network = AutoModel.from_pretrained(str(model), attn_implementation="eager", torch_dtype=torch.float32).eval()
    ids = torch.ones(2, 8, dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "length"} for name in [*names, "last_hidden_state"]}
    folder = path.parent.with_name("onnx.tmp")
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        _Hidden(network),
        (ids, ids, torch.zeros_like(ids)),
        str(folder / path.name),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )
    os.rename(folder, path.parent)


def _Hidden(network: Any) -> Any:  # noqa: N802  # it makes a module; its class needs torch, which not every venv has
    import torch

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, ids: Any, mask: Any, kinds: Any) -> Any:
            return self.network(input_ids=ids, attention_mask=mask, token_type_ids=kinds, return_dict=False)[0]

    return Hidden()


def _tokenizer(model: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_max_length(model))
    return tokenizer


def _max_length(model: Path) -> int:
    return json.loads((model / "sentence_bert_config.json").read_text())["max_seq_length"]


def _sorted_batches(tokenizer: Any, forward: Callable[[list[list[int]], int], np.ndarray]) -> Callable[..., np.ndarray]:
    """Longest first, mean over each text's tokens, unit length; `workers` batches at a time."""

    def encode(texts: list[str], setting: Setting) -> np.ndarray:
        ids = [row.ids for row in tokenizer.encode_batch_fast(texts)]
        order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
        parts = [order[at : at + setting["batch_size"]] for at in range(0, len(order), setting["batch_size"])]

        def pooled(rows: list[int]) -> np.ndarray:
            states = forward([ids[row] for row in rows], setting["workers"])
            lengths = np.array([len(ids[row]) for row in rows])
            mask = (np.arange(states.shape[1])[None] < lengths[:, None]).astype(np.float32)
            means = np.einsum("btd,bt->bd", states, mask) / lengths[:, None]
            return means / np.linalg.norm(means, axis=1, keepdims=True)

        if setting["workers"] == 1:
            found = [pooled(rows) for rows in parts]
        else:
            with ThreadPoolExecutor(setting["workers"]) as pool:
                found = list(pool.map(pooled, parts))
        vectors = np.empty((len(texts), found[0].shape[1]), np.float32)
        vectors[order] = np.concatenate(found)
        return vectors

    return encode


def fastembed(model: Path, made: Path, threads: int) -> Loaded:
    """A custom model from a local folder, over the same export as plain onnxruntime."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    exported = made / "onnx" / "model.onnx"
    if not exported.exists():
        raise FileNotFoundError(f"{exported}: the onnxruntime row writes it; measure that one too")
    folder = made / "fastembed"
    if not folder.exists():
        temporary = made / "fastembed.tmp"
        ignored = shutil.ignore_patterns("*.safetensors", "*.bin")
        shutil.copytree(model, temporary, dirs_exist_ok=True, ignore=ignored)
        shutil.copy(exported, temporary / "model.onnx")
        # it reads the limit from here and nowhere else; without this it would do more work than the others
        settings = json.loads((temporary / "tokenizer_config.json").read_text())
        settings |= {"model_max_length": _max_length(model), "max_length": _max_length(model)}
        (temporary / "tokenizer_config.json").write_text(json.dumps(settings))
        os.rename(temporary, folder)
    width = json.loads((model / "config.json").read_text())["hidden_size"]
    TextEmbedding.add_custom_model(
        model="local/model",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="local/model"),
        dim=width,
        model_file="model.onnx",
    )
    theirs = TextEmbedding("local/model", specific_model_path=str(folder), threads=threads)

    def encode(texts: list[str], setting: Setting) -> np.ndarray:
        return np.stack(list(theirs.embed(texts, **setting)))

    return Loaded(encode, [{"batch_size": size} for size in (256, 8, 16, 32, 64)], ("fastembed", "onnxruntime"))


def infinity(model: Path, made: Path, threads: int) -> Loaded:
    """Its engine in this process, without HTTP."""
    import asyncio

    import torch
    from infinity_emb import AsyncEmbeddingEngine, EngineArgs

    torch.set_num_threads(threads)
    loop = asyncio.new_event_loop()
    settings = {"engine": "torch", "device": "cpu", "dtype": "float32", "model_warmup": False}
    settings |= {"bettertransformer": False, "compile": False}  # both are for other versions of torch, or for a GPU
    engines = {
        size: AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=str(model), batch_size=size, **settings))
        for size in (32, 8, 64, 128)
    }

    async def embed(texts: list[str], batch_size: int) -> list[Any]:
        if not engines[batch_size].is_running:  # one at a time: their threads look for work many times a second
            for engine in engines.values():
                await engine.astop()
            await engines[batch_size].astart()
        vectors, _ = await engines[batch_size].embed(sentences=texts)
        return vectors

    def encode(texts: list[str], setting: Setting) -> np.ndarray:
        return np.stack(loop.run_until_complete(embed(texts, **setting)))

    packages = ("infinity-emb", "sentence-transformers", "transformers", "torch")
    return Loaded(encode, [{"batch_size": size} for size in engines], packages)


LOADERS: dict[str, Callable[..., Loaded]] = {
    loader.__name__: loader
    for loader in (munjang, sentence_transformers, ctranslate2, onnxruntime, fastembed, infinity)
}
