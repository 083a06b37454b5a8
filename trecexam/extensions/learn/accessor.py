"""`track.learn`: what the unjudged passages would be judged, learned from the others."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.learn.judging_order import plan_judgments
from trecexam.extensions.learn.learn import LearnedLabels, learn
from trecexam.extensions.learn.learned_board import learned_leaderboard
from trecexam.extensions.learn.settle import settle
from trecexam.extensions.learn.validation import cross_validate
from trecexam.outputs.outputs import Outputs


@named_as_called
class LearnAccessor(Accessor):
    """Labels and leaderboard by what is learned from the track's judgments."""

    labels = on_loaded(learn)
    cross_validate = on_loaded(cross_validate)
    leaderboard = on_loaded(learned_leaderboard)
    next = on_loaded(plan_judgments)
    settle = on_loaded(settle)

    def write(self, learned: LearnedLabels) -> tuple[Path, ...]:
        """Writes what `labels` gave to out/, and names it in the manifest; gives the files that changed.

        Raises:
            TrecexamError: a file cannot be written.
        """
        written = learned.write(self.folder.out)
        Outputs(self.folder).renew_manifest()
        return written
