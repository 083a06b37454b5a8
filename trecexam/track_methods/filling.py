"""Judgment holes: where they are, filling them, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import GraderError
from trecexam.features.fill.fill import Filled, Found, Wanted, check_outputs, find_holes, merged
from trecexam.features.fill.simulation import Steps, simulate_removal, simulate_runs
from trecexam.features.holes.holes import HolesReport, holes_report
from trecexam.files.track_lock import TrackLock
from trecexam.line.grading import Progress
from trecexam.line.sources import sources_beside
from trecexam.track_methods.opened import Opened, names_of

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.scale_map import RuleName
    from trecexam.features.fill.simulation_tables import RemovalReport, RunsReport
    from trecexam.track_methods.opened import MeasureLike


class Filling(Opened):
    """Judgment holes: where they are, filling them, and what that is worth."""

    def holes(self, depths: Sequence[int] | None = None, *, qrels: Path | None = None) -> HolesReport:
        """Passages in the runs' first ranks that have no official judgment, or no grade.

        Args:
            depths: how many first ranks count; None for the track's depth.
            qrels: official judgments in place of the track's.

        Raises:
            ConversionError: `qrels` cannot be read.
        """
        return holes_report(self._loaded(), depths, qrels)

    def find_holes(
        self,
        qrels: Path | str | None = None,
        *,
        depth: int | None = None,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        as_unjudged: bool = False,
    ) -> Found:
        """The pooled passages that nobody judged, and how `fill` would label them; grades nothing.

        Args:
            qrels: official judgments in place of the track's.
            depth: ranks of each run that are pooled, in place of the track's.
            rule: how automatic labels become official ones. None: "fitted" on the passages with both, where
                there are such, else "identity".
            cuts: automatic label -> official label, for "thresholds", which they imply; None:
                min_rating -> min_relevant.
            as_unjudged: new lines get the label -1.

        Raises:
            TrecexamError: there are no official judgments, they have nothing in common with the pool and no
                rule was named, or the rule cannot be made.
            ConversionError: `qrels` cannot be read.
        """
        path = None if qrels is None else Path(qrels)
        rule = "thresholds" if cuts and rule is None else rule
        return find_holes(self._loader, Wanted(path, depth, rule, dict(cuts or {}), as_unjudged))

    def fill(
        self,
        found: Found,
        *,
        output: Path | str | None = None,
        sources: Path | str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Filled:
        """Grades the holes that have no grades yet, and merges their labels into the official judgments.

        No human label changes, and no judged passage is graded. Where nothing is left to grade, the track
        may be read-only or watched.

        Args:
            found: what `find_holes` gave.
            output: where the merged qrels are written; None writes nothing.
            sources: where it is written who said each line; None for `output` with ".sources.tsv" after it.

        Raises:
            LockedError: another process grades this track.
            TrecexamError: `output` or `sources` is an input, or cannot be written; a grader that cannot run.
        """
        if output is not None:
            output = Path(output)
            sources = sources_beside(output) if sources is None else Path(sources)
            check_outputs(self._loader.inputs.stamps(), found, output, sources)
        graded = 0
        if found.missing:
            with TrackLock(self.folder.lock_path):
                self._loader.open_to_write()
                track = self._loader.load(depth=found.pool_depth)
                track, outcome = self._loader.grade(track, progress, only=found.holes)
                if outcome.why:
                    raise GraderError(outcome.why)
                graded = outcome.cells
        else:
            track = self._loader.load(depth=found.pool_depth)
        filled = merged(track, found, graded)
        if isinstance(output, Path) and isinstance(sources, Path):
            filled.write(output, sources)
        return filled

    def simulate_runs(
        self,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        qrels: Path | None = None,
        depth: int | None = None,
        teams: Path | None = None,
        progress: Steps | None = None,
    ) -> RunsReport:
        """Leaves out the official judgments that each run alone brought in, fills them, and compares ranks.

        Args:
            official_measures: in place of the track's.
            rule: how automatic labels become official ones. None or "fitted": fitted in each step on the
                judgments that remain, and where that cannot be, "identity".
            cuts: automatic label -> official label, of "thresholds", which they imply; None:
                min_rating -> min_relevant.
            qrels: official judgments in place of the track's.
            depth: ranks in which a passage is had by a run; None for the track's depth.
            teams: a file of `run<TAB>team` lines: a team is left out as a whole.
            progress: called with how many steps are done, and of how many.

        Raises:
            TrecexamError: no official judgments, a measure that cannot be computed, cuts that are no rule,
                teams of other runs.
            ConversionError: a file cannot be read.
        """
        return simulate_runs(
            self._loaded(),
            names_of(official_measures),
            rule=rule,
            cuts=cuts,
            qrels=qrels,
            depth=depth,
            teams=teams,
            progress=progress,
        )

    def simulate_removal(
        self,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        rule: RuleName | None = None,
        cuts: Mapping[int, int] | None = None,
        qrels: Path | None = None,
        repeats: int = 10,
        seed: int = 0,
        progress: Steps | None = None,
    ) -> RemovalReport:
        """Removes 10 to 90% of the official judgments at random, fills them, and compares leaderboards.

        Args:
            repeats: how often judgments are drawn; at least 1.
            seed: of the random numbers.

        The others, and what is raised, are as in `simulate_runs`.
        """
        return simulate_removal(
            self._loaded(),
            names_of(official_measures),
            rule=rule,
            cuts=cuts,
            qrels=qrels,
            repeats=repeats,
            seed=seed,
            progress=progress,
        )
