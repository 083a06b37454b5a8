"""Loading of language models from a folder or the hub, on the best device."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.errors import GraderError
from trecexam.extensions.local_models.batching import OutOfMemoryError
from trecexam.graders.weights import check_device, processor_dtype
from trecexam.packages import install, missing_packages

if TYPE_CHECKING:
    import torch

HOW_TO_GET = (
    "set `model` in [grader] of trecexam.toml to a folder with the model, or to a hub id where a hub can "
    "be reached"
)
#: Length that means "no limit".
NO_LIMIT = 10**9
TOKENIZER_FILES = ("tokenizer.json", "spiece.model", "tokenizer.model", "vocab.json")
#: Oldest supported major version of transformers.
TRANSFORMERS = 5
INSTALL = install("models")
#: Files beside the weights that determine a model's output.
LANGUAGE_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.*",
    "spiece.model",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
)


def missing_for_models() -> str:
    """Return the packages to install for local language models; "" if nothing is missing."""
    missing = missing_packages(("nltk", "torch", "transformers"), INSTALL)
    if missing:
        return missing
    installed = version("transformers")
    old = int(installed.split(".")[0]) < TRANSFORMERS
    return f"transformers {installed} is too old; use version {TRANSFORMERS}: {INSTALL}" if old else ""


def best_device(name: str | None) -> str:
    """Return the requested device, or the first available of cuda, mps, cpu."""
    import torch

    if name is not None:
        check_device(name)
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def best_dtype(name: str, device: str) -> torch.dtype:
    """Return the requested dtype, or bfloat16 if the device computes in it, else float32."""
    import torch

    if name == "auto":
        name = processor_dtype() if device == "cpu" else "float32"
        if device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False):
            name = "bfloat16"
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer in `folder`.

    Raises:
        GraderError: there is no tokenizer, or it is a slow one without token offsets.
    """
    if packages := missing_for_models():
        raise GraderError(packages)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        # transformers would create an empty tokenizer.
        raise GraderError(
            f"the folder has no tokenizer: it needs one of {', '.join(TOKENIZER_FILES)}", path=folder
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        # Each kind of damaged file has its own error class.
        raise GraderError(f"the tokenizer cannot be loaded: {line_of(error)}", path=folder) from error
    if not tokenizer.is_fast:
        raise GraderError("this model's tokenizer has no fast form (tokenizer.json)", path=folder)
    return tokenizer


def load_model(folder: Path, auto_class: str, device: str, dtype: torch.dtype) -> Any:
    """Load the model in `folder`.

    Raises:
        GraderError: the model cannot be loaded, or does not fit the device.
    """
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()
    # transformers reports on loading.
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        model, loading_info = getattr(transformers, auto_class).from_pretrained(
            str(folder),
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            # With accelerate, weights go from the files straight to the device.
            **({"device_map": {"": device}} if find_spec("accelerate") else {}),
        )
        lacking = sorted({*loading_info["missing_keys"], *loading_info["mismatched_keys"]})
        if lacking:
            # transformers initialises missing weights at random.
            raise ValueError(f"its files lack {len(lacking)} weights, '{lacking[0]}' among them")
        damaged = next((name for name, weight in model.named_parameters() if weight.isnan().any()), None)
        if damaged is not None:
            raise ValueError(f"its weights '{damaged}' are not numbers (NaN)")
        # Leave out penalties and sampling of the model's files, which would change answers.
        released_settings = model.generation_config
        model.generation_config = transformers.GenerationConfig(
            eos_token_id=released_settings.eos_token_id,
            pad_token_id=released_settings.pad_token_id,
            decoder_start_token_id=released_settings.decoder_start_token_id,
        )
        return model.to(device).eval()
    except Exception as error:
        if is_out_of_memory(error):
            raise GraderError(
                f"the model does not fit into the memory of {device}: use a smaller one, or set `device`",
                path=folder,
            ) from error
        # Each kind of damaged file has its own error class.
        raise GraderError(f"the model cannot be loaded: {line_of(error)}", path=folder) from error
    finally:
        logging.set_verbosity(verbosity)


def written_limit(folder: Path) -> int:
    """Return the maximum length in the tokenizer's files; a huge number if missing."""
    try:
        limit = json.loads((folder / "tokenizer_config.json").read_bytes()).get("model_max_length")
    except (OSError, ValueError, AttributeError):
        limit = None
    return int(min(limit, NO_LIMIT)) if isinstance(limit, int | float) and limit > 0 else NO_LIMIT


def written_config(folder: Path) -> dict[str, Any]:
    """Return the model's configuration.

    Raises:
        GraderError: the folder has none.
    """
    try:
        return dict(json.loads((folder / "config.json").read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise GraderError(f"the folder has no config.json of a model: {error}", path=folder) from None


def line_of(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0] or type(error).__name__


@contextlib.contextmanager
def out_of_memory() -> Iterator[None]:
    """Convert errors of torch for a lack of memory to `OutOfMemoryError`."""
    import torch

    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        for device in (torch.cuda, torch.xpu, *([torch.mps] if torch.backends.mps.is_available() else [])):
            device.empty_cache()
        raise OutOfMemoryError(line_of(error)) from error


def is_out_of_memory(error: Exception) -> bool:
    """Return True for a lack of memory: each device and library words it differently."""
    text = str(error).lower()
    words = ("out of memory", "alloc_failed", "not enough memory", "can't allocate memory")
    return isinstance(error, RuntimeError) and any(word in text for word in words)
