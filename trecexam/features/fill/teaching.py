"""Labels learned from a track's judgments, for holes and leaderboards: an extension's, if one learns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trecexam.errors import TrecexamError
from trecexam.extension import extensions, named
from trecexam.features.fill.arithmetic.merging import HoleLabel, Machine
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official

if TYPE_CHECKING:
    from trecexam.scores.leaderboard import Leaderboard

#: Ways to fill, and to leave holes; in comparisons beside them "label:1", the same label for each passage.
LEARNED, GRADER, NOTHING, LABEL = "learned", "grader", "none", "label:"

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: Called with how many texts are encoded, and of how many.
Encoded = Callable[[int, int], None]


@dataclass(frozen=True)
class TaughtLabels:
    """Learned labels of a track's pool.

    Attributes:
        labels: query_id -> doc_id -> what it gets; of pooled passages.
        rule: how a gain becomes a label, in words.
        machine: what encoded the texts.
        notes: what a reader must know, one per line.
    """

    labels: dict[str, dict[str, HoleLabel]]
    rule: str
    machine: Machine
    notes: tuple[str, ...]


class Advice(NamedTuple):
    """Which way to fill was found best here, the last time that somebody looked.

    Attributes:
        best: the way, "none" for leaving holes; None where nobody looked, or what was found is of another
            state.
        summary: the figures, in a line.
        why: where something was found that does not count, why, in a line.
        check: the command that looks.
    """

    best: str | None
    summary: str
    why: str | None
    check: str


class Learner(Protocol):
    """Fills dropped judgments by what those that remain teach.

    Attributes:
        n_unlearned: how often these were too few to learn from.
    """

    n_unlearned: int

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels: ...


class Teacher(Protocol):
    """What an extension declares as its `teacher`."""

    def advice(self, track: Assessment, official: Official) -> Advice:
        """Which way to fill was found best."""
        ...

    def labels(self, track: Assessment, official: Official, progress: Encoded | None = None) -> TaughtLabels:
        """What the pooled passages would be judged, learned from these judgments.

        Raises:
            TrecexamError: nothing can be learned here; the message says why.
        """
        ...

    def leaderboard(self, track: Assessment, runs: Collection[str] | None = None) -> Leaderboard:
        """Return the runs by expected measures, with learned labels for missing judgments.

        Raises:
            TrecexamError: nothing was learned, or from another state of the track.
        """
        ...

    def learner(self, track: Assessment, official: Official, progress: Encoded | None = None) -> Learner:
        """What learns anew in each step of a simulation.

        Raises:
            TrecexamError: as `labels`.
        """
        ...


def teacher() -> Teacher | None:
    """The one that is installed; None where none is."""
    at = next((extension.teacher for extension in extensions() if extension.teacher is not None), None)
    installed: Teacher | None = None if at is None else named(at)
    return installed


def the_teacher() -> Teacher:
    """The one that is installed.

    Raises:
        TrecexamError: none is.
    """
    installed = teacher()
    if installed is None:
        raise TrecexamError("learned: no extension that is installed here learns from judgments")
    return installed
