"""What to judge next: gathers ratings, runs and what is judged already, and ranks what a person could say."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.features.judge_next.arithmetic.next_judgments import By, Suggestion, ranked
from trecexam.features.judge_next.search import Level, QuerySuggestions, Search
from trecexam.features.judge_next.shown import beginning
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike


@dataclass(frozen=True)
class SuggestionWithTexts:
    """A judgment that could change the ranking, with the texts that it is about.

    `item` is None, and the passage as a whole is judged, at the level "passage".
    """

    suggestion: Suggestion
    query_text: str
    text: str
    item: Item | None


@dataclass(frozen=True)
class NextJudgments:
    """What to judge next.

    Attributes:
        level: "passage" or "cell".
        measure: what the ranking is by.
        by: what the list is ordered by.
        n_runs: runs on the leaderboard; all `tied` or not.
        candidates: passages or cells that were looked at.
        judged: those left out since a person judged them already.
        ungraded: those that have no grade, of which nothing can be said.
        rows: the judgments that could change something, the first to make first.
    """

    level: Level
    measure: str
    by: By
    n_runs: int
    tied: bool
    candidates: int
    judged: int
    ungraded: int
    rows: tuple[SuggestionWithTexts, ...]

    def table(self, top: int | None = None) -> Table:
        """The first `top` rows (None: all); texts are cut and without control characters."""
        cell = self.level == "cell"
        header = (
            *("place", "query_id", "doc_id"),
            *(("item_id", "rating") if cell else ("label",)),
            *("expected_swaps", "expected_change", "p_change", "from", "runs"),
            *(("item_text",) if cell else ()),
            "text",
        )
        rows = []
        for place, row in enumerate(self.rows[:top], 1):
            suggestion = row.suggestion
            rows.append(
                (
                    *(place, suggestion.query_id, suggestion.doc_id),
                    *((row.item.item_id,) if row.item else ()),
                    *(
                        suggestion.now,
                        suggestion.expected_swaps,
                        suggestion.expected_change,
                        suggestion.p_change,
                        suggestion.source,
                        suggestion.runs,
                    ),
                    *((beginning(row.item.text),) if row.item else ()),
                    beginning(row.text),
                )
            )
        return Table(header, tuple(rows))

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """The first `top` rows (None: all) with whole texts and the probability of each rating."""
        judgments = []
        for place, row in enumerate(self.rows[:top], 1):
            suggestion = row.suggestion
            judgments.append(
                {
                    "place": place,
                    "query_id": suggestion.query_id,
                    "doc_id": suggestion.doc_id,
                    **(
                        {"item_id": row.item.item_id, "rating": suggestion.now}
                        if row.item
                        else {"label": suggestion.now}
                    ),
                    "expected_swaps": suggestion.expected_swaps,
                    "expected_change": suggestion.expected_change,
                    "p_change": suggestion.p_change,
                    "from": suggestion.source,
                    "runs": suggestion.runs,
                    "probabilities": {str(rating): p for rating, p in enumerate(suggestion.chances) if p > 0},
                    "query_text": row.query_text,
                    **({"item_text": row.item.text} if row.item else {}),
                    "text": row.text,
                }
            )
        return {
            "level": self.level,
            "measure": self.measure,
            "by": self.by,
            "n_runs": self.n_runs,
            "candidates": self.candidates,
            "judged": self.judged,
            "ungraded": self.ungraded,
            "could_change": len(self.rows),
            "judgments": judgments,
        }


def next_judgments(
    track: Assessment,
    measure: MeasureLike | None = None,
    *,
    level: Level | None = None,
    by: By = "change",
    query_ids: Collection[str] = (),
    include_judged: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> NextJudgments:
    """The passages or cells whose judgment by a person would change the ranking most, best first.

    Args:
        measure: what runs are ranked by; None for the track's first.
        level: "passage", or "cell" for (passage, item); None for what the measure is computed on.
        by: "change": how far the differences of the runs' means are expected to move; "swaps": how many
            pairs of runs are expected to swap.
        query_ids: only these queries; none for all.
        include_judged: passages with official judgments too.
        progress: called after each query with (queries done, queries).

    Raises:
        TrecexamError: fewer than two runs, nothing graded, a measure that cannot be computed or that does
            not see what would be judged, an unknown query.
    """
    name = None if measure is None else str(measure)
    search = Search(track, name, level, include_judged=include_judged)
    by_query: list[QuerySuggestions] = []
    chosen = search.chosen(query_ids)
    for of_query in search.looks(chosen):
        by_query.append(of_query)
        if progress:
            progress(len(by_query), len(chosen))
    unordered = (suggestion for of_query in by_query for suggestion in of_query.suggestions)
    return NextJudgments(
        level=search.level,
        measure=search.measure,
        by=by,
        n_runs=search.n_runs,
        tied=search.tied,
        candidates=sum(of_query.candidates for of_query in by_query),
        judged=sum(of_query.judged for of_query in by_query),
        ungraded=sum(of_query.ungraded for of_query in by_query),
        rows=tuple(_with_texts(track, suggestion) for suggestion in ranked(unordered, by)),
    )


def _with_texts(track: Assessment, suggestion: Suggestion) -> SuggestionWithTexts:
    items = track.bank.items[suggestion.query_id]
    return SuggestionWithTexts(
        suggestion,
        track.query_texts.get(suggestion.query_id, ""),
        track.sheets[suggestion.query_id].text_of(suggestion.doc_id) or "",
        None if suggestion.item is None else items[suggestion.item],
    )
