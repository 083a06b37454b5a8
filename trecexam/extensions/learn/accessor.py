"""`track.learn`: labels for unjudged passages, learned from the judged ones."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.cli import bars
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.line.assessment import Assessment
from trecexam.outputs.outputs import Outputs


@wraps(learn)
def _learn(track: Assessment, **settings: Any) -> LearnedLabels:
    if settings.get("progress") is not None:
        return learn(track, **settings)
    with bars.grading("encoding", "encoded", "texts") as bar:
        return learn(track, **settings | {"progress": bars.steps(bar)})


@named_as_called
class LearnAccessor(Accessor):
    """Labels learned from the track's judgments."""

    labels = on_loaded(_learn)

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes the result of `labels` to out/ and the manifest; returns the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
