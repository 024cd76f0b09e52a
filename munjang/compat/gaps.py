"""What sentence-transformers has and we do not: every name with the way that there is today."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from torch import nn

from munjang.errors import MunjangError

TRAINING = (
    "Munjang does not train yet. Train with sentence-transformers and load the folder that it saves with "
    "munjang.BiEncoder.load or munjang.CrossEncoder.load; a folder saved by either loads in the other."
)
EVALUATION = (
    "Munjang has no evaluators yet. Compute the metric from what encode, similarity, predict and rank give, or save "
    "the model and evaluate that folder with sentence-transformers."
)
CARDS = "Munjang writes no model cards; put a README.md into the saved folder, save() leaves it there."
SPARSE = "Sparse encoders are no goal of Munjang for now; keep sentence-transformers for them."
MULTI_VECTOR = "Late-interaction models are no goal of Munjang for now; keep sentence-transformers for them."
EXPORT = (
    "`munjang export MODEL --to onnx -o FOLDER` writes an ONNX graph; FOLDER loads like any model, no backend named. "
    "There is no other engine."
)
NETWORK = (
    "There is no transformers model inside. model.facade.network is the network, which reads packed batches; "
    "encode(texts, output_value='token_embeddings') gives token vectors."
)
MODULES = (
    "A model is loaded whole, from a folder or a Hub name. munjang.BiEncoder.load(path, pooling=...) puts another "
    "pooling on any encoder, munjang.CrossEncoder.create(path, num_labels=...) a new head."
)
PLACING = "Device and dtype are chosen when loading: device='cuda', model_kwargs={'dtype': 'bfloat16'}."
UPLOAD = "Call save(folder), then huggingface_hub.upload_folder(repo_id=..., folder_path=folder)."
ENGINES = "util.semantic_search finds the nearest exactly; munjang.Index and its stores are for more than memory holds."
INTERNAL = "It is an inner part of sentence-transformers, which nothing here needs."

NAMES = {
    TRAINING: """losses datasets readers trainer training_args sampler data_collator peft_mixin InputExample
        SentencesDataset ParallelSentencesDataset SentenceTransformerTrainer SentenceTransformerTrainingArguments
        CrossEncoderTrainer CrossEncoderTrainingArguments DefaultBatchSampler MultiDatasetDefaultBatchSampler
        mine_hard_negatives resolve_ids hard_negatives all_gather all_gather_padded all_gather_with_grad
        check_teacher_targets disable_datasets_caching""",
    EVALUATION: "evaluation append_to_last_row",
    CARDS: "model_card SentenceTransformerModelCardData CrossEncoderModelCardData",
    SPARSE: """sparse_encoder SparseEncoder SparseEncoderTrainer SparseEncoderTrainingArguments
        SparseEncoderModelCardData compute_count_vector select_max_active_dims to_scipy_coo""",
    MULTI_VECTOR: """multi_vector_encoder MultiVectorEncoder MultiVectorEncoderTrainer
        MultiVectorEncoderTrainingArguments MultiVectorEncoderModelCardData maxsim maxsim_pairwise mean_maxsim
        mean_maxsim_pairwise cat_padded_token_embeddings stack_padded_token_embeddings repad_flattened_features""",
    EXPORT: """backend export_optimized_onnx_model export_dynamic_quantized_onnx_model
        export_static_quantized_openvino_model""",
    MODULES: "models base modules",
    UPLOAD: "save_to_hub_args_decorator",
    ENGINES: "semantic_search_faiss semantic_search_usearch",
    INTERNAL: """check_version_requirements is_sentence_transformer_model load_dir_path load_file_path http_get
        disabled_tqdm install_logger similarity_fct_name import_module_class ORIGINAL_TRANSFORMER_MODELS""",
}
ATTRIBUTES = {
    TRAINING: """fit old_fit train_dataloader smart_batching_collate smart_batching_collate_text_only
        gradient_checkpointing_enable get_sentence_features active_adapter active_adapters add_adapter
        check_peft_compatible_model delete_adapter disable_adapters enable_adapters get_adapter_state_dict
        has_peft_compatible_model load_adapter set_adapter merge""",
    EVALUATION: "evaluate",
    CARDS: "model_card_data model_card_data_class",
    NETWORK: "auto_model transformers_model model config processor module_kwargs compile append extend insert pop",
    PLACING: "clear_placement_cache set_keep_in_fp32_modules keep_in_fp32_modules is_hpu_graph_enabled",
    UPLOAD: "push_to_hub save_to_hub",
}
WAY_OF_NAME = {name: way for way, names in NAMES.items() for name in names.split()}
WAY_OF_ATTRIBUTE = {name: way for way, names in ATTRIBUTES.items() for name in names.split()}


class NotCovered(MunjangError):
    """Something of sentence-transformers that munjang.compat does not have."""


class NameNotCovered(NotCovered, ImportError):
    """A name that can't be imported; an AttributeError would lose its message in `from munjang.compat import ...`."""


class AttributeNotCovered(NotCovered, AttributeError):
    """A method or attribute that a model does not have; so hasattr says no."""


def missing_name(module: str, name: str) -> NotCovered | AttributeError:
    """The error for a name that a module of ours does not have."""
    if name in WAY_OF_NAME:
        return NameNotCovered(f"{module} does not cover {name}. {WAY_OF_NAME[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def missing_attribute(kind: str, name: str) -> AttributeError:
    """The error for an attribute that a model of ours does not have."""
    way = WAY_OF_ATTRIBUTE.get(name) or (NETWORK if hasattr(nn.Sequential, name) and name[:2] != "__" else None)
    if way is None:
        return AttributeError(f"{kind!r} object has no attribute {name!r}")
    return AttributeNotCovered(f"munjang.compat does not cover {kind}.{name}. {way}")


class _Explain(MetaPathFinder):
    """Asked last, when no module was found: `from munjang.compat.losses import ...` then says what there is."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        parent, _, name = fullname.rpartition(".")
        if parent == "munjang.compat" and name in WAY_OF_NAME:
            raise missing_name(parent, name)


def explain_imports() -> None:
    """Let imports of modules that we do not have fail with our message."""
    if not any(isinstance(finder, _Explain) for finder in sys.meta_path):
        sys.meta_path.append(_Explain())
