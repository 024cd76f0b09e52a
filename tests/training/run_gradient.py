"""One batch's gradient in one of several processes: torchrun --nproc-per-node 3 -m ... FOLDER OUT."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import save_file

from munjang.training.process_group import leave_together
from tests.training.made import examples, gradient

OBJECTIVES = {"in_batch": 2, "classification": 2, "cosent": 2, "batch_hard_triplet": 1, "masked": 1}
ROWS = 13  # which neither two nor three processes share evenly


def write_gradients(folder: Path, out: Path) -> None:
    """Loss and gradients of every objective, by the first process, and how often they were exchanged."""
    counted = [0]
    reduce = dist.all_reduce

    def counting(*given: object, **more: object) -> object:
        counted[0] += 1
        return reduce(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "all_reduce", counting)
        _write_all(folder, out, counted)


def _write_all(folder: Path, out: Path, counted: list[int]) -> None:
    for objective, columns in OBJECTIVES.items():
        for batch_tokens in (100_000, 60):
            before = counted[0]
            loss, found = gradient(folder, objective, examples(ROWS, columns), batch_tokens, dropout=0.0)
            if os.environ.get("RANK", "0") == "0":
                save_file(found, out / f"{objective}-{batch_tokens}.safetensors")
                facts = {"loss": loss, "exchanges": counted[0] - before}
                (out / f"{objective}-{batch_tokens}.json").write_text(json.dumps(facts))


def main(folder: Path, out: Path) -> None:
    torch.set_num_threads(1)
    write_gradients(folder, out)
    leave_together(is_over=True)
    sys.stdout.flush()
    os._exit(0)  # torch's own threads may abort a process that ends while another one still speaks to it


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
