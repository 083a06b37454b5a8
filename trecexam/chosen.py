"""Which grader of a track a command means, from the command line to where tracks are opened."""

from __future__ import annotations

from contextvars import ContextVar

#: What `--grader NAME` says; None where it is not given.
chosen_grader: ContextVar[str | None] = ContextVar("chosen_grader", default=None)
#: Filled while a command runs: the grader used because none was chosen -> all that the track has.
taken_graders: ContextVar[dict[str, tuple[str, ...]] | None] = ContextVar("taken_graders", default=None)


def took(grader: str, of: tuple[str, ...]) -> None:
    """Notes that an answer is of one of several graders, as none was chosen."""
    answering = taken_graders.get()
    if answering is not None and len(of) > 1:
        answering[grader] = of


def taken_notes() -> tuple[str, ...]:
    """Which grader answered because none was chosen, and which others there is; says it once."""
    answering = taken_graders.get() or {}
    notes = []
    for grader, candidates in answering.items():
        rest = ", ".join(each for each in candidates if each != grader)
        notes.append(f"shown for the grader {grader}; --grader selects another: {rest}")
    answering.clear()
    return tuple(notes)
