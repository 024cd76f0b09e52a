"""Write the files beside the weights of a bundled model: its card (README.md) and its NOTICE."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BASE = "multilingual-e5-small"
AUTHORS = "Liang Wang, Nan Yang, Xiaolong Huang, Linjun Yang, Rangan Majumder, Furu Wei (Microsoft)"
PAPER = "Multilingual E5 Text Embeddings: A Technical Report, 2024, arXiv 2402.05672"
TEACHER, GUIDE, JUDGE = "all-mpnet-base-v2", "all-MiniLM-L6-v2", "albert-kor-base"
# What a model may have learned from: source and licence
DATA = {
    "stsb": ("STS benchmark, train (SemEval 2012 to 2017)", "as its sources state"),
    "korsts": ("KorSTS, train (Kakao Brain)", "CC BY-SA 4.0"),
    "klue-sts": ("KLUE-STS, train", "CC BY-SA 4.0"),
    "snli": ("SNLI, a part", "CC BY-SA 4.0"),
    "mnli": ("MultiNLI, a part", "OANC and the licences of its sources"),
    "klue-nli": ("KLUE-NLI, train", "CC BY-SA 4.0"),
    "en-ko-general": (
        "English-Korean sentences: KorSTS train, Tatoeba, news, some Bible verses",
        "as its sources state",
    ),
    "en-ko-docs": ("technical documentation in English and Korean", "CC BY 4.0"),
    "quora": ("Quora question pairs, a part", "as its source states"),
    "korean-questions": ("Korean question pairs (songys/Question_pair)", "MIT"),
    "medquad": ("MedQuAD", "CC BY 4.0"),
    "wikiqa": ("WikiQA, train", "as its source states"),
    "en-sentences": ("English sentences, without labels", "as their sources state"),
    "ko-reviews": ("NSMC, raw reviews, without labels", "CC0"),
    "en-ko-more": (
        "English-Korean sentences: SQuARe and KoSBi (NAVER AI), news and textbooks (jungyeul/korean-parallel-corpora), "
        "UD Korean PUD, TALPCo",
        "MIT; CC BY-SA 3.0; CC BY-SA 3.0; CC BY 4.0",
    ),
    "ko-headlines": ("headlines of Korean news (SQuARe), without labels", "MIT"),
    "ko-bills": ("bills of the National Assembly of Korea (kyusik-yang/korean-assembly-bills)", "CC BY 4.0"),
    "korean-precedents": ("questions of law and holdings of Korean courts", "public works"),
    "korean-boolq": ("KoBEST BoolQ, train", "CC BY-SA 4.0"),
    "arxiv": ("titles and abstracts of arXiv", "CC0"),
    "scitldr": ("SciTLDR, train", "Apache 2.0"),
    "ko-wiki": ("passages of Korean Wikipedia (extracted in 97danielj/WordEmbedding)", "CC BY-SA 3.0"),
    TEACHER: ("all-mpnet-base-v2 (sentence-transformers), as a teacher", "Apache 2.0"),
    GUIDE: ("all-MiniLM-L6-v2 (sentence-transformers), as a teacher of English search", "Apache 2.0"),
    JUDGE: (
        "cross-encoders that began from kykim/albert-kor-base (Kiyoung Kim), whose scores it learned",
        "Apache 2.0; the author asks to be written to about commercial use",
    ),
}
SETS = {
    "korsts-test": "KorSTS, test",
    "korsts-dev": "KorSTS, dev",
    "stsb-test": "STS benchmark, test",
    "stsb-dev": "STS benchmark, dev",
    "crossed-dev": "STS benchmark, English with Korean, dev",
    "sick-dev": "SICK-R, dev",
    **{f"sts{year}": f"STS 20{year}" for year in (12, 13, 14)},
    "klue-sts-dev": "KLUE-STS, dev",
    "klue-nli-dev": "KLUE-NLI, dev, entailed or contradicted",
    "korquad": "KorQuAD, passages",
    "cranfield": "Cranfield",
    "mixed-dev": "STS benchmark, dev: Korean sentences, English translations, Korean distractors",
    "stackoverflow": "StackOverflow, clusters",
}
PAIRS_DATA = ("stsb", "korsts", "klue-sts", "snli", "mnli", "klue-nli", "en-ko-general", "en-ko-docs")
MORE = ("en-ko-more", "ko-headlines", "ko-bills", "ko-wiki")
READ = ("korean-precedents", "korean-boolq", "arxiv", "scitldr")
QUESTIONS = ("quora", "korean-questions", "medquad", "wikiqa")


@dataclass(frozen=True)
class Story:
    """The facts that a card states of one model."""

    title: str
    purpose: str
    data: tuple[str, ...]
    tags: tuple[str, ...]
    example: str
    recipe: str


STORIES = {
    "ko-en-small": Story(
        "a small Korean-English sentence encoder",
        "Sentences to vectors of 384 components, for search, similarity and clustering within and across Korean and "
        "English. The first 256, 128 or 64 components work alone (`truncate_dim`). No prompt is needed.",
        (*READ, *PAIRS_DATA, *QUESTIONS, "en-sentences", "ko-reviews", *MORE, TEACHER, GUIDE, JUDGE),
        ("sentence-transformers", "sentence-similarity", "feature-extraction"),
        'from munjang import BiEncoder\n\nmodel = BiEncoder.load()  # or BiEncoder.load("ko-en-small")\n'
        'print(model.similarity("고양이가 소파에서 잔다.", "A cat sleeps on the sofa."))',
        "recipes/ko_en_small in the repository at commit 97e77cd`, then `python -m recipes.models",
    ),
    "ko-en-reranker": Story(
        "a small Korean-English re-ranker",
        "A cross-encoder: how well a passage answers a question, in Korean and English, to order what a search found.",
        (*READ, *PAIRS_DATA, *QUESTIONS, "en-sentences", *MORE, TEACHER, JUDGE),
        ("sentence-transformers", "cross-encoder", "text-ranking"),
        'from munjang import CrossEncoder\n\nscorer = CrossEncoder.load()  # or CrossEncoder.load("ko-en-reranker")\n'
        'hits = scorer.rank("What is the capital of Korea?", ["서울은 한국의 수도이다.", "Paris is in France."])',
        "python -m recipes.models",
    ),
}

CARD = """---
license: apache-2.0
language: [ko, en]
library_name: munjang
pipeline_tag: {pipeline}
base_model: intfloat/{base}
tags: [{tags}]
---

