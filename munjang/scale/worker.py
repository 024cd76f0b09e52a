"""A worker holds one model and encodes shards into blocks, each written atomically.    N rows, D dimension.

One block is computed and written at a time while the next is read, so a killed worker loses one block. On a GPU, where
a block takes a third of a second, writing overlaps with computing too: a killed worker loses two.
"""

import hashlib
import json
import threading
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.data.vectors import column_of
from munjang.errors import MunjangError, TruncationWarning
from munjang.scale.addresses import inside, located, remove, shown, sizes_in, writing
from munjang.scale.job import BUNDLED_NAME, Job
from munjang.scale.reading import BadRow, Block, read_blocks
from munjang.scale.shards import Shard, numbers_of

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY_KEY = b"munjang.block"  # in the metadata of a block's file
HASH_BYTES = 16
ROWS_PER_GROUP = 8192  # of Parquet: the least that sorting reads of a file
MAX_WORKER_DEATHS = 5


@dataclass(frozen=True)
class BlockSummary:
    """A finished block: counts, first and last id, size."""

    name: str
    key: str  # of the job
    rows: int
    bad: int
    cut: int  # texts longer than the model reads
    first: Any = None  # smallest id
    last: Any = None  # largest id
    num_bytes: int | None = None  # of its file; not in the file's own metadata


class Worker:
    """Encodes shards. Any number of threads may call one: they read in parallel and compute in turn."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.model = BiEncoder.load(job.model, job.device, job.dtype, job.threads)
        if job.fingerprint and self.model.fingerprint != job.fingerprint:
            raise MunjangError(
                f"The model {shown(job.model or BUNDLED_NAME)} on this node differs from the driver's "
                f"({self.model.fingerprint[:12]}, not {job.fingerprint[:12]}); copy it again."
            )
        self._encode([])  # fails now, not for every row, if the model rejects a setting
        self._computing = threading.Lock()
        self._writing = nullcontext() if self.model.device.type == "cuda" else self._computing

    def work(self, shard: Shard) -> Iterator[BlockSummary]:
        """Yield every block of a shard, computing and writing those that are missing."""
        job = self.job
        address = job.files[shard.file]
        for block in read_blocks(shard, address, job.choice, job.block_rows, job.first_rows[shard.file]):
            summary = summary_of(inside(job.output, f"blocks/{block.name}.parquet"))
            if summary is None or summary.key != job.key:
                summary = self._make(block)
            yield summary

    def _make(self, block: Block) -> BlockSummary:
        if self.job.id_kind == "text":
            block.ids = [str(row_id) for row_id in block.ids]
        drop_repeated(block)
        with self._begun(block.name):
            if self._writing is self._computing:
                with self._computing:
                    return self._write(*self.compute(block))
            with self._computing:
                computed = self.compute(block)
            return self._write(*computed)

    @contextmanager
    def _begun(self, name: str) -> Iterator[None]:
        """Keep a marker file while a block is in progress: leftover markers count how often it killed its worker."""
        folder = inside(self.job.output, "begun")
        count = sum(marker.startswith(f"{name}-") for marker in sizes_in(folder))
        if count >= MAX_WORKER_DEATHS:
            raise MunjangError(
                f"Block {name} killed its worker {count} times, perhaps by running out of memory: give fewer "
                "--batch-tokens, or check its texts."
            )
        mark = inside(folder, f"{name}-{uuid.uuid4().hex}")
        with writing(mark):
            pass
        yield
        remove(mark)

    def compute(self, block: Block) -> tuple[Block, Any, int]:
        """Encode a block's rows; rows that the model rejects become bad rows. Return also how many texts were cut."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TruncationWarning)
            vectors, refused = self._survivors(block.texts)
        messages = [str(warning.message) for warning in caught if warning.category is TruncationWarning]
        num_cut = sum(int(message.split()[0]) for message in messages)  # it begins with the count
        if refused:
            block.bad += [BadRow(block.places[at], reason) for at, reason in refused.items()]
            keep_rows(block, [at for at in range(len(block.texts)) if at not in refused])
        return block, vectors, num_cut

    def _survivors(self, texts: list[str]) -> tuple[Any, dict[int, str]]:
        """Return the vectors of the texts that the model accepts, and the errors of the others, found by bisection."""
        try:
            return self._encode(texts), {}
        except MunjangError as error:
            if len(texts) == 1:
                return self._encode([]), {0: str(error)[:300]}
        half = len(texts) // 2
        (left, no_left), (right, no_right) = self._survivors(texts[:half]), self._survivors(texts[half:])
        return np.concatenate([left, right]), {**no_left, **{at + half: reason for at, reason in no_right.items()}}

    def _encode(self, texts: list[str]) -> Any:
        return encode_texts(self.model, self.job, texts)

    def _write(self, block: Block, vectors_ND: Any, num_cut: int) -> BlockSummary:
        """Write a block, its bad rows first: if the block exists, so do they."""
        from pyarrow import parquet

        job = self.job
        if block.bad:
            with writing(inside(job.output, f"bad/{block.name}.jsonl")) as file:
                source = shown(job.files[numbers_of(block.name)[0]])
                for bad in sorted(block.bad, key=lambda row: row.place):
                    file.write((json.dumps({"file": source, **asdict(bad)}) + "\n").encode())
        table = table_of(block, vectors_ND, job)
        ids = table.column("id")
        ends = (ids[0].as_py(), ids[-1].as_py()) if table.num_rows else (None, None)
        summary = BlockSummary(block.name, job.key, table.num_rows, len(block.bad), num_cut, *ends)
        table = table.replace_schema_metadata({SUMMARY_KEY: json.dumps(asdict(summary)).encode()})
        with writing(inside(job.output, f"blocks/{block.name}.parquet")) as file:
            parquet.write_table(
                table,
                file,
                use_dictionary=False,  # vectors hardly repeat or compress
                compression="snappy" if job.keep_text else "none",
                write_statistics=["id"],
                row_group_size=ROWS_PER_GROUP,
            )
            return replace(summary, num_bytes=file.tell())


