"""Graders' work on other machines, by the extension that can have it done there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trecexam.errors import GraderError
from trecexam.extension import extensions, named
from trecexam.graders.base import Grader

if TYPE_CHECKING:
    from trecexam.config import GraderSection, RaySection


class Elsewhere(Protocol):
    """Other machines, as [ray] names them."""

    #: What `trecexam graders` calls it, and says of it.
    name: str
    summary: str

    def missing(self) -> str:
        """What must be installed first; "" where nothing is missing."""
        ...

    def grader(self, grader: Grader, settings: GraderSection, root: Path, ray: RaySection) -> Grader:
        """The same grader, whose work is done there: its identity and its answers are the same."""
        ...

    def writer(self, model: Any, ray: RaySection, memory: Path, section: str) -> Any:
        """The same writer (see `trecexam.graders.writing.Writer`), whose work is done there."""
        ...


@cache
def elsewhere() -> tuple[Elsewhere, ...]:
    """All that are installed."""
    return tuple(named(each.elsewhere) for each in extensions() if each.elsewhere is not None)


def the_elsewhere() -> Elsewhere:
    """The one that is installed.

    Raises:
        GraderError: none is.
    """
    if not elsewhere():
        raise GraderError("`address` in [ray] is set, but no installed extension runs on a cluster")
    return elsewhere()[0]
