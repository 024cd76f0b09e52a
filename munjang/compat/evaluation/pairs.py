"""Evaluators over pairs and triplets of texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from munjang.compat.evaluation.base import PAIRWISE, BaseEvaluator, names_of, shown
from munjang.compat.similarity_functions import SimilarityFunction, cos_sim
from munjang.evaluation.metrics.correlation import pearson, spearman

CODES = ("int8", "uint8", "binary", "ubinary")


class EmbeddingSimilarityEvaluator(BaseEvaluator):
    """Correlation of similarities with scores."""

    def __init__(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        scores: Sequence[float],
        batch_size: int = 16,
        main_similarity: Any = None,
        similarity_fn_names: list[str] | None = None,
        name: str = "",
        show_progress_bar: bool = False,
        write_csv: bool = True,
        precision: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.sentences1, self.sentences2, self.scores = sentences1, sentences2, scores
        assert len(sentences1) == len(sentences2) == len(scores), "Every pair needs a score."
        self.main_similarity = SimilarityFunction(main_similarity) if main_similarity else None
        self.similarity_fn_names = names_of(main_similarity, similarity_fn_names)
        self.batch_size, self.name, self.write_csv = batch_size, name, write_csv
        self.precision, self.truncate_dim, self.show_progress_bar = precision, truncate_dim, shown(show_progress_bar)
        parts = ["similarity_evaluation", *([name] if name else []), *([precision] if precision else [])]
        self.csv_file = "_".join(parts) + "_results.csv"
        self._name_columns()

    def _name_columns(self) -> None:
        columns = [f"{name}_{metric}" for name in self.similarity_fn_names for metric in ("pearson", "spearman")]
        self.csv_headers = ["epoch", "steps", *columns]

    @classmethod
    def from_input_examples(cls, examples: Sequence[Any], **kwargs: Any) -> "EmbeddingSimilarityEvaluator":
        """Take the pairs of InputExamples."""
        first, second = ([example.texts[at] for example in examples] for at in (0, 1))
        return cls(first, second, [example.label for example in examples], **kwargs)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        both = self.embed_inputs(model, [*self.sentences1, *self.sentences2], precision=self.precision)
        if self.precision in ("binary", "ubinary"):
            codes = both.astype(np.int16) + 128 if self.precision == "binary" else both
            both = np.unpackbits(codes.astype(np.uint8), axis=1)
        both = both.astype(np.float32) if self.precision in CODES else both
        first, second = both[: len(self.sentences1)], both[len(self.sentences1) :]
        if not self.similarity_fn_names:
            self.similarity_fn_names = [model.similarity_fn_name]
            self._name_columns()
        wanted = np.asarray(self.scores, np.float64)
        metrics: dict[str, Any] = {}
        for name in self.similarity_fn_names:
            found = PAIRWISE[name](first, second).detach().cpu().numpy().astype(np.float64)
            metrics[f"pearson_{name}"], metrics[f"spearman_{name}"] = pearson(wanted, found), spearman(wanted, found)
        self.write_row(output_path, [epoch, steps, *metrics.values()])
        several = len(self.similarity_fn_names) > 1
        if several:
            for metric in ("pearson", "spearman"):
                metrics[f"{metric}_max"] = max(metrics[f"{metric}_{name}"] for name in self.similarity_fn_names)
        main = self.main_similarity.value if self.main_similarity else self.similarity_fn_names[0]
        self.primary_metric = "spearman_max" if several and not self.main_similarity else f"spearman_{main}"
        return self.finished(model, metrics, epoch, steps)

    @property
    def description(self) -> str:
        return "Semantic Similarity"

    def get_config_dict(self) -> dict[str, Any]:
        found = {"truncate_dim": self.truncate_dim, "precision": self.precision}
        return {name: value for name, value in found.items() if value is not None}


class TripletEvaluator(BaseEvaluator):
    """The share of triplets whose positive is closer than the negative."""

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[str],
        negatives: Sequence[str],
        main_similarity_function: Any = None,
        margin: Any = None,
        name: str = "",
        batch_size: int = 16,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        similarity_fn_names: list[str] | None = None,
        main_distance_function: Any = "deprecated",
    ) -> None:
        super().__init__()
        assert len(anchors) == len(positives) == len(negatives), "Every anchor needs a positive and a negative."
        if main_distance_function != "deprecated" and main_similarity_function is None:
            main_similarity_function = main_distance_function
        self.anchors, self.positives, self.negatives = anchors, positives, negatives
        self.main_similarity_function = (
            SimilarityFunction(main_similarity_function) if main_similarity_function else None
        )
        self.similarity_fn_names = names_of(main_similarity_function, similarity_fn_names)
        if unknown := sorted(set(self.similarity_fn_names) - set(PAIRWISE)):
            raise ValueError(
                f"`similarity_fn_names` got unexpected names {unknown}, expected names in {list(PAIRWISE)}."
            )
        if isinstance(margin, dict):
            if unknown := sorted(set(margin) - set(PAIRWISE)):
                raise ValueError(f"`margin` got unexpected keys {unknown}, expected keys in {list(PAIRWISE)}.")
        elif not isinstance(margin, (int, float, type(None))):
            raise ValueError(f"`margin` should be a float or a dictionary with keys in {list(PAIRWISE)}.")
        given = margin if isinstance(margin, dict) else dict.fromkeys(PAIRWISE, margin or 0)
        self.margin: dict[str, float] = {**dict.fromkeys(PAIRWISE, 0), **given}
        self.batch_size, self.name, self.write_csv = batch_size, name, write_csv
        self.truncate_dim, self.show_progress_bar = truncate_dim, shown(show_progress_bar)
        self.csv_file = f"triplet_evaluation{'_' + name if name else ''}_results.csv"
        self.csv_headers += [f"accuracy_{each}" for each in self.similarity_fn_names]

    @classmethod
    def from_input_examples(cls, examples: Sequence[Any], **kwargs: Any) -> "TripletEvaluator":
        """Take the triplets of InputExamples."""
        first, second, third = ([example.texts[at] for example in examples] for at in range(3))
        return cls(first, second, third, **kwargs)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        anchors = self.embed_inputs(model, self.anchors, "query")
        positives = self.embed_inputs(model, self.positives, "document")
        negatives = self.embed_inputs(model, self.negatives, "document")
        if not self.similarity_fn_names:
            self.similarity_fn_names = [model.similarity_fn_name]
            self.csv_headers += [f"accuracy_{each}" for each in self.similarity_fn_names]
        metrics: dict[str, Any] = {}
        for name in self.similarity_fn_names:
            near, far = PAIRWISE[name](anchors, positives), PAIRWISE[name](anchors, negatives)
            metrics[f"{name}_accuracy"] = (near > far + self.margin[name]).float().mean().item()
        self.write_row(output_path, [epoch, steps, *metrics.values()])
        several = len(self.similarity_fn_names) > 1
        if several:
            metrics["max_accuracy"] = max(metrics.values())
        main = self.main_similarity_function.value if self.main_similarity_function else self.similarity_fn_names[0]
        self.primary_metric = "max_accuracy" if several and not self.main_similarity_function else f"{main}_accuracy"
        return self.finished(model, metrics, epoch, steps)

    def get_config_dict(self) -> dict[str, Any]:
        found = {} if not any(self.margin.values()) else {"margin": self.margin}
        return {**found, **super().get_config_dict()}


class MSEEvaluator(BaseEvaluator):
    """Squared error from a teacher's vectors, times 100, negative."""

    primary_metric = "negative_mse"

    def __init__(
        self,
        source_sentences: Sequence[str],
        target_sentences: Sequence[str],
        teacher_model: Any = None,
        show_progress_bar: bool = False,
        batch_size: int = 32,
        name: str = "",
        write_csv: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__()
        if len(source_sentences) != len(target_sentences):
            raise ValueError(
                f"source_sentences ({len(source_sentences)}) and target_sentences ({len(target_sentences)}) "
                "must have the same length."
            )
        self.target_sentences, self.name, self.batch_size = target_sentences, name, batch_size
        self.show_progress_bar, self.write_csv, self.truncate_dim = show_progress_bar, write_csv, truncate_dim
        self.csv_file, self.csv_headers = f"mse_evaluation_{name}_results.csv", ["epoch", "steps", "MSE"]
        self.source_embeddings = self.embed_inputs(teacher_model, source_sentences)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        found = self.embed_inputs(model, self.target_sentences)
        mse = ((self.source_embeddings - found) ** 2).mean().item() * 100
        self.write_row(output_path, [epoch, steps, mse])
        return self.finished(model, {"negative_mse": -mse}, epoch, steps)

    @property
    def description(self) -> str:
        return "Knowledge Distillation"


class TranslationEvaluator(BaseEvaluator):
    """The share of texts that are closest to their own translation, both ways."""

    primary_metric = "mean_accuracy"

    def __init__(
        self,
        source_sentences: Sequence[str],
        target_sentences: Sequence[str],
        show_progress_bar: bool = False,
        batch_size: int = 16,
        name: str = "",
        print_wrong_matches: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__()
        assert len(source_sentences) == len(target_sentences), "Every text needs a translation."
        self.source_sentences, self.target_sentences, self.name = source_sentences, target_sentences, name
        self.show_progress_bar, self.batch_size, self.write_csv = show_progress_bar, batch_size, write_csv
        self.print_wrong_matches, self.truncate_dim = print_wrong_matches, truncate_dim
        self.csv_file = f"translation_evaluation{'_' + name if name else ''}_results.csv"
        self.csv_headers += ["src2trg", "trg2src"]

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        rows = [self.embed_inputs(model, texts) for texts in (self.source_sentences, self.target_sentences)]
        cosines = cos_sim(*rows)
        found = []
        for scores, texts in ((cosines, self.target_sentences), (cosines.T, self.source_sentences)):
            best = scores.argmax(1).tolist()
            wrong = [(at, place) for at, place in enumerate(best) if texts[at] != texts[place]]
            found.append(1 - len(wrong) / len(texts))
            if self.print_wrong_matches and texts is self.target_sentences:
                for at, place in wrong:
                    print(f"\nIncorrect  : Source {at} is most similar to target {place} instead of target {at}")
                    print(f"Source     : {self.source_sentences[at]}\nPred Target: {texts[place]}")
        self.write_row(output_path, [epoch, steps, *found])
        metrics = {"src2trg_accuracy": found[0], "trg2src_accuracy": found[1], "mean_accuracy": sum(found) / 2}
        return self.finished(model, metrics, epoch, steps)


class LabelAccuracyEvaluator(BaseEvaluator):
    """The share of pairs whose label a softmax over two vectors names."""

    primary_metric = "accuracy"

    def __init__(self, dataloader: Any, name: str = "", softmax_model: Any = None, write_csv: bool = True) -> None:
        super().__init__()
        self.dataloader, self.name, self.softmax_model, self.write_csv = dataloader, name, softmax_model, write_csv
        self.csv_file = f"accuracy_evaluation{'_' + name if name else ''}_results.csv"
        self.csv_headers += ["accuracy"]

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        model.eval()
        self.dataloader.collate_fn = model.smart_batching_collate
        right = total = 0
        for features, labels in self.dataloader:
            with torch.no_grad():
                rows = [model(column)["sentence_embedding"] for column in features]
                logits = self.softmax_model.objective.logits(*rows)
            right += int((logits.argmax(1).cpu() == labels.cpu()).sum())
            total += len(labels)
        accuracy = right / total
        self.write_row(output_path, [epoch, steps, accuracy])
        return self.finished(model, {"accuracy": accuracy}, epoch, steps)
