"""`track.learn`: labels for unjudged passages, learned from the judged ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.cli import bars
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.extensions.learn.learned_board import learned_leaderboard
from trecexam.extensions.learn.validation import cross_validate
from trecexam.outputs.outputs import Outputs

Function = TypeVar("Function", bound=Callable[..., Any])


def _showing(argument: str, *words: str) -> Callable[[Function], Function]:
    """Shows how far a call is, as the commands do, unless its caller gives the argument that is told.

    Args:
        argument: of the call: is told how many are done, of how many.
        words: see `bars.grading`.
    """

    def showing(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **settings: Any) -> Any:
            if settings.get(argument) is not None:
                return function(*args, **settings)
            with bars.grading(*words) as bar:
                return function(*args, **settings | {argument: bars.steps(bar)})

        return cast(Function, call)

    return showing


_encoding = _showing("progress", "encoding", "encoded", "texts")
_fitting = _showing("steps", "validating", "done", "fits")


@named_as_called
class LearnAccessor(Accessor):
    """Labels and leaderboard learned from the track's judgments."""

    labels = on_loaded(_encoding(learn))
    cross_validate = on_loaded(_encoding(_fitting(cross_validate)))
    leaderboard = on_loaded(_encoding(learned_leaderboard))

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes the result of `labels` to out/ and the manifest; returns the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
