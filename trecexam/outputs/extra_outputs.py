"""Files of out/ beside the usual ones, where a grader asks about items that have scores of their own."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.tables.section import ExtraFiles

if TYPE_CHECKING:
    from trecexam.line.loaded import LoadedTrack

#: Kind of item -> the folder of out/ that is its own, and the function that gives what stands in it and on
#: the report's page: track -> `ExtraFiles`.
MAKERS: dict[str, tuple[str, str]] = {
    "gold": ("erag", "trecexam.features.erag.extra_outputs:made"),
    "truthfulness": ("ragval", "trecexam.features.ragval.extra_outputs:made"),
}
#: The folders, which may have one of plots.
FOLDERS = tuple(place for folder, _ in MAKERS.values() for place in (folder, f"{folder}/plots"))


def made_beside(track: LoadedTrack) -> ExtraFiles:
    """What the maker of the grader's items gives, if there is one; files by their names in out/."""
    for kind, (folder, target) in MAKERS.items():
        if kind in track.traits.item_kinds:
            module, _, function = target.partition(":")
            made: ExtraFiles = getattr(import_module(module), function)(track)
            return ExtraFiles(
                {f"{folder}/{name}": content for name, content in made.files.items()}, made.section
            )
    return ExtraFiles({})


def written_beside(manifest: Path) -> frozenset[str]:
    """The names of those that the last update wrote, by its manifest; empty where there is none."""
    try:
        outputs = json.loads(manifest.read_bytes())["outputs"]
        return frozenset(name for name in outputs if name.startswith(tuple(f"{each}/" for each in FOLDERS)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
