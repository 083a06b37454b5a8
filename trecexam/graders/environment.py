"""Environment of a torch model: device, processor, type of numbers, versions of libraries."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from trecexam.errors import GraderError

if TYPE_CHECKING:
    import torch

# torch reads this when it is first imported. Threads that spin while they wait for each other take up to
# nine times as long on a machine with other work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

M = TypeVar("M")
#: Models of this process, as long as a grader or writer has them.
_MODELS: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
#: Of a CPU that multiplies in bfloat16.
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})
#: Instruction sets that oneDNN may be limited to, and that have those; the first means that it is not.
_WITH_BFLOAT16 = re.compile(r"|DEFAULT|ALL|AVX512_CORE_(BF16|FP16|AMX|AMX_FP16)|AVX10_1_512(_AMX|_AMX_FP16)?")


def shared_model(of: Hashable, make: Callable[[], M]) -> M:
    """Return the model of this process that was made of this, or a new one."""
    model: M | None = _MODELS.get(of)
    if model is None:
        model = _MODELS[of] = make()
    return model


def environment_of(model: torch.nn.Module) -> dict[str, str]:
    """Return the environment of a loaded model; it runs where its first weights lie."""
    weights = next(model.parameters())
    return environment_on(weights.device, str(weights.dtype).removeprefix("torch."))


def environment_on(device: torch.device, dtype: str) -> dict[str, str]:
    """Return `device` (cpu, cuda ...), `processor` (its name), `dtype`, `torch`, `transformers`."""
    import torch
    import transformers

    return {
        "device": device.type,
        "processor": torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name(),
        "dtype": dtype,
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
    }


def check_device(name: str) -> None:
    """Raise a GraderError unless torch computes here on the device of this name."""
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
    """Return the CPU's name, as far as the system has one."""
    return _of_processor("model name") or platform.processor() or platform.machine()


def processor_dtype() -> str:
    """Return "bfloat16" where the CPU has instructions for that; else "float32", which is faster."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "")).upper()
    if not _WITH_BFLOAT16.fullmatch(limit):
        return "float32"
    return "bfloat16" if _BFLOAT16.intersection(_of_processor("flags").split()) else "float32"


@cache
def _of_processor(key: str) -> str:
    """Return what Linux says of the first CPU; "" where that is not known."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
