"""Stage 2: hard negatives of every question, found by vectors and by words together.

WORK/lists/<source>.npz names them by number: the question of each list, and its passages with the right one first.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from munjang import BiEncoder
from munjang.data.examples import Examples
from munjang.types import Doubles, Ints
from recipes.models import across
from recipes.models.sources import read_table

NUM_NEGATIVES = 8
HARDEST = 12  # the nearest passages, from which four negatives are drawn; others come from the next ones, one from all
NUM_HARDEST = 4
DEPTH = 60
K1, B = 1.2, 0.75  # of BM25
BLOCK = 2048  # questions, or passages, in one operation


@dataclass(frozen=True)
class Lists:
    """Texts of a source, and lists of them by number [N lists, 1 + NUM_NEGATIVES]."""

    name: str
    queries: list[str]
    passages: list[str]
    query_of_N: Ints
    passages_NK: Ints

    def examples(self, scores: Doubles | None = None) -> Examples:
        """Return the lists as a question, its passage and the negatives, with a teacher's scores if given."""
        first = [self.queries[at] for at in self.query_of_N.tolist()]
        others = [[self.passages[at] for at in column] for column in self.passages_NK.T.tolist()]
        return Examples(self.name, (first, *others), scores=scores)


def mine(model: BiEncoder, work: Path) -> None:
    """Write the lists of every source of stage 1."""
    (work / "lists").mkdir(exist_ok=True)
    for path in sorted((work / "pairs").glob("*.tsv*")):
        name = path.name.split(".")[0]
        if (work / f"lists/{name}.npz").exists():
            continue
        random = np.random.default_rng(29)
        query_N, passages_NK = (_mixed if across.is_across(path) else _alike)(model, path, random)
        np.savez(work / f"lists/{name}.npz", query=query_N, passages=passages_NK)
        print(f"{name}: {len(query_N):,} lists", flush=True)


