"""`trecexam support`: support scores of runs and responses, and labels of citations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trecexam.errors import TrecexamError
from trecexam.extensions.support.tables import SupportTables
from trecexam.files.stamps import Rejected
from trecexam.line.loaded_track import asked_of
from trecexam.line.rejected import rejected_notes
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.leaderboard import Leaderboard

By = Literal["run", "query", "citation"]
#: Marks a question for a grader that looks at what responses cite.
of_citations = asked_of(lambda track, *args, **kwargs: track.asked.citing is not None)


@dataclass(frozen=True, eq=False)
class Support(Result):
    """Support of responses by cited passages: the tables `runs`, `queries` and `labels`.

    Attributes:
        of: makes its tables.
        by: what the first table has a row for.
        rejected: runs that were rejected.
        notes: what one must know of the scores.
    """

    of: SupportTables
    by: By = "run"
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def board(self) -> Leaderboard:
        """The runs of responses by the measures of `SUPPORT`, over all queries."""
        return self.of.board

    def declare(self) -> dict[str, Table]:
        """A row per run and per response; on request also per citation."""
        tables = {"runs": _by_key(self.of.runs()), "queries": _by_key(self.of.queries())}
        if self.by == "query":
            return dict(reversed(tables.items()))
        return {"labels": self.of.labels(), **tables} if self.by == "citation" else tables


def _by_key(table: Table) -> Table:
    return replace(table, layout=Layout(("run", "query_id")))


def refused_runs(track: Assessment) -> tuple[Rejected, ...]:
    """Runs of responses, or lines of them, that were rejected.

    Raises:
        TrecexamError: the grader grades something else, or there are no responses.
    """
    if track.asked.citing is None:
        raise TrecexamError(
            f"the grader {track.name} does not grade citations: give one that does with --grader, or add a "
            f"section [graders.support] to trecexam.toml",
            path=track.folder.config_path,
        )
    runs = {track.folder.shown(path) for path in track.folder.run_files()}
    rejected = tuple(row for row in track.rejected if row.file in runs)
    if not track.responses:
        first = next((f": {row}" for row in rejected), "")
        raise TrecexamError(
            f"the track has no generated responses to its queries{first}", path=track.folder.runs
        )
    return rejected


@of_citations
def support(track: Assessment, by: By = "run") -> Support:
    """Support of citing sentences by cited passages, from stored grades.

    Args:
        by: what the first table has a row for: each "run", "query" (a response) or "citation".

    Raises:
        TrecexamError: the grader grades something else, or there are no responses.
    """
    rejected, tables = refused_runs(track), SupportTables(track)
    return Support(tables, by, rejected, (*rejected_notes(rejected), *track.notes, *tables.notes()))
