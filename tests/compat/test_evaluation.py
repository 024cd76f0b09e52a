"""Evaluators under their names: the same numbers and the same CSV files as theirs."""

import pytest
import sentence_transformers.cross_encoder.evaluation as their_pairs
import sentence_transformers.sentence_transformer.evaluation as theirs

from munjang.compat import InputExample
from munjang.compat import evaluation as ours

A = ["the cat sleeps", "a dog runs", "rain falls", "the sun shines", "people walk", "a bird sings"]
B = ["a cat naps", "the dog is running", "it rains", "sunshine", "somebody eats", "the car is red"]
IDS = [f"d{place}" for place in range(len(A))]
SAMPLES = [
    {"query": a, "positive": [b], "negative": B[:at] + B[at + 1 :]} for at, (a, b) in enumerate(zip(A, B, strict=True))
]
EVALUATORS = {
    "EmbeddingSimilarityEvaluator": {"sentences1": A, "sentences2": B, "scores": [0.9, 0.8, 0.7, 0.9, 0.1, 0.0]},
    "EmbeddingSimilarityEvaluator all": {
        "sentences1": A,
        "sentences2": B,
        "scores": [0.9, 0.8, 0.7, 0.9, 0.1, 0.0],
        "name": "sts",
        "similarity_fn_names": ["cosine", "dot", "euclidean", "manhattan"],
    },
    "BinaryClassificationEvaluator": {"sentences1": A, "sentences2": B, "labels": [1, 0, 1, 1, 0, 0]},
    "BinaryClassificationEvaluator all": {
        "sentences1": A,
        "sentences2": B,
        "labels": [1, 1, 0, 1, 0, 0],
        "name": "pairs",
        "similarity_fn_names": ["cosine", "dot", "euclidean", "manhattan"],
    },
    "TripletEvaluator": {"anchors": A, "positives": B, "negatives": B[::-1], "margin": 0.01},
    "TranslationEvaluator": {"source_sentences": A, "target_sentences": B, "name": "en"},
    "RerankingEvaluator": {"samples": SAMPLES, "at_k": 3},
    "InformationRetrievalEvaluator": {
        "queries": dict(zip(IDS, A, strict=True)),
        "corpus": dict(zip(IDS, B, strict=True)),
        "relevant_docs": {"d0": {"d0"}, "d1": {"d1", "d2"}, "d3": {"d5"}},
        "map_at_k": [3],
    },
    "ParaphraseMiningEvaluator": {
        "sentences_map": dict(enumerate([*A, *B])),
        "duplicates_list": [(0, 6), (1, 7), (6, 8)],
        "add_transitive_closure": True,
    },
}
PAIRS = {
    "CrossEncoderCorrelationEvaluator": {"sentence_pairs": list(zip(A, B, strict=True)), "scores": [1, 2, 3, 4, 5, 6]},
    "CrossEncoderClassificationEvaluator": {
        "sentence_pairs": list(zip(A, B, strict=True)),
        "labels": [0, 1, 1, 0, 1, 0],
    },
    "CrossEncoderRerankingEvaluator": {"samples": SAMPLES},
    "CrossEncoderRerankingEvaluator of documents": {
        "samples": [
            {"query": A[0], "positive": B[:2], "documents": B[1:4]},
            {"query": A[1], "positive": ["x"], "documents": B},
        ],
        "always_rerank_positives": False,
    },
}
PAIRS |= {
    "CECorrelationEvaluator": PAIRS["CrossEncoderCorrelationEvaluator"],
    "CERerankingEvaluator": {"samples": SAMPLES, "name": "older"},
    **dict.fromkeys(
        [f"CE{kind}Evaluator" for kind in ("BinaryAccuracy", "BinaryClassification", "F1", "SoftmaxAccuracy")],
        PAIRS["CrossEncoderClassificationEvaluator"],
    ),
}


def compared(package_pair, models, name, options, folder):
    found = []
    for at, (package, model) in enumerate(zip(package_pair, models, strict=True)):
        place = folder / str(at)
        place.mkdir()
        evaluator = getattr(package, name.split()[0])(**options)
        metrics = evaluator(model, output_path=str(place), epoch=1, steps=2)
        files = {path.name: path.read_text().replace("\r", "").splitlines()[0] for path in place.iterdir()}
        found.append((metrics, evaluator.primary_metric, files, evaluator.csv_headers))
    (mine, main, files, headers), (wanted, their_main, their_files, their_headers) = found
    assert (main, files, headers) == (their_main, their_files, their_headers)
    assert mine == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", EVALUATORS)
def test_evaluators_are_theirs(both, name, tmp_path):
    compared((ours, theirs), both("bert"), name, EVALUATORS[name], tmp_path)


@pytest.mark.parametrize("name", PAIRS)
def test_evaluators_of_cross_encoders_are_theirs(both_scorers, name, tmp_path):
    compared((ours, their_pairs), both_scorers(1), name, PAIRS[name], tmp_path)


def test_older_names_take_examples():
    examples = [InputExample(texts=[a, b], label=at % 2) for at, (a, b) in enumerate(zip(A, B, strict=True))]
    evaluator = ours.CEF1Evaluator.from_input_examples(examples, name="f1")
    assert evaluator.sentence_pairs == [[a, b] for a, b in zip(A, B, strict=True)]
    assert evaluator.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_classes(both_scorers, tmp_path):
    options = {"sentence_pairs": list(zip(A, B, strict=True)), "labels": [0, 1, 2, 0, 1, 2]}
    compared((ours, their_pairs), both_scorers(3), "CrossEncoderClassificationEvaluator", options, tmp_path)


def test_several_and_a_teacher(both):
    mine, other = both("bert")
    first = ours.MSEEvaluator(A, B, teacher_model=mine, name="one")
    wanted = theirs.MSEEvaluator(A, B, teacher_model=other, name="one")
    found = ours.SequentialEvaluator([first, ours.TranslationEvaluator(A, B)], main_score_function=sum)(mine)
    expected = theirs.SequentialEvaluator([wanted, theirs.TranslationEvaluator(A, B)], main_score_function=sum)(other)
    assert found == pytest.approx(expected, abs=1e-4)


def nano(path, subset, split):
    """Stand for the Hub: two of the datasets, six texts each."""
    from datasets import Dataset

    assert split in ("NanoMSMARCO", "NanoNQ")
    ids, texts = (IDS, B) if subset == "corpus" else (["q0", "q1"], A[:2])
    rows = {
        "qrels": {"query-id": ["q0", "q1", "q1"], "corpus-id": ["d0", "d1", "d3"]},
        "bm25": {"query-id": ["q0", "q1"], "corpus-ids": [IDS[:4], IDS[::-1]]},
    }
    return Dataset.from_dict(rows.get(subset) or {"_id": ids, "text": texts})


@pytest.mark.parametrize("name", ["NanoBEIREvaluator", "CrossEncoderNanoBEIREvaluator"])
def test_nano_beir_is_theirs(both, both_scorers, name, monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets", reason="pip install 'munjang[datasets]'")
    monkeypatch.setattr(datasets, "load_dataset", nano)
    is_cross = name.startswith("Cross")
    packages, models = ((ours, their_pairs), both_scorers(1)) if is_cross else ((ours, theirs), both("bert"))
    options = {"dataset_names": ["msmarco", "nq"], **({"rerank_k": 3} if is_cross else {"query_prompts": "q: "})}
    compared(packages, models, name, options, tmp_path)
    with pytest.raises(ValueError, match="are not valid NanoBEIR datasets"):
        getattr(ours, name)(dataset_names=["nothing"])
