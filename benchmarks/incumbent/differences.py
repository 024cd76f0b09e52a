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
        "test_is_singular_input",
    ),
    "There is no class SparseEncoder or MultiVectorEncoder under their names.": (
        "tests/multi_vector_encoder/",
        "tests/sparse_encoder/",
    ),
    "model.tokenizer is for inspection: what is set inside it, but for its maximum length, does not reach ours.": (
        "test_prompt_length_calculation",
        r"test_trainer.py::test_data_collator\[",
    ),
    "A path that is a file, and a folder without its modules.json, are refused; nothing is guessed.": (
        "test_model_path_pointing_to_a_file",
        "test_load_logs_no_modules_json",
        "test_modules_and_path_combo",
    ),
    "Weights are saved as safetensors, in float32, float16 or bfloat16, and never as a pickle.": (
        "safe_serialization",
        "Unknown dtype 'float64'",
    ),
    "A model's configuration is read, not set, and a model has a dtype even without parameters.": (
        "test_config_is_settable|test_config_setter",
        "test_dtype_no_parameters",
    ),
    "Versions of packages that a folder asks for are not checked on loading, as none of them runs here.": (
        "test_unmet_requirements_raise_when_loading",
    ),
    "A loader of evaluation data is made anew each time, and workers that end with it are not warned of.": (
        "persistent_workers|non_persistent|caches_eval_dataloaders",
    ),
    "Streams in a dictionary of training data fail in the loader, or with an error of our own.": ("IterableDataset",),
    "Losses are objectives of ours: each column goes through the network by itself, in float32 under autocast, classes "
    "do not inherit from each other, and a static model in a Router is not refused.": (
        "test_merged_forward",
        "test_gradcache_under_autocast",
        "test_mseloss_is_subclass",
        "static_embedding_behind_a_router",
    ),
    "Router preprocesses where the trainer asks it to; the default route serves training too.": (
        "test_router_with_trainer",
        "test_router_task_not_forwarded",
    ),
    "A subclass is saved under the name of the class of ours that it extends.": ("test_model_type_override",),
    "int8 and uint8 need ranges of components from calibration; those of the texts at hand would give a text another "
    "code in every batch.": ("needs the range of each component",),
    "The check itself: a test that replaces a function by its path there leaves it undefined under our name, and tests "
    "after it in the same process fail.": ("NameError: name 'import_module_class'",),
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
        "delegates_and_warns|warns_and_delegates|featureless_iterable",
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
