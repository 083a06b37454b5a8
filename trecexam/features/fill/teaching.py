"""Labels learned from a track's judgments, for holes and leaderboards, by the extension that learns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trecexam.extension import extensions, named
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official

if TYPE_CHECKING:
    from trecexam.scores.leaderboard import Leaderboard

#: Ways to fill, and to leave holes.
LEARNED, GRADER, NOTHING = "learned", "grader", "none"

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: Called with how many texts are encoded, and of how many.
Encoded = Callable[[int, int], None]


class Machine(NamedTuple):
    """The name, model and prompt of a grader, or of an encoder of texts; "" where it has none."""

    grader: str
    model: str = ""
    prompt: str = ""


class HoleLabel(NamedTuple):
    """A hole's label on the official scale, its expected label, and the label's probability, if known."""

    label: int
    gain: float
    confidence: float | None


class TaughtLabels(NamedTuple):
    """Learned labels of a track's pool.

    Attributes:
        labels: query_id -> doc_id -> label of the pooled passages.
        rule: how a gain becomes a label, in words.
        machine: what encoded the texts.
        notes: what a reader must know, one per line.
    """

    labels: Mapping[str, Mapping[str, HoleLabel]]
    rule: str
    machine: Machine
    notes: tuple[str, ...]


class Advice(NamedTuple):
    """The best way to fill by the last cross-validation.

    Attributes:
        best: the way, "none" for leaving holes; None without a cross-validation of the current state.
        summary: the figures, in a line.
        why: why a stored cross-validation does not count, in a line; "" where there is none.
    """

    best: str | None
    summary: str = ""
    why: str = ""


class Learner(Protocol):
    """Fills dropped judgments by what those that remain teach.

    Attributes:
        n_unlearned: how often these were too few to learn from.
    """

    n_unlearned: int

    def __call__(self, dropped: Mapping[str, Collection[str]]) -> Labels: ...


class Teacher(Protocol):
    """What an extension declares as its `teacher`."""

    def advice(self, track: GradedTrack, official: Official) -> Advice:
        """Return the best way to fill by the last cross-validation."""
        ...

    def labels(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> TaughtLabels:
        """Return the labels of the pooled passages, learned from these judgments.

        Raises:
            TrecexamError: nothing can be learned here; the message says why.
        """
        ...

    def leaderboard(self, track: GradedTrack, runs: Collection[str] | None = None) -> Leaderboard:
        """Return the runs by expected measures, with learned labels for missing judgments.

        Raises:
            TrecexamError: nothing was learned, or from another state of the track.
        """
        ...

    def learner(self, track: GradedTrack, official: Official, progress: Encoded | None = None) -> Learner:
        """Return what learns anew in each step of a simulation.

        Raises:
            TrecexamError: as `labels`.
        """
        ...


def the_teacher() -> Teacher:
    """Return the teacher that an extension declares: `learn` does."""
    at = next(extension.teacher for extension in extensions() if extension.teacher is not None)
    declared: Teacher = named(at)
    return declared
