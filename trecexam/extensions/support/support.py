"""`trecexam support`: what a grader of support says of each run, response or citation."""

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
    """How far responses are supported by what they cite: the tables `runs`, `queries` and `labels`.

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
        """A row for each run, and for each response; and, where they are requested, for each citation."""
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
            f"the grader {track.name} does not look at what responses cite: take --grader with one that "
            "does, or add a section [graders.support] to trecexam.toml",
            path=track.folder.config_path,
        )
    runs = {track.folder.shown(path) for path in track.folder.run_files()}
    rejected = tuple(row for row in track.rejected if row.file in runs)
    if not track.responses:
        first = next((f": {row}" for row in rejected), "")
        raise TrecexamError(f"no generated responses to queries of the track{first}", path=track.folder.runs)
    return rejected


@of_citations
def support(track: Assessment, by: By = "run") -> Support:
    """Whether the passages that responses cite support the sentences that cite them, by the grades there are.

    Args:
        by: what the first table has a row for: each "run", "query" (a response) or "citation".

    Raises:
        TrecexamError: the grader grades something else, or there are no responses.
    """
    rejected, tables = refused_runs(track), SupportTables(track)
    return Support(tables, by, rejected, (*rejected_notes(rejected), *track.notes, *tables.notes()))
