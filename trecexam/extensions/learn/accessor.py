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

        Half of the judgments are hidden, to see how well they are predicted.

        Args:
            source: another track, whose judgments are learned from, too.
            progress: called while texts are encoded, then while models are fitted; None shows bars or log
                lines.
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
