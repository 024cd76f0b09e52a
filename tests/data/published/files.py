"""Tiny files in the shapes in which well-known datasets are published; their sentences are ours."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Published:
    """Files of one dataset; the first one is given to the reader."""

    shape: str | None  # key of PUBLISHED; None: a plain table that its suffix and its columns' names tell
    files: dict[str, str]
    texts: tuple[list[str], ...]
    target: str | None = None
    values: tuple[object, ...] = ()  # names of the labels, or scores scaled to 0 to 1
    kind: str | None = None  # of evaluation; None: a classifier, which needs rows to train on


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def jsonl(*rows: dict[str, object]) -> str:
    return lines(*(json.dumps(row, ensure_ascii=False) for row in rows))


def squad(*, is_new: bool = False) -> str:
    unanswerable = {"id": "q3", "question": "누가 갔나?", "answers": [], "is_impossible": True}
    first = [
        {"id": "q1", "question": "수도는?", "answers": [{"text": "서울", "answer_start": 0}]},
        {"id": "q2", "question": "강은?", "answers": [{"text": "한강", "answer_start": 7}]},
    ]
    paragraphs = [
        {"context": "서울은 수도이다. 한강이 흐른다.", "qas": [*first, *([unanswerable] if is_new else [])]},
        {"context": "부산은 항구다.", "qas": [{"id": "q4", "question": "항구는?", "answers": []}]},
    ]
    return json.dumps({"version": "1.0", "data": [{"title": "도시", "paragraphs": paragraphs}]}, ensure_ascii=False)


STSB_ROW = "main-captions\tMSRvid\t2012test\t0024\t{}\t{}\t{}"
STSB = (["A girl styles her hair.", 'Men play "soccer".'], ["A girl brushes her hair.", "Boys play soccer."])
NLI = (["A dog runs.", "두 사람이 걷는다.", "Snow falls."], ["An animal moves.", "아무도 없다.", "It is cold."])
NLI_NAMES = ("contradiction", "entailment", "neutral")
NLI_GOLD = ("entailment", "contradiction", "neutral")
SICK_HEAD = (
    "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tentailment_BA"
    "\tsentence_A_original\tsentence_B_original\tsentence_A_dataset\tsentence_B_dataset\tSemEval_set"
)
SICK_ROW = "{}\tKids play {}\tA boy stands\tNEUTRAL\t{}\tA_neutral_B\tB_neutral_A\tx\ty\tFLICKR\tFLICKR\t{}"
MRPC_ROWS = (
    "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
    '1\t702876\t702977\tHe called it "sad.\tSad, he said.',
    "0\t2108705\t2108831\tShares rose.\tShares of it fell.",
)
XNLI_HEAD = (
    "language\tgold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
    "\tsentence1\tsentence2\tpromptID\tpairID\tgenre\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tmatch"
)
XNLI_ROW = "ko\t{}\t\t\t\t\t{}\t{}\t1\t1\tfacetoface\t{}\tneutral\tneutral\tneutral\tneutral\tTrue"
AFS_HEAD = (
    "regular_label,uni_regular_label,majority_gold_label,sentence_1,sentence_2,arg_1_id,arg_2_id,"
    "title_1,title_2,pair_id,majority_label"
)


NLI_ROWS = list(zip(NLI_GOLD, *NLI, strict=True))
NLI_TABS = [f"{first}\t{second}\t{gold}" for gold, first, second in NLI_ROWS]
XNLI_TABS = [XNLI_ROW.format(gold, first, second, gold) for gold, first, second in NLI_ROWS]


def nli_items() -> list[dict[str, object]]:
    return [
        {"gold_label": gold, "sentence1": first, "sentence2": second, "pairID": str(row), "annotator_labels": [gold]}
        for row, (gold, first, second) in enumerate(NLI_ROWS)
    ]


def klue_nli() -> str:
    items = [
        {
            "guid": f"klue-nli-v1_dev_{row:05d}",
            "genre": "NSMC",
            "source": "NSMC",
            "premise": first,
            "hypothesis": second,
            "gold_label": gold,
            "author": gold,
            "label2": gold,
        }
        for row, (gold, first, second) in enumerate(NLI_ROWS)
    ]
    return json.dumps(items, ensure_ascii=False, indent=1)


def klue_sts() -> str:
    items = [
        {
            "guid": f"klue-sts-v1_dev_{row:05d}",
            "source": "airbnb-rtt",
            "sentence1": first,
            "sentence2": second,
            "labels": {"label": round(score, 1), "real-label": score, "binary-label": int(score > 3)},
            "annotations": {"agreement": "0:0:0:2:3:2:0", "annotators": ["07"], "annotations": [3]},
        }
        for row, (first, second, score) in enumerate(
            [("숙소가 좋아요.", "방이 좋았어요.", 3.5), ("비가 온다.", "가자.", 0.0)]
        )
    ]
    return json.dumps(items, ensure_ascii=False, indent=1)


PUBLISHED_FILES: dict[str, Published] = {
    "KorNLI": Published(
        *(
            None,
            {"snli_1.0_train.ko.tsv": lines("sentence1\tsentence2\tgold_label", *NLI_TABS)},
        ),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "KorNLI's MultiNLI": Published(
        *(None, {"multinli.train.ko.tsv": lines("premise\thypo\tlabel", *NLI_TABS)}),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "KorSTS": Published(
        None,
        {
            "sts-dev.tsv": lines(
                "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2",
                'main-captions\tMSRvid\t2012test\t0000\t5.000\t안전모를 "쓴 남자.\t모자를 쓴 남자.',
                "main-captions\tMSRvid\t2012test\t0002\t1.25\t아이가 탄다.\t달린다.",
            )
        },
        *((['안전모를 "쓴 남자.', "아이가 탄다."], ["모자를 쓴 남자.", "달린다."]), "scores", (1.0, 0.25), "sts"),
    ),
    "KLUE-NLI": Published(None, {"klue-nli-v1.1_dev.json": klue_nli()}, NLI, "labels", NLI_NAMES, "nli"),
    "KLUE-STS": Published(
        *("klue-sts", {"klue-sts-v1.1_dev.json": klue_sts()}),
        *((["숙소가 좋아요.", "비가 온다."], ["방이 좋았어요.", "가자."]), "scores", (0.7, 0.0), "sts"),
    ),
    "STSb": Published(
        "sts-benchmark",
        {
            "sts-test.csv": lines(
                STSB_ROW.format("2.500", STSB[0][0], STSB[1][0]),
                STSB_ROW.format("3.000", STSB[0][1], STSB[1][1]) + "\tsource one\tsource two",
            )
        },
        *(STSB, "scores", (0.5, 0.6), "sts"),
    ),
    "STSb of GLUE": Published(
        None,
        {
            "dev.tsv": lines(
                "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
                *(
                    f"{row}\tg\tf\t2012test\t1\tnone\tnone\t{a}\t{b}\t{s}"
                    for row, (a, b, s) in enumerate(zip(*STSB, (2.5, 3.0), strict=True))
                ),
            )
        },
        *(STSB, "scores", (0.5, 0.6), "sts"),
    ),
    "stsb_multi_mt": Published(
        "scored-csv",
        {"stsb-en-test.csv": lines("A plane takes off.,An air plane takes off.,5.0", '"Yes, he came.",He came.,2.5')},
        *(
            (["A plane takes off.", "Yes, he came."], ["An air plane takes off.", "He came."]),
            "scores",
            (1.0, 0.5),
            "sts",
        ),
    ),
    "stsb_multi_mt with a header": Published(
        None,
        {"stsb-en-test.csv": lines("sentence1,sentence2,similarity_score", '"Yes, he came.",He came.,2.5', "a,b,5")},
        *((["Yes, he came.", "a"], ["He came.", "b"]), "scores", (0.5, 1.0), "sts"),
    ),
    "SemEval": Published(
        "semeval",
        {
            "STS.input.headlines.txt": lines("Bus falls.\tA bus fell.", "Not scored.\tAt all.", "Rain.\tSun."),
            "STS.gs.headlines.txt": lines("4.5", "", "0"),
        },
        *((["Bus falls.", "Rain."], ["A bus fell.", "Sun."]), "scores", (0.9, 0.0), "sts"),
    ),
    "SNLI": Published(
        *(None, {"snli_1.0_dev.jsonl": jsonl(*nli_items(), {**nli_items()[0], "gold_label": "-"})}),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "SNLI as text": Published(
        "nli-txt",
        {
            "snli_1.0_dev.txt": lines(
                "gold_label\tsentence1\tsentence2\tpairID", *(f"{g}\t{a}\t{b}\t1" for g, a, b in NLI_ROWS)
            )
        },
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "MultiNLI": Published(
        *(
            None,
            {
                "multinli_1.0_dev_matched.jsonl": jsonl(
                    *({**row, "genre": "travel", "promptID": 1} for row in nli_items())
                )
            },
        ),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "XNLI": Published(
        *(None, {"xnli.dev.tsv": lines(XNLI_HEAD, *XNLI_TABS)}),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "XNLI for training": Published(
        *(
            None,
            {
                "multinli.train.ko.tsv": lines(
                    "premise\thypo\tlabel",
                    *(row.replace("contradiction", "contradictory") for row in NLI_TABS),
                )
            },
        ),
        *(NLI, "labels", NLI_NAMES, "nli"),
    ),
    "PAWS-X": Published(
        "paws-x",
        {
            "test_2k.tsv": lines(
                "id\tsentence1\tsentence2\tlabel", "1\t그는 갔다.\t갔다, 그는.\t1", "2\tNS\t왔다.\t0", "3\t가.\t나.\t0"
            )
        },
        *((["그는 갔다.", "가."], ["갔다, 그는.", "나."]), "labels", ("0", "1"), "pairs"),
    ),
    "Quora": Published(
        "quora",
        {
            "quora_duplicate_questions.tsv": lines(
                "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
                "0\t1\t2\tHow so?\tWhy so?\t1",
                '1\t3\t4\t"What is ""this""',
                'and that?"\tWho?\t0',
            )
        },
        *((["How so?", 'What is "this"\nand that?'], ["Why so?", "Who?"]), "labels", ("0", "1"), "pairs"),
    ),
    "MRPC": Published(
        "mrpc",
        {"msr_paraphrase_test.txt": lines(*MRPC_ROWS)},
        *(
            (['He called it "sad.', "Shares rose."], ["Sad, he said.", "Shares of it fell."]),
            "labels",
            ("0", "1"),
            "pairs",
        ),
    ),
    "SICK": Published(
        "sick",
        {
            "SICK.txt": lines(
                SICK_HEAD,
                *(
                    SICK_ROW.format(r, w, s, t)
                    for r, w, s, t in [(1, "ball", 5, "TRAIN"), (2, "tag", 3, "TEST"), (3, "go", 1, "TRIAL")]
                ),
            )
        },
        *(
            (["Kids play ball", "Kids play tag", "Kids play go"], ["A boy stands"] * 3),
            "scores",
            (1.0, 0.5, 0.0),
            "sts",
        ),
    ),
    "SICK of SemEval": Published(
        "sick",
        {
            "SICK_train.txt": lines(
                "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment",
                "1\tA\tB\t3\tNEUTRAL",
                "2\tC\tD\t5\tENTAILMENT",
            )
        },
        *((["A", "C"], ["B", "D"]), "scores", (0.5, 1.0), "sts"),
    ),
    "NSMC": Published(
        *(
            "nsmc",
            {
                "ratings_test.txt": lines(
                    "id\tdocument\tlabel", '6270596\t굳 "ㅋ\t1', "9274899\t\t0", "8544678\t지루해\t0"
                )
            },
        ),
        *((['굳 "ㅋ', "지루해"],), "labels", ("0", "1")),
    ),
    "KorQuAD": Published(
        *("squad", {"KorQuAD_v1.0_dev.json": squad()}),
        (["수도는?", "강은?", "항구는?"], [*["서울은 수도이다. 한강이 흐른다."] * 2, "부산은 항구다."]),
        kind="retrieval",
    ),
    "SQuAD 2": Published(
        *("squad", {"dev-v2.0.json": squad(is_new=True)}),
        (["수도는?", "강은?", "항구는?"], [*["서울은 수도이다. 한강이 흐른다."] * 2, "부산은 항구다."]),
        kind="retrieval",
    ),
    "AFS": Published(
        "afs",
        {
            "ArgPairs_GM.csv": lines(
                AFS_HEAD,
                '3.5,3,3,"Marriage, they say, is old.",It is a right.,1,2,t,u,p1,3',
                "0,0,0,No.,Yes.,3,4,t,u,p2,0",
            )
        },
        *((["Marriage, they say, is old.", "No."], ["It is a right.", "Yes."]), "scores", (0.7, 0.0), "sts"),
    ),
    "Wikipedia sections": Published(
        "wikipedia-sections",
        {
            "test.csv": lines(
                "Sentence1,Sentence2,Sentence3,Article Title,Article Link,Section Title1,Section Title2",
                '"He ran, far.",He won.,He was born.,Bolt,http://x,Career,Life',
            )
        },
        (["He ran, far."], ["He won."], ["He was born."]),
        kind="triplets",
    ),
    "Tatoeba": Published(
        *(
            "tatoeba",
            {
                "Sentence pairs in English-Korean.tsv": lines(
                    "1276\tLet's go!\t6144\t가자!", "1277\tI see.\t6145\t알겠다."
                )
            },
        ),
        *((["Let's go!", "I see."], ["가자!", "알겠다."]), None, (), "translation"),
    ),
    "Tatoeba for learners": Published(
        "attributed",
        {"kor.txt": lines("Go.\t가.\tCC-BY 2.0 (France) Attribution: tatoeba.org #2877272 & #8363271")},
        *((["Go."], ["가."]), None, (), "translation"),
    ),
    "OPUS": Published(
        *("moses", {"Tatoeba.en-ko.en": lines("Go.", "I see."), "Tatoeba.en-ko.ko": lines("가.", "알겠다.")}),
        *((["Go.", "I see."], ["가.", "알겠다."]), None, (), "translation"),
    ),
    "TED2020": Published(
        *("parallel", {"TED2020-en-ko-train.tsv": lines("Thank you.\t고마워요.", "So much.\t많이.")}),
        *((["Thank you.", "So much."], ["고마워요.", "많이."]), None, (), "translation"),
    ),
    **{
        f"{title} of SentEval": Published(
            *("polarity", {first: lines("a good one", "another"), second: lines("so bad")}),
            *((texts,), "labels", names, "classification"),
        )
        for title, first, second, texts, names in [
            ("MR", "rt-polarity.pos", "rt-polarity.neg", ["so bad", "a good one", "another"], ("negative", "positive")),
            ("CR", "custrev.pos", "custrev.neg", ["so bad", "a good one", "another"], ("negative", "positive")),
            ("MPQA", "mpqa.pos", "mpqa.neg", ["so bad", "a good one", "another"], ("negative", "positive")),
            (
                "SUBJ",
                "subj.objective",
                "subj.subjective",
                ["a good one", "another", "so bad"],
                ("objective", "subjective"),
            ),
        ]
    },
    "SST of SentEval": Published(
        *("sentiment", {"sentiment-test": lines("no movement , no yuks\t0", "a gob of drivel\t1")}),
        *((["no movement , no yuks", "a gob of drivel"],), "labels", ("0", "1")),
    ),
    "TREC of SentEval": Published(
        *("trec", {"TREC_10.label": lines("NUM:dist How far is it ?", "LOC:city What city is it ?")}),
        *((["How far is it ?", "What city is it ?"],), "labels", ("LOC", "NUM")),
    ),
}


def put(folder: Path, published: Published, encoding: str = "utf-8") -> Path:
    """Write the files; return the one that is given to a reader."""
    for name, content in published.files.items():
        (folder / name).write_text(content, encoding=encoding)
    return folder / next(iter(published.files))
