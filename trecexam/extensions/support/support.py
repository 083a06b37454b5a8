"""`trecexam support`: what a grader of support says, as tables, and beside other labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.support.comparison import (
    SupportAgreement,
    compare_labels,
    compare_people,
    read_labels,
)
from trecexam.extensions.support.tables import SupportTables
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected
from trecexam.line.loaded_track import asked_of
from trecexam.tables.table import Table, to_tsv

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.leaderboard import Leaderboard

#: In out/.
LABELS_FILE, RUNS_FILE = "support.tsv", "support_runs.tsv"
#: In place of a file of labels: those of people.
PEOPLE = "people"


@dataclass(frozen=True, eq=False)
class SupportReport:
    """How far responses are supported by what they cite.

    Attributes:
        track: as its grader of support sees it.
        agreement: with the labels of a file, or of people; None where neither is asked for.
        rejected: runs that were rejected, and lines of files.
    """

    track: Assessment
    agreement: SupportAgreement | None = None
    rejected: tuple[Rejected, ...] = ()

    @cached_property
    def tables(self) -> SupportTables:
        """All its tables."""
        return SupportTables(self.track)

    @property
    def board(self) -> Leaderboard:
        """The runs of responses by the measures of `SUPPORT`, over all queries."""
        return self.tables.board

    def table(self, *, by_query: bool = False) -> Table:
        """A row for each run, or for each response, see `SupportTables`."""
        return self.tables.queries() if by_query else self.tables.runs()

    def labels(self) -> Table:
        """A row for each citation that was looked at, see `SupportTables`."""
        return self.tables.labels()

    def remarks(self) -> tuple[str, ...]:
        """What one must know of the scores, a line each."""
        return tuple(self.tables.notes())

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


@asked_of(lambda track, *args, **kwargs: track.asked.citing is not None)
def support(
    track: Assessment, *, against: Path | str | None = None, output: Path | str | None = None
) -> SupportReport:
    """Whether the passages that responses cite support the sentences that cite them, by the grades there are.

    Args:
        against: a file of labels, as out/support.tsv, to compare the labels with; "people" for people's,
            which are compared with the grader's.
        output: a folder for support.tsv and support_runs.tsv; None writes none.

    Raises:
        TrecexamError: the grader grades something else, or there are no responses.
        ConversionError: the file of labels cannot be read.
    """
    if track.asked.citing is None:
        raise TrecexamError(
            f"the grader {track.name} does not look at what responses cite: take --grader with one that "
            "does, or put a section [graders.support] into trecexam.toml",
            path=track.folder.config_path,
        )
    runs = {track.folder.shown(path) for path in track.folder.run_files()}
    rejected = tuple(row for row in track.rejected if row.file in runs)
    if not track.responses:
        first = next((f": {row}" for row in rejected), "")
        raise TrecexamError(f"no generated responses to queries of the track{first}", path=track.folder.runs)
    agreement = None
    if against == PEOPLE:
        agreement = compare_people(track)
    elif against is not None:
        ratings, refused = read_labels(Path(against), track.folder.shown(Path(against)))
        rejected, agreement = (*rejected, *refused), compare_labels(track, ratings)
    report = SupportReport(track, agreement, rejected)
    if output is not None:
        report.write(Path(output))
    return report
