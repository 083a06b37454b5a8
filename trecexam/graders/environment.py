"""On what a model of torch runs: what its last bits hang on beside weights and texts."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def environment_of(model: torch.nn.Module, *, reproducible: bool) -> dict[str, str]:
    """As `environment_on`, of a model as it is loaded: where its first weights lie, it runs."""
    weights = next(model.parameters())
    dtype = str(weights.dtype).removeprefix("torch.")
    return environment_on(weights.device, dtype, reproducible=reproducible)


def environment_on(device: torch.device, dtype: str, *, reproducible: bool) -> dict[str, str]:
    """`device` (cpu, cuda ...), `processor` (its name), `dtype`, `torch`, `transformers`, `reproducible`.

    Args:
        dtype: as torch names it.
        reproducible: the setting of that name.
    """
    import torch
    import transformers

    on_cuda = device.type == "cuda"
    return {
        "device": device.type,
        "processor": torch.cuda.get_device_name(device) if on_cuda else processor_name(),
        "dtype": dtype,
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "reproducible": str(reproducible).lower(),
    }


@cache
def processor_name() -> str:
    """The CPU's name, as far as the system has one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
