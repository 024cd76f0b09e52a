"""Published datasets whose files need more than their suffix to be read: a table of shapes, one line each."""

from collections.abc import Callable

from munjang.data.published import documents, pairs, texts
from munjang.data.published.shape import Head, Shape, head_of, split_of
from munjang.data.rows import Source

__all__ = ["PUBLISHED", "Shape", "shape_of", "split_of"]


def _tabs_under(*header: str, suffixes: tuple[str, ...] = (".txt", ".tsv")) -> Callable[[Head], bool]:
    return lambda head: head.name.endswith(suffixes) and head.has_header(*header)


PUBLISHED: dict[str, Shape] = {
    "sts-benchmark": Shape("STS benchmark", "sts-test.csv", pairs.tells_sts_benchmark, pairs.sts_benchmark, (0, 5)),
    "scored-csv": Shape("stsb_multi_mt", "stsb-en-test.csv", pairs.tells_scored_csv, pairs.scored_csv, (0, 5)),
    "semeval": Shape(
        *("SemEval STS 2012 to 2016", "STS.input.NAME.txt, STS.gs.NAME.txt", pairs.tells_semeval, pairs.semeval),
        score_range=(0, 5),
        partner=pairs.semeval_partner,
    ),
    "klue-sts": Shape(
        "KLUE-STS", "klue-sts-v1.1_dev.json", documents.tells_klue_sts, documents.klue_sts, score_range=(0, 5)
    ),
    "sick": Shape(
        *("SICK", "SICK.txt, SICK_train.txt", _tabs_under("pair_id", "sentence_a", "sentence_b"), pairs.tabs),
        score_range=(1, 5),
    ),
    "nli-txt": Shape(
        "SNLI, MultiNLI",
        "snli_1.0_test.txt",
        _tabs_under("gold_label", "sentence1", "sentence2", suffixes=(".txt",)),
        pairs.tabs,
    ),
    "mrpc": Shape(*("MRPC", "msr_paraphrase_test.txt", _tabs_under("quality", "#1 string", "#2 string"), pairs.mrpc)),
    "quora": Shape("Quora questions", "quora_duplicate_questions.tsv", pairs.tells_quora, pairs.quora),
    "paws-x": Shape("PAWS, PAWS-X", "test_2k.tsv", pairs.tells_paws_x, pairs.paws_x, drops_blank=True),
    "afs": Shape("Argument Facet Similarity", "ArgPairs_GM.csv", pairs.tells_facets, pairs.facets, score_range=(0, 5)),
    "wikipedia-sections": Shape(
        *("Wikipedia sections", "test.csv with Sentence1, Sentence2, Sentence3", pairs.tells_sections, pairs.sections)
    ),
    "squad": Shape(
        *("SQuAD, KorQuAD 1", "KorQuAD_v1.0_dev.json", documents.tells_squad, documents.squad), evaluates="retrieval"
    ),
    "nsmc": Shape(
        *("NSMC", "ratings_test.txt", _tabs_under("id", "document", "label"), pairs.tabs),
        drops_blank=True,
        evaluates="classification",
    ),
    "polarity": Shape(
        *("MR, CR, MPQA, SUBJ of SentEval", "rt-polarity.pos, rt-polarity.neg", texts.tells_polarity, texts.polarity),
        partner=texts.polarity_partner,
        evaluates="classification",
        folds=10,
    ),
    "sentiment": Shape(
        "SST of SentEval", "sentiment-test", texts.tells_sentiment, texts.sentiment, evaluates="classification"
    ),
    "trec": Shape("TREC of SentEval", "TREC_10.label", texts.tells_trec, texts.trec, evaluates="classification"),
    "tatoeba": Shape("Tatoeba", "id, sentence, id, translation", texts.tells_tatoeba, texts.tatoeba),
    "attributed": Shape("Tatoeba for learners", "kor.txt", texts.tells_attributed, texts.attributed),
    "moses": Shape(
        "OPUS", "Tatoeba.en-ko.en, Tatoeba.en-ko.ko", texts.tells_moses, texts.moses, partner=texts.moses_partner
    ),
    "parallel": Shape("parallel sentences", "TED2020-en-ko-train.tsv.gz", texts.tells_parallel, texts.parallel),
}


def shape_of(path: Source) -> str | None:
    """Return the key of PUBLISHED for a file, by its name and its first lines; None for a plain table."""
    head = head_of(path)
    if head is None:
        return None
    return next((name for name, shape in PUBLISHED.items() if shape.tells(head)), None)
