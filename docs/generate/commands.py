"""The list of commands: an example of each, and what it is for; English from the command line's own help."""

import shlex
import unicodedata
from importlib import import_module
from pathlib import Path

from docs.generate.part import Stale
from munjang.cli import VERBS
from munjang.cli.options import parse

# Verb: arguments of an example that the verb's own parser takes, and what it is for in Korean.
COMMANDS = {
    "encode": ("sentences.txt -o vectors.npy", "파일의 문장을 벡터로; 중단된 작업은 이어서"),
    "similarity": ('"A cat sleeps." "새끼 고양이가 낮잠을 잔다."', "글이 서로 얼마나 비슷한지"),
    "search": ('"수도가 어디야?" notes/', "파일이나 색인에서 찾기"),
    "index": ("build notes-index notes/", "문서의 색인을 만들고, 바꾸고, 살펴보기"),
    "rerank": ('"How fast is light?" answers.txt', "크로스 인코더로 질문에 맞는 순서로 정렬"),
    "negatives": ("pairs.tsv -o triplets.jsonl", "가깝지만 답이 아닌 글 찾기, 학습용"),
    "paraphrases": ("questions.csv -o pairs.csv", "가장 비슷한 글의 쌍이나 번역 쌍 찾기"),
    "cluster": ("questions.csv -o clusters.csv", "글을 군집으로 묶고 군집마다 핵심어 달기"),
    "dedupe": ("reviews.txt -o distinct.csv", "같은 말을 하는 글을 빼고 이유 남기기"),
    "keywords": ("articles.jsonl -o keywords.csv", "글의 핵심어 찾기; 한국어는 명사구"),
    "topics": ("reviews.csv -o topics.csv --html map.html", "글이 다루는 주제를 찾아 지도로 그리기"),
    "classify": ("train examples.csv -o classifier", "예문이나 설명으로 글에 이름표 붙이기"),
    "recommend": ('books.tsv --need "우울할 때 위로가 되는 소설"', "좋아한 것이나 말로 적은 필요에 맞는 항목 추천"),
    "evaluate": ("ko-en-small MODEL --data stsb-test.tsv", "모델이 얼마나 좋은지 나란히 재기"),
    "train": ("MODEL pairs.tsv -o OUT --objective in_batch", "예문으로 모델 학습; 중단된 학습은 이어서"),
    "distill": ("STUDENT en-ko.tsv --teacher MODEL -o OUT", "다른 모델의 벡터나 점수를 배우게 하기"),
    "adapt": ("MODEL articles/ -o OUT --method denoising", "모델에 한 분야의 글을 읽히기"),
    "info": ("MODEL", "모델 살펴보기"),
    "export": ("MODEL --to onnx --dtype int8 -o FOLDER", "ONNX나 sentence-transformers 폴더로 저장"),
    "bench": ("", "이 컴퓨터에서 얼마나 빠른지 재기"),
    "serve": ("--index notes-index", "HTTP로 답하기: 벡터, 재정렬, 검색"),
}


def listing(root: Path, document: str) -> str:
    """Return one line per verb in the document's language."""
    if list(COMMANDS) != list(VERBS):
        odd = set(COMMANDS) ^ set(VERBS)
        raise Stale(f"COMMANDS of docs/generate/commands.py needs the verbs of munjang.cli in their order: {odd or ''}")
    examples = {verb: f"munjang {verb} {arguments}".rstrip() for verb, (arguments, _) in COMMANDS.items()}
    for verb, (arguments, _) in COMMANDS.items():
        try:
            parse(import_module(VERBS[verb][0]).Options, shlex.split(arguments), f"munjang {verb}", "")
        except SystemExit:  # argparse has said what is wrong
            raise Stale(f"the example `{examples[verb]}` is not what the command takes") from None
    what = {verb: COMMANDS[verb][1] if document.endswith(".ko.md") else VERBS[verb][1] for verb in VERBS}
    widest = max(map(num_cells, examples.values()))
    lines = [f"{text}{' ' * (widest - num_cells(text) + 2)}# {what[verb]}" for verb, text in examples.items()]
    return "\n".join(["```", *lines, "```"])


def num_cells(text: str) -> int:
    """Return how many columns a text takes: two for a syllable of Hangul."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
