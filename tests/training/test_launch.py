"""`munjang train` and `adapt` under torchrun, as a user starts them: two processes write what one writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from munjang.bi_encoder import BiEncoder
from tests.training.made import sentences
from tests.training.runs import losses, write_tsv

ROOT = Path(__file__).parents[2]
ROWS = 41  # which two processes do not share evenly, and batches of 8 neither


def start(number: int, *given: str) -> None:
    """The command in so many processes on this machine."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    command += ["-m", "munjang", *given]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_two_processes_with_gathered_negatives_write_what_one_writes(tmp_path: Path, tiny_bert: Path) -> None:
    """fp32 on a CPU, no dropout, in-batch negatives: every anchor is compared with all 8 positives, in both runs."""
    pairs = zip(sentences(ROWS, 1), sentences(ROWS, 2), strict=True)
    data = write_tsv(tmp_path / "pairs.tsv", "anchor positive", pairs)
    settings = ["--objective", "in_batch", "--batch-size", "8", "--epochs", "2", "--learning-rate", "1e-3", "--quiet"]
    settings += ["--dropout", "0", "--log-every", "1", "--device", "cpu", "--seed", "3"]
    outputs = {number: tmp_path / f"with-{number}" for number in (1, 2)}
    for number, output in outputs.items():
        start(number, "train", str(tiny_bert), str(data), "-o", str(output), *settings)
    for number, output in outputs.items():
        assert json.loads((tmp_path / f"{output.name}.training/run.json").read_text())["processes"] == number
    alone, shared = losses(outputs[1]), losses(outputs[2])
    assert len(alone) == len(shared) == 12  # 6 batches an epoch: the last one has a single pair
    assert np.abs(np.array(alone) - shared).max() < 2e-4
    assert alone[-2] < alone[0]
    layouts = [sorted(str(path.relative_to(each)) for path in each.rglob("*")) for each in outputs.values()]
    assert layouts[0] == layouts[1]
    assert "modules.json" in layouts[0]
    one, two = (load_file(each / "model.safetensors") for each in outputs.values())
    apart = {name: float((one[name] - two[name]).abs().mean()) for name in one}
    # where a gradient is rounding noise (biases of keys), Adam makes whole steps of it, in any direction
    assert np.median(list(apart.values())) < 1e-5, apart
    assert max(value for name, value in apart.items() if not name.endswith("key.bias")) < 1e-3, apart
    texts = sentences(9, 5)
    vectors = [BiEncoder.load(each, "cpu").encode(texts) for each in outputs.values()]
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-3


@pytest.mark.slow
def test_two_processes_adapt_and_fine_tune(tmp_path: Path, tiny_bert: Path) -> None:
    """The second stage reads what the first one wrote, in processes that know each other still."""
    texts, pairs = tmp_path / "texts.txt", zip(sentences(ROWS, 1), sentences(ROWS, 2), strict=True)
    texts.write_text("\n".join(sentences(ROWS, 3)))
    data, output = write_tsv(tmp_path / "pairs.tsv", "anchor positive", pairs), tmp_path / "out"
    settings = ["--method", "masked", "--batch-size", "8", "--device", "cpu", "--quiet"]
    start(2, "adapt", str(tiny_bert), str(texts), "-o", str(output), "--then", str(data), *settings)
    begun, adapted, tuned = (
        load_file(each / "model.safetensors") for each in (tiny_bert, Path(f"{output}.adapted"), output)
    )
    assert all((begun[name] - adapted[name]).abs().max() > 0 for name in begun if "query.weight" in name)
    assert all((adapted[name] - tuned[name]).abs().max() > 0 for name in begun if "query.weight" in name)
