"""Datasets of ours in the cache of the library `datasets`, under the names of the Hub's: what mteb loads offline."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HASH = "0" * 40  # any: the newest folder of a configuration is taken
Rows = Mapping[str, Sequence[Any]]


def put(cache: Path, name: str, configuration: str, splits: Mapping[str, Rows]) -> None:
    """Write one configuration of the dataset `owner/name`."""
    from datasets import Dataset, DatasetInfo, SplitDict, SplitInfo
    from datasets.naming import camelcase_to_snakecase, filename_prefix_for_split

    owner, title = name.split("/")
    folder = cache / f"{owner}___{camelcase_to_snakecase(title)}" / configuration / "0.0.0" / HASH
    infos = SplitDict(dataset_name=title)
    for split, rows in splits.items():
        made = Dataset.from_dict(dict(rows))
        made.save_to_disk(cache.parent / "made" / title / configuration / split)
        (part,) = (cache.parent / "made" / title / configuration / split).glob("*.arrow")
        folder.mkdir(parents=True, exist_ok=True)
        part.rename(folder / f"{filename_prefix_for_split(title, split)}.arrow")
        infos[split] = SplitInfo(name=split, num_examples=len(made), dataset_name=title)
    info = DatasetInfo(features=made.features, splits=infos, config_name=configuration, dataset_name=title)
    info.version = "0.0.0"
    info.write_to_directory(str(folder))


def environment(cache: Path) -> dict[str, str]:
    """Return the environment of a process that sees this cache and no network."""
    hub = {"HF_DATASETS_CACHE": str(cache), "HF_HOME": str(cache.parent), "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **hub, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