def _alike(model: BiEncoder, path: Path, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw negatives for questions from all passages of their table."""
    queries, passages, own = texts_of(path)
    nearest = fused(model, queries, passages)
    rows = [
        (at, right, _drawn(nearest[at], own[at], len(passages), random))
        for at in range(len(queries))
        for right in own[at]
    ]
    found = [(at, [right, *wrong]) for at, right, wrong in rows if len(wrong) == NUM_NEGATIVES]
    return _numbers([at for at, _ in found]), _numbers([row for _, row in found])


def _mixed(model: BiEncoder, path: Path, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw negatives for units, the nearest in either language, and put each into a language."""
    queries, passages = across.read_units(path)
    count = len(queries) // 2
    nearest = [fused(model, queries[part], passages[part]) for part in (slice(count), slice(count, None))]
    turns_ND = np.stack(nearest, axis=2).reshape(count, -1)
    drawn = [_drawn(_numbers(list(dict.fromkeys(turns_ND[at].tolist()))), [at], count, random) for at in range(count)]
    full = [[at, *wrong] for at, wrong in enumerate(drawn) if len(wrong) == NUM_NEGATIVES]
    rows = _numbers(full).reshape(-1, 1 + NUM_NEGATIVES)
    is_same = [queries[at] == passages[at] for at in rows[:, 0].tolist()]
    return across.put_in_languages(rows, count, is_same, random)


def texts_of(path: Path) -> tuple[list[str], list[str], list[list[int]]]:
    """Return the questions and passages of a table, each once, and the passages that answer each question."""
    table = read_table(path, ("query", "passage"))
    queries, passages = list(dict.fromkeys(table["query"])), list(dict.fromkeys(table["passage"]))
    query_at, passage_at = ({text: at for at, text in enumerate(texts)} for texts in (queries, passages))
    own: list[list[int]] = [[] for _ in queries]
    for query, passage in zip(table["query"], table["passage"], strict=True):
        own[query_at[query]].append(passage_at[passage])
    return queries, passages, own


def read_lists(work: Path, name: str) -> Lists:
    """Read the lists of a source."""
    path = next((work / "pairs").glob(f"{name}.tsv*"))
    queries, passages = across.read_units(path) if across.is_across(path) else texts_of(path)[:2]
    numbers = np.load(work / f"lists/{name}.npz")
    return Lists(name, queries, passages, numbers["query"], numbers["passages"])


def _numbers(values: object) -> Ints:
    return np.asarray(values, np.int64)


def cosines(model: BiEncoder, lists: Lists) -> Doubles:
    """Return the encoder's own cosines of every list [N lists, 1 + NUM_NEGATIVES]."""
    queries, passages = (
        model.encode(texts, normalize=True, progress=False) for texts in (lists.queries, lists.passages)
    )
    found: Doubles = np.einsum("nd,nkd->nk", queries[lists.query_of_N], passages[lists.passages_NK]).astype(np.float64)
    return found


def _drawn(nearest: Ints, own: list[int], num_passages: int, random: np.random.Generator) -> list[int]:
    """Draw negatives: some of the hardest, some of those behind them, and one of all passages."""
    wrong = [at for at in nearest.tolist() if at not in own]
    first = random.permutation(wrong[:HARDEST])[:NUM_HARDEST].tolist()
    others = wrong[HARDEST:] if len(wrong) >= 2 * HARDEST else [at for at in wrong if at not in first]
    next_ones = random.permutation(others)[: NUM_NEGATIVES - 1 - len(first)].tolist()
    anywhere = int(random.integers(num_passages))
    return [*first, *next_ones, *([] if anywhere in (*own, *first, *next_ones) else [anywhere])]


def fused(model: BiEncoder, queries: list[str], passages: list[str]) -> Ints:
    """Return the passages nearest to each question by the sum of its standardized cosines and BM25 scores."""
    device = model.device
    query_vectors, passage_vectors = (
        torch.from_numpy(model.encode(texts, normalize=True, progress=False)).to(device)
        for texts in (queries, passages)
    )
    words = Words(model, passages, device)
    depth = min(DEPTH, len(passages))
    found = []
    for start in range(0, len(queries), BLOCK):
        cosines_QN = query_vectors[start : start + BLOCK] @ passage_vectors.T
        both_QN = _standard(cosines_QN) + _standard(words.scores(queries[start : start + BLOCK]))
        found.append(both_QN.topk(depth, dim=1).indices.cpu())
    nearest: Ints = torch.cat(found).numpy()
    return nearest


def _standard(scores_QN: Tensor) -> Tensor:
    """Divide by the best score of each question, so that both ways count alike at the top."""
    low_Q1 = scores_QN.mean(1, keepdim=True)
    return (scores_QN - low_Q1) / (scores_QN.amax(1, keepdim=True) - low_Q1).clamp(min=1e-6)


class Words:
    """BM25 over the tokens of the model's vocabulary, as products of matrices.    Q questions, N passages, V tokens."""

    def __init__(self, model: BiEncoder, passages: list[str], device: torch.device) -> None:
        self.model, self.device = model, device
        counts_NV = self._counts(passages)
        lengths_N1 = torch.sparse.sum(counts_NV, 1).to_dense()[:, None]
        at, counts = counts_NV.indices(), counts_NV.values()
        frequency_V = torch.bincount(at[1], minlength=counts_NV.shape[1])
        idf_V = torch.log(1 + (len(passages) - frequency_V + 0.5) / (frequency_V + 0.5))
        lengths = lengths_N1[at[0], 0] / lengths_N1.mean()
        weights = idf_V[at[1]] * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths))
        self.weights_NV = torch.sparse_coo_tensor(at, weights, counts_NV.shape, check_invariants=False).coalesce()

    def scores(self, queries: list[str]) -> Tensor:
        """Return the score of each passage for each question [Q, N]."""
        asked_QV = (self._counts(queries).to_dense() > 0).float()
        return torch.sparse.mm(self.weights_NV, asked_QV.T).T

    def _counts(self, texts: list[str]) -> Tensor:
        ids, lengths = self.model.tokenizer.bodies(texts)
        at = np.stack([np.repeat(np.arange(len(texts)), lengths), ids])
        shape = (len(texts), self.model.model.network.encoder.vocab_size)
        ones = torch.ones(at.shape[1], device=self.device)
        return torch.sparse_coo_tensor(
            torch.from_numpy(at).long().to(self.device), ones, shape, check_invariants=False
        ).coalesce()
