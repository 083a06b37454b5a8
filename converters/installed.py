"""Installed packages: their versions and entry points.

`importlib.metadata` finds the same, and takes as long to import as all of `trecexam --help` otherwise.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple


class EntryPoint(NamedTuple):
    """An object that a package offers.

    Attributes:
        name: of the entry point.
        at: "module:attribute".
        package: the name of the package that has it.
    """

    name: str
    at: str
    package: str


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, in the order of the import path."""
    return tuple(_entry_points(tuple(sys.path)).get(group, ()))


def version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    stem = _stem(package)
    of_package = (path.name for path in _metadata(tuple(sys.path)) if _stem(path.name.split("-")[0]) == stem)
    return next((name.rpartition(".")[0].split("-")[1] for name in of_package if "-" in name), None)


def _stem(package: str) -> str:
    return re.sub(r"[-_.]+", "_", package).lower()


@cache
def _metadata(import_path: tuple[str, ...]) -> tuple[Path, ...]:
    """The folders of packages' metadata."""
    found: list[Path] = []
    for folder in dict.fromkeys(import_path):
        try:
            with os.scandir(folder or ".") as entries:
                names = [each.name for each in entries if each.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        found += (Path(folder, name) for name in sorted(names))
    return tuple(found)


@cache
def _entry_points(import_path: tuple[str, ...]) -> Mapping[str, list[EntryPoint]]:
    by_group: dict[str, list[EntryPoint]] = {}
    for path in _metadata(import_path):
        try:
            text = (path / "entry_points.txt").read_text(encoding="utf-8")
        except OSError:
            continue
        group = ""
        for line in map(str.strip, text.splitlines()):
            if line.startswith("["):
                group = line.strip("[]")
            elif "=" in line:
                name, _, at = line.partition("=")
                point = EntryPoint(name.strip(), at.strip(), path.stem.split("-")[0])
                by_group.setdefault(group, []).append(point)
    return by_group
