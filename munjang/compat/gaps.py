"""Names of sentence-transformers that we don't cover, each with the alternative in Munjang."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from torch import nn

from munjang.errors import MunjangError

TRAINING = (
    "Train with munjang.train(model, data, objective) or `munjang train` (docs/guides/train.md); the saved folder "
    "loads here and in sentence-transformers."
)
EVALUATION = (
    "Evaluate with munjang.evaluate(model.facade, data) or `munjang evaluate` (docs/guides/evaluate.md), or compute "
    "the metric from encode, similarity, predict and rank."
)
DENOISING = (
    "munjang.train(model, texts, 'denoising') trains TSDAE: it deletes words itself and its decoder reads the word "
    "vectors of the encoder. Theirs ties the encoder to a decoder of transformers, of which there is none inside."
)
SPARSE = "munjang.SparseEncoder.load(path) loads sparse encoders; munjang.compat has no class of their name."
MULTI_VECTOR = (
    "munjang.MultiVectorEncoder.load(path) loads late-interaction models; munjang.compat has no class of their name."
)
EXPORT = (
    "`munjang export MODEL --to onnx -o FOLDER` writes an ONNX graph; FOLDER loads like any model, without backend=. "
    "There is no other backend."
)
NETWORK = (
    "There is no transformers model inside: model[0].auto_model is our network under that name, "
    "model(model.preprocess(texts)) gives its features, encode(texts, output_value='token_embeddings') token vectors."
)
MODULES = (
    "Build models from Transformer, Pooling, Dense, Normalize, LayerNorm, Dropout and StaticEmbedding of "
    "munjang.compat.modules; munjang.BiEncoder.load(path, pooling=...) replaces the pooling of any encoder."
)
TOKENS = (
    "Add them with transformers to a copy of the folder (tokenizer.add_tokens, model.resize_token_embeddings, "
    "save_pretrained of both), train it, and load that."
)
PLACING = "Device and dtype are chosen when loading: device='cuda', model_kwargs={'dtype': 'bfloat16'}."
ENGINES = "util.semantic_search finds the nearest exactly; munjang.Index is for corpora larger than memory."
HEADS = "munjang.CrossEncoder.create(path, num_labels=...) puts a new head on the encoder of any folder."
STATIC = "Make static embeddings with `munjang distill MODEL --static -o FOLDER` and load that folder."
INTERNAL = "It is internal to sentence-transformers, and nothing here needs it."

NAMES = {
    TRAINING: """peft_mixin ParallelSentencesDataset all_gather all_gather_padded all_gather_with_grad
        check_teacher_targets ContrastiveTensionDataLoader""",
    DENOISING: "DenoisingAutoEncoderLoss DenoisingAutoEncoderDataset",
    EVALUATION: "MSEEvaluatorFromDataFrame",
    SPARSE: """sparse_encoder SparseEncoder SparseEncoderTrainer SparseEncoderTrainingArguments
        SparseEncoderModelCardData""",
    MULTI_VECTOR: """multi_vector_encoder MultiVectorEncoder MultiVectorEncoderTrainer
        MultiVectorEncoderTrainingArguments MultiVectorEncoderModelCardData cat_padded_token_embeddings
        stack_padded_token_embeddings repad_flattened_features""",
    EXPORT: """backend export_optimized_onnx_model export_dynamic_quantized_onnx_model
        export_static_quantized_openvino_model""",
    ENGINES: "semantic_search_faiss semantic_search_usearch",
    INTERNAL: "disabled_tqdm install_logger suggest_extra_on_exception",
}
ATTRIBUTES = {
    TRAINING: """train_dataloader smart_batching_collate_text_only
        gradient_checkpointing_enable get_sentence_features active_adapter active_adapters add_adapter
        check_peft_compatible_model delete_adapter disable_adapters enable_adapters get_adapter_state_dict
        has_peft_compatible_model load_adapter set_adapter merge""",
    NETWORK: "auto_model model module_kwargs model_card_data_class",
    PLACING: "clear_placement_cache set_keep_in_fp32_modules keep_in_fp32_modules is_hpu_graph_enabled",
}
WAY_OF_NAME = {name: way for way, names in NAMES.items() for name in names.split()}
WAY_OF_ATTRIBUTE = {name: way for way, names in ATTRIBUTES.items() for name in names.split()}


class NotCovered(MunjangError):
    """A feature of sentence-transformers that munjang.compat does not have."""


class NameNotCovered(NotCovered, ImportError):
    """A name can't be imported; an AttributeError would lose its message in `from munjang.compat import ...`."""


class AttributeNotCovered(NotCovered, AttributeError):
    """A model lacks a method or attribute; hasattr returns False."""


def missing_name(module: str, name: str) -> NotCovered | AttributeError:
    """Return the error for a name that a module of ours does not have."""
    if name in WAY_OF_NAME:
        return NameNotCovered(f"{module} does not cover {name}. {WAY_OF_NAME[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def missing_attribute(kind: str, name: str) -> AttributeError:
    """Return the error for an attribute that a model of ours does not have."""
    way = WAY_OF_ATTRIBUTE.get(name) or (NETWORK if hasattr(nn.Sequential, name) and name[:2] != "__" else None)
    if way is None:
        return AttributeError(f"{kind!r} object has no attribute {name!r}")
    return AttributeNotCovered(f"munjang.compat does not cover {kind}.{name}. {way}")


class _Explain(MetaPathFinder):
    """The finder asked when no module was found: `from munjang.compat.losses import ...` names the alternative."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        parent, _, name = fullname.rpartition(".")
        if parent == "munjang.compat" and name in WAY_OF_NAME:
            raise missing_name(parent, name)


def explain_imports() -> None:
    """Make imports of modules that we don't have fail with our message."""
    if not any(isinstance(finder, _Explain) for finder in sys.meta_path):
        sys.meta_path.append(_Explain())
