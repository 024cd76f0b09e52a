"""Pools under sentence-transformers' names: a copy of a model on each device, all but the first in a process."""

import tempfile
from typing import Any

import torch

from munjang.compat.loading import full_device
from munjang.engine.devices import DTYPES
from munjang.errors import InputError

Pool = dict[str, Any]


def start(model: Any, target_devices: list[str] | None) -> Pool:
    """Copy the model as it is now to each device; none named: to all GPUs, or none where there is only one.

    A model that can't be copied serves a pool of its own device alone, where it uses all cores by itself.
    """
    num_gpus = torch.cuda.device_count()
    devices = target_devices or ([f"cuda:{at}" for at in range(num_gpus)] if num_gpus > 1 else [str(model.device)])
    pool: Pool = {"input": None, "output": None, "processes": [str(device) for device in devices]}
    places = [full_device(device) for device in devices]
    if places != [model.device]:
        hindrance = _hindrance(model)
        if hindrance is None:
            pool["copies"] = _copies(model.facade, devices)
        elif set(places) != {model.device}:
            raise InputError(hindrance)
    return pool


def _hindrance(model: Any) -> str | None:
    """Return why a model can't be copied, if anything hinders it."""
    if not model.is_ours:
        return "A model with modules of its own is not copied to other devices; start the pool without any."
    if model.facade.dtype == torch.int8:
        return "An int8 model has no floats to copy: load it with device=[...] in munjang itself."
    return None


def _copies(facade: Any, devices: list[str]) -> Any:
    dtype = next(name for name, kind in DTYPES.items() if kind == facade.dtype)
    with tempfile.TemporaryDirectory() as folder:
        facade.save(folder)
        copies = type(facade).load(folder, device=devices, dtype=dtype)
    copies.max_length = facade.max_length
    return copies


def facade_of(model: Any, pool: Pool | None) -> Any:
    """Return what computes a call: the copies of a pool, or the model itself."""
    copies = None if pool is None else pool.get("copies")
    return model.facade if copies is None else copies


def stop(pool: Pool) -> None:
    """End the processes of a pool."""
    pool["processes"] = []
    copies = pool.pop("copies", None)
    if copies is not None and copies._engine.replicas is not None:
        copies._engine.replicas.end()
