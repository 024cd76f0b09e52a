"""The head of a re-ranker fitted anew on its encoder as it is: minutes on a CPU, for when only the encoder is there.

N queries, K candidates of each with the right one first, D width.
"""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from munjang import BiEncoder, CrossEncoder
from munjang.data.examples import Examples
from munjang.types import Floats
from recipes.ko_en_reranker.data import NUM_NEGATIVES, negatives
from recipes.ko_en_small.data import firsts, read

ROWS = {"Quora": 300, "MedQuAD": 300, "WikiQA": 400, "headings": 500, "passages": 500, "asked": 1500, "gathered": 2500}
LAYERS = ("3_Dense", "5_Dense")
STEPS, BATCH = 3000, 256
ABSOLUTE = 0.2  # weight of yes and no by themselves: a score over 0 should mean yes


def fit_head(model: Path, finder: Path, made: Path, data: Path, out: Path) -> None:
    """Write the re-ranker once more with a head that fits."""
    found = mined(BiEncoder.load(finder), made, data)
    features_NKD = torch.from_numpy(features(model, found))
    is_held = torch.arange(len(features_NKD)) % 10 == 0
    head = fitted(features_NKD[~is_held])
    with torch.no_grad():
        for name, part in (("learned from", ~is_held), ("kept back", is_held)):
            right = (head(features_NKD[part]).squeeze(-1).argmax(1) == 0).float().mean()
            print(f"the right one comes first in {100 * right:.1f} % of the lists {name}", flush=True)
    shutil.copytree(model, out, dirs_exist_ok=True)
    for folder, layer in zip(LAYERS, (head[0], head[2]), strict=True):
        weights = {f"linear.{name}": value.detach().contiguous() for name, value in layer.named_parameters()}
        save_file(weights, out / folder / "model.safetensors")


def mined(finder: BiEncoder, made: Path, data: Path) -> list[tuple[str, ...]]:
    """Queries with the right candidate and wrong ones, of every kind."""
    sets = read(data, made)
    rows: list[tuple[str, ...]] = []
    for each in (*sets.questions, *sets.passages):
        if each.name not in ROWS:
            continue
        chosen = np.random.default_rng(3).permutation(len(each))[: ROWS[each.name]]
        some = negatives(finder, _alone(each.take(np.sort(chosen).tolist())))
        rows += zip(*some.texts, strict=True)
    return rows


def _alone(examples: Examples) -> Examples:
    """Each passage once: another question's row would bring it as a wrong one."""
    return examples.take(firsts(examples.texts[1]))


def features(model: Path, rows: list[tuple[str, ...]]) -> Floats:
    """Return the input of the head for every pair, by a head that changes nothing."""
    with TemporaryDirectory() as folder:
        open_head = Path(folder) / "model"
        shutil.copytree(model, open_head)
        for name in LAYERS:
            config = json.loads((open_head / name / "config.json").read_text())
            config |= {"out_features": config["in_features"], "activation_function": "torch.nn.modules.linear.Identity"}
            (open_head / name / "config.json").write_text(json.dumps(config))
            width = config["in_features"]
            save_file(
                {"linear.weight": torch.eye(width), "linear.bias": torch.zeros(width)},
                open_head / name / "model.safetensors",
            )
        cross = CrossEncoder.load(open_head, "cpu", "int8")
        pairs = [(query, text) for query, *texts in rows for text in texts]
        found = cross.predict(pairs, activation="Identity", progress=True)
    result: Floats = found.reshape(len(rows), NUM_NEGATIVES + 1, -1).astype(np.float32)
    return result


def fitted(features_NKD: Tensor) -> nn.Sequential:
    """The right one against the wrong ones of its list and one of another list."""
    torch.manual_seed(7)
    width = features_NKD.shape[-1]
    head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        rows = torch.randint(len(features_NKD), (BATCH,))
        list_BKD = torch.cat([features_NKD[rows], features_NKD[rows][:, 1:2].roll(1, 0)], dim=1)
        logits_BK = head(F.dropout(list_BKD, 0.1)).squeeze(-1)
        target_B = torch.zeros(BATCH, dtype=torch.long)
        yes_BK = F.one_hot(target_B, logits_BK.shape[1]).float()
        absolute = F.binary_cross_entropy_with_logits(logits_BK, yes_BK, pos_weight=torch.tensor(8.0))
        loss = F.cross_entropy(logits_BK, target_B) + ABSOLUTE * absolute
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
    return head.eval()