# {name}: {title}

{purpose}

```python
{example}
```

| | |
|---|---|
{facts}

Weights are kept in 8 bits (`munjang-int8`), {size:.1f} MB with the tokenizer; `munjang export {name} -o FOLDER` writes
the same model as an ordinary float32 folder, which sentence-transformers loads.

## Scores

{scores}

## How it was made

From {base} ({authors}; {paper}; MIT), its vocabulary pruned to Korean and English, trained further with Munjang:
`{recipe}`. Rows that share a sentence with a set above were left out of the training. {evaluation}

Learned from:

| data | licence |
|---|---|
{data}

## Limits

Made for Korean and English; other languages lost their pieces of the vocabulary. Texts are cut at the longest input
above. What people wrote in the data, prejudice included, is in the vectors too.
"""
EVALUATION = "KorQuAD, Cranfield, CACM, PubMedQA, STS 2012 to 2014 and StackOverflow are for evaluation only."
NOTICE = """{name}: {title}, of Munjang.

Licensed under the Apache License, Version 2.0, as Munjang is (LICENSE of the package).

It began with the weights of {base}, by {authors}
({paper}), which came under this licence:

MIT License

Copyright (c) Microsoft Corporation and the authors named above

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

It was trained further on these data, none of which is part of this package:

{data}
"""


def card(name: str, facts: Mapping[str, object], megabytes: float, results: Sequence[Mapping[str, Any]]) -> str:
    """README.md. `results`: of this model, then of others to compare with."""
    story = STORIES[name]
    return CARD.format(
        name=name,
        title=story.title,
        purpose=story.purpose,
        example=story.example,
        pipeline=story.tags[-1] if "cross-encoder" in story.tags else "sentence-similarity",
        tags=", ".join(story.tags),
        facts="\n".join(f"| {key} | {value} |" for key, value in facts.items()),
        size=megabytes,
        scores=scores(name, results),
        recipe=story.recipe,
        evaluation=EVALUATION,
        data="\n".join(f"| {what} | {licence} |" for what, licence in map(DATA.__getitem__, story.data)),
        **SOURCE,
    )


def notice(name: str) -> str:
    """NOTICE: whose work is inside, under which licences."""
    story = STORIES[name]
    lines = "\n".join(f"- {what}: {licence}" for what, licence in map(DATA.__getitem__, story.data))
    return NOTICE.format(name=name, title=story.title, data=lines, **SOURCE)


SOURCE = {"base": BASE, "authors": AUTHORS, "paper": PAPER}


def scores(name: str, results: Sequence[Mapping[str, Any]]) -> str:
    """The main metric of every set times 100, this model's first; a set that another was not measured on is empty."""
    if not results:
        return "Not measured yet."
    head = ["set", "metric", name, *(str(other.get("model", "another")) for other in results[1:])]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for key, report in results[0]["reports"].items():
        found = [each["reports"].get(key) for each in results]
        cells = [f"{100 * each['score']:.2f}" if each else "" for each in found]
        lines.append(f"| {SETS.get(key, key)} | {report['main'].replace('_', ' ')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
