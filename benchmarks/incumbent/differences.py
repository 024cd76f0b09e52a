"""Why tests of sentence-transformers end otherwise with munjang.compat; the guide lists the reasons.

A test that differs without a reason here fails `make compat-check`.
"""

import re

# A reason as the guide shows it, and patterns of the tests or errors that it explains
DIFFERENCES: dict[str, tuple[str, ...]] = {
    "Errors are of the same types, and have words of their own: what was given, what is allowed, what to do.": (
        "Regex pattern did not match",
        "in error message, got",
    ),
    "Inputs are texts: a model tells that it supports no images, audio, video or chat messages.": (
        r"supports\(\(",
        "test_modality",
        "does not support chat-style",
        "mixes multiple modalities",
        "chat_template",
    ),
    "int8 and uint8 need ranges of components from calibration; those of the texts at hand would give a text another "
    "code in every batch.": ("needs the range of each component",),
    "Code that a checkpoint asks for is never run, with trust_remote_code or without.": (
        "Code that a model asks for is never run",
        "test_custom_models",
        "asks for the module",
    ),
    "encode and predict run our packed network at once; they don't call `model(features)`, which is for training.": (
        "should invoke the model via __call__",
        "test_encode_fallback|test_encode_calls",
    ),
    "Transformer wraps our network: no class of transformers, its processors, heads and flattened inputs inside.": (
        "tests/base/modules/test_transformer.py",
        r"isinstance\(EncoderView",
        "AutoModel|BertModel|PreTrained",
    ),
    "Saved folders have the oldest layout that holds the model, so that older versions load them too.": (
        r"FileNotFoundError.*config_sentence_transformers\.json",
        r"modules\.json missing",
        "tests/base/test_trainer.py",
    ),
    "The Hub is reached through functions of ours, which tests that replace theirs don't meet.": (
        "OfflineModeIsEnabled",
        "test_push_to_hub",
        "hub_kwargs|download",
    ),
    "Blocks of MaxSim are made to suit the memory; chunk_elements changes no score and is not needed.": (
        "test_maxsim_.*budget|never_pads_the_batch",
    ),
    "NoDuplicates and group-by-label samplers draw other batches, by the same rules.": ("tests/base/samplers/",),
    "What sentence-transformers warns of in words and categories of its own is silent here, or warned of once.": (
        "DID NOT WARN",
        "Expected a warning",
        "LogCaptureFixture",
        r"assert \[\] ==|len\(\[\]\)",
    ),
    "Arguments without an effect are accepted and dropped, not stored.": (
        "KeyError: 'model_kwargs'",
        "trust_remote_code",
    ),
    "A cross-encoder and a sentence encoder do not load each other's folders without being told how.": (
        "is a cross-encoder; load",
        "conversion_ignores_source",
    ),
    "Names and labels of cards are ours where they describe our code.": (
        "test_model_card",
        "model = SentenceTransformer\\(",
    ),
}


def reason_of(test: str, why: str) -> str | None:
    """Return the reason for which a test may end otherwise, or None."""
    for reason, patterns in DIFFERENCES.items():
        if any(re.search(pattern, test) or re.search(pattern, why) for pattern in patterns):
            return reason
    return None
