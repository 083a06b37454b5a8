"""Files of out/ beside the usual ones, where a grader asks about items that have scores of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.graders.base import asks_of

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline

#: Kind of item -> the folder of out/ that is its own, and the function that gives what stands in it:
#: pipeline -> (name in the folder, content) pairs.
MAKERS: dict[str, tuple[str, str]] = {
    "gold": ("erag", "trecexam.stages.erag.beside:files"),
    "truthfulness": ("ragval", "trecexam.stages.ragval.judged:files"),
}
#: The folders, which may have one of plots.
FOLDERS = tuple(place for folder, _ in MAKERS.values() for place in (folder, f"{folder}/plots"))


def files_beside(pipeline: Pipeline) -> Iterator[tuple[str, bytes]]:
    """(name in out/, content) of each."""
    for kind, (folder, target) in MAKERS.items():
        if kind in asks_of(pipeline.grader):
            module, _, function = target.partition(":")
            for name, content in getattr(import_module(module), function)(pipeline):
                yield f"{folder}/{name}", content


def written_beside(manifest: Path) -> frozenset[str]:
    """The names of those that the last update wrote, by its manifest; empty where there is none."""
    try:
        outputs = json.loads(manifest.read_bytes())["outputs"]
        return frozenset(name for name in outputs if name.startswith(tuple(f"{each}/" for each in FOLDERS)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
