"""The embedder of the extra `offline`, or one of the same shape if its weights are missing."""

from __future__ import annotations

import shutil
from pathlib import Path

from support import ROOT

from trecexam.graders.weights import offline_folder

#: Files collected by tests/gpu/carry.sh: configuration and tokenizer.
CARRIED = ROOT / ".gpu" / "embedder"


def embedder(into: Path) -> Path | None:
    """The folder of an embedder; None without the extra and without the collected files.

    Args:
        into: where one with random weights is made of what was carried; it must not be there yet.
    """
    folder = offline_folder()
    if folder is not None or not CARRIED.is_dir():
        return folder
    import torch
    from transformers import AutoConfig, AutoModel

    shutil.copytree(CARRIED, into)
    torch.manual_seed(4)
    AutoModel.from_config(AutoConfig.from_pretrained(into)).save_pretrained(into)
    return into
