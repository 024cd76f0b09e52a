"""A worker: it holds one model, and turns spans into files of vectors, each of which appears whole.    N rows, D width.

Only one block is computed and written at a time, so a worker that is killed loses one block; the next one is read
meanwhile. On a GPU, where a block takes a third of a second, writing overlaps with computing too: two blocks.
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
from munjang.scale.job import BUNDLED, Job
from munjang.scale.places import inside, located, remove, shown, sizes_in, writing
from munjang.scale.reading import Bad, Block, read_blocks
from munjang.scale.spans import Span, numbers_of

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = b"munjang.block"  # in the metadata of a file
HASH_BYTES = 16
GROUP_ROWS = 8192  # of a row group: what a range of a global order reads at least of a file
MAX_DEATHS = 5


@dataclass(frozen=True)
class Done:
    """What there is to know about a finished block."""

    name: str
    key: str  # of the job
    rows: int
    bad: int
    cut: int  # texts beyond the model's limit
    first: Any = None  # its smallest id
    last: Any = None
    num_bytes: int | None = None  # of its file, which can't say so itself


class Worker:
    """Any number of threads may call one: they read at once and compute in turn."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.model = BiEncoder.load(job.model, job.device, job.dtype, job.threads)
        if job.fingerprint and self.model.fingerprint != job.fingerprint:
            raise MunjangError(
                f"The model {shown(job.model or BUNDLED)} on this node is another one than the driver's "
                f"({self.model.fingerprint[:12]}, not {job.fingerprint[:12]}); copy it anew."
            )
        self._encode([])  # a setting that the model refuses is refused now, not for every row
        self._computing = threading.Lock()
        self._writing = nullcontext() if self.model.device.type == "cuda" else self._computing

    def work(self, span: Span) -> Iterator[Done]:
        """Every block of a span that is not there yet, written."""
        job = self.job
        address = job.files[span.file]
        for block in read_blocks(span, address, job.choice, job.block_rows, job.first_rows[span.file]):
            done = summary_of(inside(job.output, f"blocks/{block.name}.parquet"))
            if done is None or done.key != job.key:
                done = self._make(block)
            yield done

    def _make(self, block: Block) -> Done:
        if self.job.id_kind == "text":
            block.ids = [str(row_id) for row_id in block.ids]
        drop_repeated(block)
        with self._begun(block.name):
            if self._writing is self._computing:
                with self._computing:
                    return self._write(*self.compute(block))
            with self._computing:
                found = self.compute(block)
            return self._write(*found)

    @contextmanager
    def _begun(self, name: str) -> Iterator[None]:
        """A mark as long as a block is worked on: those that stay say how often it took its worker down."""
        folder = inside(self.job.output, "begun")
        count = sum(each.startswith(f"{name}-") for each in sizes_in(folder))
        if count >= MAX_DEATHS:
            raise MunjangError(
                f"Block {name} took its worker down {count} times, perhaps for want of memory: give fewer "
                "--batch-tokens, or look at its texts."
            )
        mark = inside(folder, f"{name}-{uuid.uuid4().hex}")
        with writing(mark):
            pass
        yield
        remove(mark)

    def compute(self, block: Block) -> tuple[Block, Any, int]:
        """Vectors of a block's rows; rows that the model refuses are bad ones."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TruncationWarning)
            vectors, refused = self._survivors(block.texts)
        num_cut = sum(int(str(each.message).split()[0]) for each in caught if each.category is TruncationWarning)
        if refused:
            block.bad += [Bad(block.places[at], reason) for at, reason in refused.items()]
            keep_rows(block, [at for at in range(len(block.texts)) if at not in refused])
        return block, vectors, num_cut

    def _survivors(self, texts: list[str]) -> tuple[Any, dict[int, str]]:
        """The vectors of the texts that the model takes, and why not of the others, which are found by halves."""
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

    def _write(self, block: Block, vectors_ND: Any, num_cut: int) -> Done:
        """The bad rows first: where the block is, they are too."""
        from pyarrow import parquet

        job = self.job
        if block.bad:
            with writing(inside(job.output, f"bad/{block.name}.jsonl")) as file:
                source = shown(job.files[numbers_of(block.name)[0]])
                for bad in sorted(block.bad, key=lambda each: each.place):
                    file.write((json.dumps({"file": source, **asdict(bad)}) + "\n").encode())
        table = table_of(block, vectors_ND, job)
        ids = table.column("id")
        ends = (ids[0].as_py(), ids[-1].as_py()) if table.num_rows else (None, None)
        done = Done(block.name, job.key, table.num_rows, len(block.bad), num_cut, *ends)
        table = table.replace_schema_metadata({SUMMARY: json.dumps(asdict(done)).encode()})
        with writing(inside(job.output, f"blocks/{block.name}.parquet")) as file:
            # vectors hardly repeat and hardly shrink: dictionaries and compression only cost time
            kind = "snappy" if job.keep_text else "none"
            parquet.write_table(
                table, file, use_dictionary=False, compression=kind, write_statistics=["id"], row_group_size=GROUP_ROWS
            )
            return replace(done, num_bytes=file.tell())


def encode_texts(model: BiEncoder, job: Job, texts: list[str]) -> Any:
    """Vectors as a job asks for them."""
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
    """Only these of the good rows."""
    block.ids = [block.ids[at] for at in keep]
    block.texts = [block.texts[at] for at in keep]
    block.places = [block.places[at] for at in keep]


def drop_repeated(block: Block) -> None:
    """The second row with an id of the same block is a bad one."""
    first = {row_id: at for at, row_id in reversed(list(enumerate(block.ids)))}
    if len(first) < len(block.ids):
        keep = sorted(first.values())
        for at in sorted(set(range(len(block.ids))) - set(keep)):
            block.bad.append(Bad(block.places[at], f"the id {block.ids[at]!r:.80} occurs twice in this block"))
        keep_rows(block, keep)


def table_of(block: Block, vectors_ND: Any, job: Job) -> "pa.Table":
    """Columns id, vector and what else was asked for, in the order of the ids."""
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
    """UTF-8; a lone surrogate (JSON may hold one) becomes U+FFFD, as in the tokenizer."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def summary_of(address: str) -> Done | None:
    """What a file says of itself; None where there is none or it is not one of ours."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    filesystem, path = located(address)
    try:
        with filesystem.open_input_file(path) as file:
            return replace(Done(**json.loads(read_schema(file).metadata[SUMMARY])), num_bytes=int(file.size()))
    except (FileNotFoundError, ArrowException, TypeError, LookupError, ValueError):
        return None
