"""On what a model of torch runs: what its last bits depend on beside weights and texts."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import GraderError

if TYPE_CHECKING:
    import torch


def environment_of(model: torch.nn.Module) -> dict[str, str]:
    """As `environment_on`, of a loaded model: where its first weights lie, it runs."""
    weights = next(model.parameters())
    dtype = str(weights.dtype).removeprefix("torch.")
    return environment_on(weights.device, dtype)


def environment_on(device: torch.device, dtype: str) -> dict[str, str]:
    """`device` (cpu, cuda ...), `processor` (its name), `dtype`, `torch`, `transformers`.

    Args:
        dtype: as torch names it.
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
    }


def check_device(name: str) -> None:
    """Whether torch computes here on the device of this name.

    Raises:
        GraderError: it does not.
    """
    import torch

    try:
        torch.ones(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise GraderError(
            f"`device` '{name}' in [grader] cannot be used: {reason}; leave it out for the best there is"
        ) from error


@cache
def processor_name() -> str:
    """The CPU's name, as far as the system has one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
