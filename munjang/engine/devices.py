"""Devices and dtypes: those that a caller asks for, or the best of the machine."""

from collections.abc import Sequence
from pathlib import Path

import torch

from munjang.checkpoint import compute_options, stated_dtype
from munjang.errors import InputError, unknown
from munjang.nn.base import Network
from munjang.nn.cpu import can_pack

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}
DEVICES = ("cpu", "cuda", "mps")
Devices = str | torch.device | Sequence[str | torch.device] | None


def pick_device(device: str | torch.device | None) -> torch.device:
    """Return the device asked for, or the best one here."""
    if device is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(name)
    try:
        picked = torch.device(device)
    except RuntimeError as error:
        raise unknown("device", device, DEVICES) from error
    if picked.type not in DEVICES:
        raise unknown("device", picked.type, DEVICES)
    if picked.type == "cuda" and (picked.index or 0) >= torch.cuda.device_count():
        raise InputError(f"The device {device!s} is not here; torch sees {torch.cuda.device_count()} CUDA devices.")
    if picked.type == "mps" and not torch.backends.mps.is_available():
        raise InputError("The device mps is not here; torch sees no Apple GPU.")
    return picked


def pick_dtype(dtype: str | None, device: torch.device, network: Network | None = None) -> torch.dtype:
    """Return the dtype asked for; by default the best one for a network of ours, or for the one given."""
    if dtype is None:
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return gpu_dtype(network) if has_bf16 else torch.float32
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if dtype == "int8" and device.type != "cpu":
        raise InputError(f"dtype='int8' is for a CPU, not {device.type}; leave it out (float16 on a GPU).")
    return DTYPES[dtype]


def gpu_dtype(network: Network | None = None) -> torch.dtype:
    """Return the dtype in which a GPU computes a network by default.

    float16 is faster than bfloat16 and nearer to float32; where its range is too small, the engine notices and goes
    over to bfloat16. Networks of transformers begin there: some cut off what is too large for float16 unnoticed.
    """
    return torch.float16 if network is None or network.encoder.own is not None else torch.bfloat16


def place_model(folder: Path, device: Devices, dtype: str | None) -> tuple[list[torch.device], str]:
    """Return the devices asked for, and one dtype for all: by default the best one for the first device."""
    bound = [compute_options(folder, name, dtype) for name in as_devices(device)]
    devices = [pick_device(name) for name, _ in bound]
    if dtype is None and devices[0].type == "cpu" and stated_dtype(folder) == "int8" and can_pack(torch.int8):
        return devices, "int8"
    dtypes = [pick_dtype(name, picked) for (_, name), picked in zip(bound, devices, strict=True)]
    return devices, str(dtypes[0]).removeprefix("torch.")


def as_devices(device: Devices) -> list[str | torch.device | None]:
    """Return one device or several as a list; each GPU once, a CPU any number of times."""
    if device is None or isinstance(device, str | torch.device):
        return [device]
    devices = list(map(str, device))
    if not devices:
        raise InputError("device is an empty list; give at least one, such as ['cuda:0', 'cuda:1'].")
    full = [name if ":" in name else f"{name}:0" for name in devices]
    twice = sorted({name for name in full if full.count(name) > 1 and not name.startswith("cpu")})
    if twice:
        raise InputError(f"Each GPU can be given once, but {', '.join(twice)} is twice in {', '.join(devices)}.")
    return [*devices]


def names_of(device: Devices) -> str | list[str] | None:
    """Return devices as plain strings, which pickle anywhere."""
    return (
        device
        if device is None or isinstance(device, str)
        else (str(device) if isinstance(device, torch.device) else list(map(str, device)))
    )
