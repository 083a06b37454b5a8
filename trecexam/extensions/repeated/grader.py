"""A repetition of a server's grader, with its own identity in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell
from trecexam.graders.server.grader import ServerGrader
from trecexam.graders.traits import GraderTraits, traits_of

if TYPE_CHECKING:
    from trecexam.line.loader import TrackLoader


@dataclass(frozen=True)
class OneMoreTime:
    """The `sample`-th repetition of a grader, from 2; the first is the grader itself."""

    grader: ServerGrader
    sample: int

    @property
    def identity(self) -> Mapping[str, Any]:
        """The grader's identity with the number of the repetition."""
        return {**self.grader.identity, "sample": self.sample}

    @property
    def traits(self) -> GraderTraits:
        """The grader's traits."""
        return traits_of(self.grader)

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Grades like the grader."""
        return self.grader.grade(cells)


def random_grader(loader: TrackLoader) -> ServerGrader:
    """The loader's grader, checked to be one whose answers can differ.

    Raises:
        GraderError: it gives the same answers again; the message says which setting to change.
    """
    grader, folder = loader.grader, loader.folder
    section, name = f"[{folder.section}]", folder.config.grader.name
    if not isinstance(grader, ServerGrader):
        raise GraderError(
            f"`repeat` needs a grader that calls a server, and `{name}` in {section} does not: set "
            '`name = "openai"` with a `temperature` above 0, or choose such a grader with --grader',
            path=folder.config_path,
        )
    fixed = []
    if grader.form.temperature == 0:
        fixed.append("set `temperature` above 0")
    if grader.form.seed is not None:
        fixed.append("remove `seed`")
    if fixed:
        raise GraderError(
            f"the server would give the same answers again: {' and '.join(fixed)} in {section}; "
            f"`trecexam watch {folder.root} --once` then grades all cells again with these settings",
            path=folder.config_path,
        )
    return grader
