"""`trecexam support`: grades what is missing, scores the runs, and writes the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from trecexam.bank.asked import QUERY
from trecexam.errors import TrecexamError
from trecexam.features.support.comparison import (
    SupportAgreement,
    compare_labels,
    compare_people,
    read_labels,
    with_labels,
)
from trecexam.features.support.tables import labels_table, queries_table, remarks, runs_table
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Answer, Cell, Estimate
from trecexam.line.assessment import Assessment
from trecexam.line.grading import Graded, Progress
from trecexam.line.grading_time import measure_support_time
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.support import SupportCells
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.leaderboard import leaderboard as leaderboard_of
from trecexam.scores.support import SUPPORT
from trecexam.tables.table import Table, to_tsv

#: In out/.
LABELS_FILE, RUNS_FILE = "support.tsv", "support_runs.tsv"
#: In place of a file of labels: those of overrides.tsv.
PEOPLE = "people"
_NOTHING = Graded(0)


@dataclass(frozen=True, eq=False)
class SupportReport:
    """How far responses are supported by what they cite.

    Attributes:
        track: what was loaded.
        cells: sentences, what they cite, and the labels.
        graded: what was graded now, whether all was, and why not.
        usage: tokens and money, now and in all; None where these are not counted.
        agreement: with the labels of a file, or of people; None where neither is asked for.
        rejected: runs that were not taken, and lines of files.
        from_file: the labels are those of a file, and no grader was asked.
    """

    track: Assessment
    cells: SupportCells
    graded: Graded = _NOTHING
    usage: dict[str, Any] | None = None
    agreement: SupportAgreement | None = None
    rejected: tuple[Rejected, ...] = ()
    from_file: bool = False

    @cached_property
    def board(self) -> Leaderboard:
        """The runs of responses by the measures of `SUPPORT`, over all queries of the bank."""
        track, runs = self.track, tuple(self.track.responses)
        values = self.cells.values(runs, track.bank.query_ids)
        answered = {run: [response.query_id for response in track.responses[run]] for run in runs}
        average = track.config.scores.average
        return leaderboard_of(values, SUPPORT, values.query_ids, answered, average=average)

    def table(self, *, by_query: bool = False) -> Table:
        """A row for each run, see `runs_table`; or for each response, see `queries_table`."""
        if by_query:
            return queries_table(self.cells, self.track.responses)
        return runs_table(self.cells, self.board, self.track.responses)

    def labels(self) -> Table:
        """A row for each citation that was looked at, see `labels_table`."""
        return labels_table(self.cells)

    def remarks(self) -> tuple[str, ...]:
        """What one must know of the scores, a line each."""
        words, responses = self.track.config.track.truncate, self.track.responses
        return tuple(remarks(self.cells, responses, words, from_file=self.from_file))

    def contents(self) -> Mapping[str, bytes]:
        """The files that `write` writes, by name."""
        return {
            LABELS_FILE: to_tsv(self.labels()).encode(),
            RUNS_FILE: to_tsv(self.table()).encode(),
        }

    def write(self, folder: Path) -> None:
        """Writes support.tsv and support_runs.tsv.

        Raises:
            TrecexamError: a file cannot be written.
        """
        files.replace_together({folder / name: content for name, content in self.contents().items()})


def support(
    loader: TrackLoader,
    *,
    citations: Literal["first", "all"] | None = None,
    truncate: int | None = None,
    labels: Path | str | None = None,
    against: Path | str | None = None,
    output: Path | str | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SupportReport:
    """Whether the passages that responses cite support the sentences that cite them: what `support` does.

    What the grader of [support] says is kept in the track's store, so that no sentence is graded twice with
    the same passage.

    Args:
        citations: "first" or "all" of a sentence; None for the track's setting.
        truncate: words of a response that count; None for the track's setting.
        labels: a file of labels in place of a grader, as out/support.tsv: nobody is asked.
        against: another one, to compare the labels with; "people" for people's in overrides.tsv, which are
            compared with the grader's.
        output: a folder for support.tsv and support_runs.tsv; None writes none.
        progress: called after each batch of labels.
        stop: asked again and again; True ends it early.

    Raises:
        LockedError: another process grades this track, and there is something to ask.
        StoreError: the store is gone or an older one, and what it had would be paid for again.
        TrecexamError, ConversionError: what stands in the way; what was graded until then is stored.
    """
    shown = loader.folder.shown
    given = None if labels is None else read_labels(Path(labels), shown(Path(labels)))
    others = None if against in (None, PEOPLE) else read_labels(Path(against), shown(Path(against)))
    with _loading(loader, citations, truncate, asks=given is None) as loading:
        track, graded, usage = loading.load(), _NOTHING, None
        cells = _cells(track)
        if given is not None and against == PEOPLE:
            raise TrecexamError('labels of a file and against = "people": compare people with the grader\'s')
        if given is not None:
            cells = with_labels(cells, given[0])
        elif next(cells.missing(), None) is not None:
            with TrackLock(loading.folder.lock_path):
                refuse_lost_grades(loading)
                loading.open_to_write()
                track, graded = loading.grade_support(loading.load(), progress, stop)
            cells, usage = _cells(track), loading.support_grading.usage()
        of_labels = (row for each in (given, others) if each for row in each[1])
        rejected = (*_refused_runs(track), *cells.rejected, *of_labels)
        agreement = None if others is None else compare_labels(cells, others[0])
        if against == PEOPLE:
            agreement = compare_people(cells)
        report = SupportReport(track, cells, graded, usage, agreement, rejected, given is not None)
    if output is not None:
        report.write(Path(output))
    return report


def estimate_support(
    loader: TrackLoader,
    *,
    citations: Literal["first", "all"] | None = None,
    truncate: int | None = None,
    timed: bool = False,
) -> Estimate:
    """What `support` would have to ask: sentences with a passage ("cells"), tokens, money; asks nobody.

    Args:
        citations, truncate: as in `support`.
        timed: also how long, where the model is in this process: a few citations are graded, and not stored.
    """
    with _loading(loader, citations, truncate) as loading:
        missing = list(_cells(loading.load()).missing())
        estimate = loading.support_grading.estimate_cells(missing, len(missing))
        if not timed or estimate.time is not None:
            return estimate
        return estimate._replace(time=measure_support_time(loading, missing))


def _cells(track: Assessment) -> SupportCells:
    assert track.support is not None, "it is loaded with [support]"
    if not track.responses:
        first = next((f": {row}" for row in _refused_runs(track)), "")
        raise TrecexamError(f"no generated responses to queries of the track{first}", path=track.folder.runs)
    return track.support


def _refused_runs(track: Assessment) -> Iterator[Rejected]:
    runs = {track.folder.shown(path) for path in track.folder.run_files()}
    return (row for row in track.rejected if row.file in runs)


class _NoGrader:
    """Stands for a grader where nobody is asked.

    Of a track without a bank it is asked about queries, which are then those that the track names.
    """

    item_kinds = frozenset({QUERY})
    identity: Mapping[str, Any] = {"grader": "none"}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        raise TrecexamError("nobody grades here")


@contextmanager
def _loading(
    loader: TrackLoader,
    citations: Literal["first", "all"] | None,
    truncate: int | None,
    *,
    asks: bool = True,
) -> Iterator[TrackLoader]:
    """The loader, or another one of the same track with these settings.

    Args:
        asks: whether the grader of [support] is needed; without it, none has to be installed.
    """
    config = loader.folder.config
    own = asks and citations is None and truncate is None and loader.folder.bank(optional=True)
    if config.grades_support and own:
        yield loader
        return
    of_support = config.support.model_copy(update={} if citations is None else {"citations": citations})
    of_track = config.track.model_copy(update={} if truncate is None else {"truncate": truncate})
    changed = config.model_copy(update={"support": of_support, "track": of_track})
    # One process writes the store at a time.
    loader.close()
    given = None if loader.track_grader.is_own else loader.grader
    if given is None and not loader.folder.bank(optional=True):
        given = _NoGrader()
    of_labels = None if asks else _NoGrader()
    with TrackLoader(replace(loader.folder, config=changed), given, support_grader=of_labels) as other:
        yield other
