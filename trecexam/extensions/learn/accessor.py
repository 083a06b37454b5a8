"""`track.learn`: labels for unjudged passages, learned from the judged ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.cli import bars
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.line.assessment import Assessment
from trecexam.outputs.outputs import Outputs

Function = TypeVar("Function", bound=Callable[..., Any])


def _shown(function: Function) -> Function:
    """Show the progress, unless the caller gives `progress`."""

    @wraps(function)
    def call(track: Assessment, **settings: Any) -> Any:
        if settings.get("progress") is not None:
            return function(track, **settings)
        with bars.progress("learning") as progress:
            return function(track, **settings | {"progress": progress})

    return cast(Function, call)


@named_as_called
class LearnAccessor(Accessor):
    """Labels learned from the track's judgments."""

    labels = on_loaded(_shown(learn))

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes the result of `labels` to out/ and the manifest; returns the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
