"""Installed packages: their versions and entry points.

`importlib.metadata` finds the same, and takes as long to import as all of `trecexam --help` otherwise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path


def entry_points(group: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each entry point of a group, its "module:attribute", and the name of its package."""
    for folder, text in _packages(tuple(sys.path)).items():
        for line in text.partition(f"[{group}]")[2].partition("\n[")[0].splitlines():
            name, separator, at = line.partition("=")
            if separator:
                yield name.strip(), at.strip(), Path(folder).stem.split("-")[0]


def version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    name = re.sub(r"[-_.]+", "[-_.]+", package)
    pattern = re.compile(rf"{name}-([^-]+?)(?:-.*)?\.(?:dist|egg)-info", re.IGNORECASE)
    matches = map(pattern.fullmatch, _packages(tuple(sys.path)))
    return next((match[1] for match in matches if match), None)


@cache
def _packages(import_path: tuple[str, ...]) -> Mapping[str, str]:
    """Return the text of each package's entry points by the name of its folder of metadata."""
    texts: dict[str, str] = {}
    for folder in dict.fromkeys(import_path):
        for path in sorted(Path(folder).glob("*.*-info")):
            points = path / "entry_points.txt"
            texts.setdefault(path.name, points.read_text(encoding="utf-8") if points.is_file() else "")
    return texts
