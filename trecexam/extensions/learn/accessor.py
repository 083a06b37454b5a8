"""`track.learn`: labels for unjudged passages, learned from the judged ones."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.outputs.outputs import Outputs


@named_as_called
class LearnAccessor(Accessor):
    """Labels learned from the track's judgments."""

    labels = on_loaded(learn)

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes the result of `labels` to out/ and the manifest; returns the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
