"""Graders: they answer, for each cell, how well a passage answers an item (0..5); found here by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from converters.installed import version
from trecexam.config import GraderSection, Section
from trecexam.errors import GraderError, did_you_mean
from trecexam.extension import extensions, named, provided
from trecexam.folder import refuse_code
from trecexam.graders.base import Answer, Cell, Factory, Grader

__all__ = ["Answer", "Cell", "Factory", "Grader", "available", "create"]

_LIBRARIES = ("nltk", "rapidfuzz")
#: Graders that come with the package; known even where it runs from a source tree without metadata.
BUILT_IN = {
    "recorded": "trecexam.graders.recorded:FACTORY",
    "embedding": "trecexam.graders.embedding:FACTORY",
    "openai": "trecexam.graders.server.grader:FACTORY",
}


@cache
def available() -> Mapping[str, Factory]:
    """Return every grader known here by name, also those that cannot run."""
    return {name: named(at) for name, at in sorted(_places().items())}


@cache
def _places() -> Mapping[str, str]:
    """Return "module:name" of each grader's factory, by the grader's name."""
    return {**BUILT_IN, **{name: at for each in extensions() for name, at in each.graders.items()}}


def is_standard(name: str) -> bool:
    """Return True for a grader that says so of itself, see `Factory`."""
    return name in _places() and bool(named(_places()[name]).standard)


def create(
    settings: GraderSection, root: Path, elsewhere: Section | None = None, *, trust_code: bool = False
) -> Grader:
    """Make the grader that `settings` name; its work is done `elsewhere`, if a section says so.

    Raises:
        TrackError: they name code, and code is not trusted.
        GraderError: no such grader, or it cannot run here; the message says how to get it.
    """
    refuse_code(settings.metric, root, trusted=trust_code)
    if settings.name not in _places():
        hint = did_you_mean(settings.name, _places(), f"known here: {', '.join(sorted(_places()))}")
        raise GraderError(
            f"no grader '{settings.name}'; {hint}; one of another package needs `pip install` of that package"
        )
    factory: Factory = named(_places()[settings.name])
    grader = factory.create(settings, root)
    if elsewhere is None or grader.meter is not None or not factory.runs_model:
        return grader
    remote: Grader = provided("elsewhere").grader(grader, settings, root, elsewhere)
    return remote


@cache
def reading_fingerprint() -> str:
    """Return the sha256 (hex) of the graders' modules and of the libraries that they read answers with.

    Two states of the program that call themselves the same version may still read otherwise.
    """
    content = hashlib.sha256()
    ours = Path(__file__).parent
    extensions = ours.parent / "extensions"
    readers = ours.rglob("*.py"), extensions.glob("*/grader.py"), extensions.glob("*/grader/*.py")
    for path in sorted(chain(*readers)):
        content.update(path.read_bytes())
    for library in _LIBRARIES:
        content.update((version(library) or "none").encode())
    return content.hexdigest()
