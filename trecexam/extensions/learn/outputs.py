"""The report's section on learned labels, and learning at each update."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.settings import LearnSection
from trecexam.feature import Feature
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.sources import LEARNED_IDENTITY as IDENTITY
from trecexam.results.page.page import Page

_LEAD = (
    "What nDCG and AP are expected to be where labels that were learned from the official judgments stand "
    "for missing ones: means over draws of what people would say. Standard errors are over queries, and "
    "leave out what is uncertain in the labels. Judged is the share of a run's first passages that people "
    "judged."
)


def _page(track: GradedTrack, page: Page) -> None:
    """Add the section "learned" if labels were learned on the current runs, grades and judgments."""
    if not (track.folder.out / IDENTITY).is_file():
        return
    from trecexam.extensions.learn.learned_board import stored_board

    board = stored_board(track)
    if board is not None:
        title, file = "Leaderboard by learned labels", "learned-leaderboard.tsv"
        page.add(
            "learned", board, title=title, lead=_LEAD, files=(file,), link="Learned", after="leaderboard"
        )


def learn_after(track: GradedTrack) -> tuple[Iterable[Path], Iterable[str]]:
    """Learn at an update, if set and if there are judgments; return changed files and notes."""
    if not track.config.section(LearnSection).update or track.official is None:
        return (), ()
    from trecexam.extensions.learn.learn import learn

    try:
        labels = learn(track)
        written = labels.write(track.folder.out)
    except TrecexamError as error:
        # A failure here must not affect grades and leaderboard.
        return (), (f"nothing learned; out/learned.tsv is unchanged: {error}",)
    return written, (f"learn: {line}" for line in labels.notes)


LEARNING = Feature(page=_page, updated=learn_after)
