"""The bank as an exam that the runs take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.track_methods.opened import Opened

if TYPE_CHECKING:
    from trecexam.features.exams.fitting import ImprovedExam
    from trecexam.features.exams.rubric import TrackExam
    from trecexam.irt.improvement import Step
    from trecexam.irt.settings import Settings


class Exams(Opened):
    """The bank as an exam that the runs take."""

    def fit_exam(
        self,
        settings: Settings | None = None,
        *,
        components: Path | None = None,
        groups: Path | None = None,
        min_rating: int | None = None,
        depth: int | None = None,
    ) -> TrackExam:
        """Fits an item response model: how able each run is, how hard and discriminating each item.

        A run has an item right where one of its first `depth` passages is rated min_rating or better on it.

        Args:
            settings: None for the 2PL with priors.
            components, groups: tables of what runs are made of, and which groups items are in.
            min_rating, depth: in place of the track's.

        Raises:
            TrecexamError, ConversionError: nothing is graded, or no model can be fitted.
        """
        from trecexam.features.exams.responses import LabelFiles
        from trecexam.features.exams.rubric import fit_track

        return fit_track(
            self._loaded(), settings, LabelFiles(components, groups), min_rating=min_rating, depth=depth
        )

    def improve_exam(
        self,
        settings: Settings | None = None,
        *,
        components: Path | None = None,
        groups: Path | None = None,
        steps: int = 5,
        drop: float = 0.1,
        min_items: int = 2,
        min_gain: float | None = None,
        min_rating: int | None = None,
        depth: int | None = None,
        progress: Callable[[Step], None] | None = None,
    ) -> ImprovedExam:
        """Drops the items that tell runs apart least and fits again, step by step.

        Args:
            settings, components, groups, min_rating, depth: as in `fit_exam`.
            steps, drop, min_items, min_gain, progress: as in `trecexam.irt.improve`.

        Raises:
            TrecexamError: as `fit_exam`.
        """
        from trecexam.features.exams.fitting import improved
        from trecexam.features.exams.responses import LabelFiles, from_track
        from trecexam.features.exams.rubric import default_settings

        return improved(
            from_track(self._loaded(), LabelFiles(components, groups), min_rating=min_rating, depth=depth),
            settings or default_settings(),
            steps=steps,
            drop=drop,
            min_items=min_items,
            min_gain=min_gain,
            progress=progress,
        )
