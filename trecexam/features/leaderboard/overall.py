"""The leaderboard with what all runs reach together, and with the official ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.features.leaderboard.tables import leaderboard_table
from trecexam.line.evaluation import leaderboard
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.measures import check_importance
from trecexam.line.probable_ratings import needing, probable_ratings
from trecexam.scores.evaluate import RubricJudgments
from trecexam.scores.leaderboard import Leaderboard, Score, score
from trecexam.scores.measures import COVER, measure
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

#: What the row of all runs together is called, here as in the Rubric workbench.
OVERALL = "_overall_"
OFFICIAL_RANK = "official_rank"


@dataclass(frozen=True)
class OverallLeaderboard:
    """A leaderboard, and what stands beside it.

    Attributes:
        board: the runs.
        overall: Cover or nCover measure -> the score of all pooled passages together, whatever the cutoff.
        official_ranks: run -> its official rank; None where the track has no official leaderboard.
    """

    board: Leaderboard
    overall: Mapping[str, Score]
    official_ranks: Mapping[str, float] | None

    def table(self) -> Table:
        """The leaderboard's table with the row `_overall_` on top; `official_rank` is its last column."""
        plain = leaderboard_table(self.board)
        scores = [self.overall.get(name) for name in self.board.measures]
        means = [value for each in scores for value in ((each.mean, each.stderr) if each else (None, None))]
        rows: list[tuple[Value, ...]] = [(OVERALL, *means), *plain.rows]
        if self.official_ranks is None:
            return Table(plain.header, tuple(rows))
        ranks = self.official_ranks
        return Table((*plain.header, OFFICIAL_RANK), tuple((*row, ranks.get(str(row[0]))) for row in rows))

    def as_json(self, board: dict[str, Any]) -> dict[str, Any]:
        """The JSON of the leaderboard with `overall`, and with `official_rank` in each run."""
        overall = {name: {"mean": each.mean, "stderr": each.stderr} for name, each in self.overall.items()}
        runs = board["runs"]
        if self.official_ranks is not None:
            runs = [{**row, OFFICIAL_RANK: self.official_ranks.get(row["run"])} for row in runs]
        return {**board, "overall": overall, "runs": runs}


@of_documents
def overall_leaderboard(
    track: Assessment, measures: Sequence[MeasureLike] | None = None
) -> OverallLeaderboard:
    """The leaderboard, with the Cover and nCover that all pooled passages have together.

    No run can have a greater Cover, and other measures have no such value. It is the row `_overall_` of the
    Rubric workbench, with this program's means: over all queries of the bank. A query of which no pooled
    passage reaches an item has nCover 0, where the workbench has 1.

    Args:
        measures: None for the track's own.

    Raises:
        TrecexamError, ValueError: as `Track.leaderboard`.
    """
    board = leaderboard(track, measures)
    given = names_of(measures)
    names = track.measures if given is None else given
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
    shown = ranks and {run: int(rank) if rank == int(rank) else rank for run, rank in ranks.items()}
    return OverallLeaderboard(board, overall, shown)
