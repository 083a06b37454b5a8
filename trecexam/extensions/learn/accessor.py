"""`track.learn`: labels for unjudged passages, learned from the track's judgments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.grades.grading import Progress
from trecexam.track_groups import Group


class LearnAccessor(Group):
    """Labels for unjudged passages, learned from the track's judgments."""

    def labels(
        self,
        *,
        source: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> LearnedLabels:
        """Learn gains and labels of the whole pool from the track's judgments; grades nothing.

        A cross-validation hides half of the judgments and predicts them.

        Args:
            source: another track with judgments to learn from.
            progress: called during encoding, then during fitting; None shows bars or log lines.
        """
        graded = self._track.graded(documents=True, bank_needed=False)
        learned = learn(graded, source=source, progress=progress)
        return self._track.with_grader_note(learned, graded.name)

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Write the result of `labels` to `out`; return the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        return learned.write(self._track.loader(documents=True, bank_needed=False).folder.out)
