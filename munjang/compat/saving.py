"""Save a model to a folder, or to the Hub."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from munjang.checkpoint.atomic import MODEL_MARKERS
from munjang.compat.environment import fullname
from munjang.compat.modules.module import OURS, THEIRS
from munjang.compat.renames import save_to_hub_args_decorator
from munjang.errors import InputError


class Saving:
    """The methods that write a model. `_write_folder` writes all but the card."""

    model_card_data: Any
    _modules: Any
    model_type: str
    prompts: dict[str, str]
    default_prompt_name: str | None

    def save(
        self,
        path: str | os.PathLike[str],
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Write a folder that sentence-transformers loads too, with a card unless one is there."""
        if path is None:
            return
        if not safe_serialization:
            raise InputError("safe_serialization=False would write a pickle; weights are saved as safetensors only.")
        kept = Path(path) / "README.md"
        text = kept.read_text(encoding="utf-8") if kept.is_file() else None
        self._write_beside_others(Path(path))
        if text is None and create_model_card:
            text = self._card(model_name, train_datasets)
        if text is not None:
            kept.write_text(text, encoding="utf-8")

    def _write_beside_others(self, path: Path) -> None:
        """Write into a folder that holds other files too, such as those of SetFit, which stay."""
        if not path.is_dir() or not any(path.iterdir()) or any((path / name).exists() for name in MODEL_MARKERS):
            self._write_folder(path)
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            self._write_folder(Path(folder) / "model")
            shutil.copytree(Path(folder) / "model", path, dirs_exist_ok=True)

    def save_pretrained(
        self,
        path: str | os.PathLike[str],
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Call `save`."""
        self.save(path, model_name, create_model_card, train_datasets, safe_serialization)

    def _card(self, model_name: str | None, train_datasets: list[str] | None) -> str:
        data = self.model_card_data
        if model_name is not None:
            data.model_name = model_name
            if "/" in model_name and data.model_id is None and not os.path.exists(model_name):
                data.model_id = model_name
        if train_datasets:
            data.train_datasets = [{"id": name} for name in train_datasets]
        text: str = data.text(self)
        return text

    def _write_folder(self, path: Path) -> None:
        raise NotImplementedError

    def push_to_hub(
        self,
        repo_id: str,
        token: str | None = None,
        private: bool | None = None,
        safe_serialization: bool = True,
        commit_message: str | None = None,
        local_model_path: str | None = None,
        exist_ok: bool = False,
        replace_model_card: bool = False,
        train_datasets: list[str] | None = None,
        revision: str | None = None,
        create_pr: bool = False,
        commit_description: str | None = None,
    ) -> str:
        """Upload the model, or a folder, to the Hub; return the address of the commit or of the pull request."""
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        made = api.create_repo(repo_id, private=private, repo_type=None, exist_ok=exist_ok or create_pr)
        repo_id = made.repo_id
        self.model_card_data.set_model_id(repo_id)
        if revision is not None:
            api.create_branch(repo_id=repo_id, branch=revision, exist_ok=True)
        message = commit_message or f"Add new {self.model_type} model"
        options: dict[str, Any] = {
            "repo_id": repo_id,
            "revision": revision,
            "create_pr": create_pr,
            "commit_message": message,
        }
        if commit_description is not None:
            options["commit_description"] = commit_description
        if local_model_path:
            commit = api.upload_folder(folder_path=local_model_path, **options)
        else:
            with tempfile.TemporaryDirectory() as folder:
                needs_card = replace_model_card or not api.file_exists(repo_id, "README.md", revision=revision)
                self.save(folder, repo_id, needs_card, train_datasets, safe_serialization)
                commit = api.upload_folder(folder_path=folder, **options)
        address: str = commit.pr_url if create_pr else commit.commit_url
        return address

    @save_to_hub_args_decorator
    def save_to_hub(
        self,
        repo_id: str,
        organization: str | None = None,
        token: str | None = None,
        private: bool | None = None,
        safe_serialization: bool = True,
        commit_message: str = "Add new model.",
        local_model_path: str | None = None,
        exist_ok: bool = False,
        replace_model_card: bool = False,
        train_datasets: list[str] | None = None,
    ) -> str:
        """Call `push_to_hub`, by its older name and with its older arguments."""
        if organization and "/" not in repo_id:
            repo_id = f"{organization}/{repo_id}"
        elif organization and repo_id.split("/")[0] != organization:
            raise InputError(
                f"organization={organization!r} is not the owner in repo_id={repo_id!r}; give repo_id alone."
            )
        return self.push_to_hub(
            repo_id,
            token=token,
            private=private,
            safe_serialization=safe_serialization,
            commit_message=commit_message,
            local_model_path=local_model_path,
            exist_ok=exist_ok,
            replace_model_card=replace_model_card,
            train_datasets=train_datasets,
        )


def write_modules(blocks: Iterable[nn.Module], path: Path, settings: dict[str, Any], version: str) -> None:
    """Write modules that have no model of ours: each by its own `save`, as sentence-transformers does."""
    path.mkdir(parents=True, exist_ok=True)
    rows = []
    for place, block in enumerate(blocks):
        in_root = place == 0 and getattr(block, "save_in_root", False)
        name = "" if in_root else f"{place}_{type(block).__name__}"
        (path / name).mkdir(parents=True, exist_ok=True)
        block.save(str(path / name))  # type: ignore[operator]
        kind = fullname(block)
        kind = f"{THEIRS}{type(block).__name__}" if kind.startswith(OURS) else kind
        rows.append({"idx": place, "name": str(place), "path": name, "type": kind})
    (path / "modules.json").write_text(json.dumps(rows, indent=2), encoding="utf-8")
    whole = {"__version__": {"sentence_transformers": version}, **settings}
    (path / "config_sentence_transformers.json").write_text(json.dumps(whole, indent=2), encoding="utf-8")
