"""The leaderboard with a row for all runs together, and with official ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.line.evaluation import leaderboard, why_no_scores
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.measures import check_importance
from trecexam.line.probable_ratings import needing, probable_ratings
from trecexam.scores.evaluate import RubricJudgments
from trecexam.scores.leaderboard import Leaderboard, Score, score
from trecexam.scores.measures import COVER, measure
from trecexam.tables.result import Result
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

#: What the row of all runs together is called, here as in the Rubric workbench.
OVERALL = "_overall_"
OFFICIAL_RANK = "official_rank"


@dataclass(frozen=True)
class OverallLeaderboard(Result):
    """A leaderboard with a row for all runs together, and official ranks.

    Attributes:
        board: the runs.
        overall: Cover or nCover measure -> the score of all pooled passages together, whatever the cutoff.
        official_ranks: run -> its official rank; None where the track has no official leaderboard.
        notes: those of the leaderboard.
    """

    board: Leaderboard
    overall: Mapping[str, Score]
    official_ranks: Mapping[str, float] | None
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """The leaderboard's table with the row `_overall_` on top; `official_rank` is its last column."""
        plain = self.board.table
        scores = [self.overall.get(name) for name in self.board.measures]
        means = [value for each in scores for value in ((each.mean, each.stderr) if each else (None, None))]
        header = plain.header
        answered = (None,) if self.board.has_skipped else ()
        rows: list[tuple[Value, ...]] = [(OVERALL, *answered, *means), *plain.rows]
        if self.official_ranks is not None:
            ranks = self.official_ranks
            header = (*header, OFFICIAL_RANK)
            rows = [(*row, ranks.get(str(row[0]))) for row in rows]
        layout = replace(plain.layout, keys=("run", OFFICIAL_RANK), ranks=(None, *plain.layout.ranks))
        return {"leaderboard": Table(header, tuple(rows), layout=layout)}

    @property
    def facts(self) -> dict[str, Any]:
        """The kind of means, and the scores of all runs together."""
        overall = {name: {"mean": each.mean, "stderr": each.stderr} for name, each in self.overall.items()}
        return self.board.facts | {"overall": overall}


@of_documents
def overall_leaderboard(
    track: Assessment, measures: Sequence[MeasureLike] | None = None
) -> OverallLeaderboard:
    """The leaderboard with Cover and nCover of all pooled passages together.

    No run can have a greater Cover, and other measures have no such value. It is the row `_overall_` of the
    Rubric workbench, with this program's means: over all queries of the bank. A query without a pooled
    passage reaches an item has nCover 0, where the workbench has 1.

    Args:
        measures: None for the track's own.

    Raises:
        TrecexamError, ValueError: as `Track.leaderboard`; or nothing is graded.
    """
    why = why_no_scores(track)
    if why is not None:
        raise TrecexamError(why, path=track.folder.root)
    board = leaderboard(track, measures)
    requested_measures = names_of(measures)
    names = track.measures if requested_measures is None else requested_measures
    check_importance(names, track.bank, track.bank_files)
    covers = [each for each in map(measure, names) if each.NAME in COVER]
    whole = {
        each: type(each)(**{key: value for key, value in each.params.items() if key != "cutoff"})
        for each in covers
    }
    query_ids = track.bank.query_ids
    ratings = probable_ratings(track) if needing(track, covers) else track.ratings()
    evaluate = RubricJudgments(ratings).evaluator(list(whole.values()), query_ids)
    values = evaluate({query_id: sheet.doc_ids for query_id, sheet in track.sheets.items()})
    overall = {str(each): score([values[q][str(whole[each])] for q in query_ids]) for each in covers}
    ranks = track.official_ranks
    display_ranks = ranks and {run: int(rank) if rank == int(rank) else rank for run, rank in ranks.items()}
    return OverallLeaderboard(board, overall, display_ranks, board.notes)
