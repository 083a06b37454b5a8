"""`track.learn`: labels for unjudged passages, learned from the judged ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.cli import bars
from trecexam.extensions.learn.judging_order import plan_judgments
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.extensions.learn.learned_board import learned_leaderboard
from trecexam.extensions.learn.settle import settle
from trecexam.extensions.learn.validation import cross_validate
from trecexam.outputs.outputs import Outputs

Function = TypeVar("Function", bound=Callable[..., Any])


def _showing_progress(function: Function) -> Function:
    """Shows how many passages are encoded, as the commands do, unless the caller has a `progress`."""

    @wraps(function)
    def with_progress(*args: Any, progress: Callable[[int, int], None] | None = None, **settings: Any) -> Any:
        if progress is not None:
            return function(*args, progress=progress, **settings)
        with bars.grading("encoding", "encoded", "texts") as encoding:
            return function(*args, progress=bars.steps(encoding), **settings)

    return cast(Function, with_progress)


def _showing_fits(function: Function) -> Function:
    """Shows how many fits are done, unless the caller has `steps`."""

    @wraps(function)
    def with_steps(*args: Any, steps: Callable[[int, int], None] | None = None, **settings: Any) -> Any:
        if steps is not None:
            return function(*args, steps=steps, **settings)
        with bars.grading("validating", "done", "fits") as fitting:
            return function(*args, steps=bars.steps(fitting), **settings)

    return cast(Function, with_steps)


@named_as_called
class LearnAccessor(Accessor):
    """Labels and leaderboard learned from the track's judgments."""

    labels = on_loaded(_showing_progress(learn))
    cross_validate = on_loaded(_showing_progress(_showing_fits(cross_validate)))
    leaderboard = on_loaded(_showing_progress(learned_leaderboard))
    next = on_loaded(_showing_progress(plan_judgments))
    settle = on_loaded(_showing_progress(settle))

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes the result of `labels` to out/ and the manifest; returns the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