def encode_texts(model: BiEncoder, job: Job, texts: list[str]) -> Any:
    """Encode texts with the settings of a job."""
    options: dict[str, Any] = {
        "normalize": job.normalize,
        "truncate_dim": job.truncate_dim,
        "precision": job.precision,
        "long": job.long,
        "batch_tokens": job.batch_tokens,
        "progress": False,
    }
    if job.role == "query":
        return model.encode_query(texts, **options)
    if job.role == "document":
        return model.encode_document(texts, **options)
    return model.encode(texts, prompt=job.prompt, prompt_name=job.prompt_name, **options)


def keep_rows(block: Block, keep: list[int]) -> None:
    """Keep only these of the good rows."""
    block.ids = [block.ids[at] for at in keep]
    block.texts = [block.texts[at] for at in keep]
    block.places = [block.places[at] for at in keep]


def drop_repeated(block: Block) -> None:
    """Make every further row with the same id in a block a bad row."""
    first = {row_id: at for at, row_id in reversed(list(enumerate(block.ids)))}
    if len(first) < len(block.ids):
        keep = sorted(first.values())
        for at in sorted(set(range(len(block.ids))) - set(keep)):
            block.bad.append(BadRow(block.places[at], f"the id {block.ids[at]!r:.80} occurs twice in this block"))
        keep_rows(block, keep)


def table_of(block: Block, vectors_ND: Any, job: Job) -> "pa.Table":
    """Return a table of id, vector and the optional columns, sorted by id."""
    import pyarrow as pa

    ids = pa.array(block.ids, pa.string() if job.id_kind == "text" else pa.int64())
    columns = {"id": ids, "vector": column_of(vectors_ND)}
    if job.text_hash:
        hashes = b"".join(hashlib.blake2b(_bytes(text), digest_size=HASH_BYTES).digest() for text in block.texts)
        columns["text_hash"] = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(HASH_BYTES), len(block.texts), [None, pa.py_buffer(hashes)]
        )
    if job.keep_text:
        columns["text"] = pa.array([_bytes(text).decode() for text in block.texts], pa.string())
    table = pa.table(columns)
    return table if job.choice.id_column is None else table.sort_by("id")


def _bytes(text: str) -> bytes:
    """Encode as UTF-8; a lone surrogate (JSON may hold one) becomes U+FFFD, as in the tokenizer."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def summary_of(address: str) -> BlockSummary | None:
    """Read the summary in a block's file; return None if there is no file or it is not one of ours."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    filesystem, path = located(address)
    try:
        with filesystem.open_input_file(path) as file:
            summary = json.loads(read_schema(file).metadata[SUMMARY_KEY])
            return BlockSummary(**{**summary, "num_bytes": int(file.size())})
    except (FileNotFoundError, ArrowException, TypeError, LookupError, ValueError):
        return None
