"""What to judge next: ranks possible judgments by their effect on the ranking of the runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.judge_next.arithmetic.next_judgments import By, Suggestion, ranked
from trecexam.extensions.campaign.judge_next.cited import next_citations
from trecexam.extensions.campaign.judge_next.search import Level, QuerySuggestions, Search
from trecexam.extensions.campaign.judge_next.suggested import NextJudgments, SuggestedJudgment, how_to_judge
from trecexam.line.diagnostics import is_graded
from trecexam.line.loaded_track import asked_of
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike


def _could_change_a_ranking(track: Assessment, *args: object, **kwargs: object) -> bool:
    return track.asked.citing is None and len(track.runs) > 1 and track.counts.cells > 0 and is_graded(track)


@asked_of(_could_change_a_ranking)
def next_judgments(
    track: Assessment,
    measure: MeasureLike | None = None,
    *,
    level: Level | None = None,
    by: By = "change",
    query_ids: Collection[str] = (),
    include_judged: bool = False,
    top: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NextJudgments:
    """The passages or cells whose judgment by a person would change the ranking most, largest effect first.

    Of a grader of support: the citations that a person should label, see `next_citations`.

    Args:
        measure: what runs are ranked by; None for the track's first.
        level: "passage", or "cell" for (passage, item); None for what the measure is computed on.
        by: "change": how far the differences of the runs' means are expected to move; "swaps": how many
            pairs of runs are expected to swap.
        query_ids: only these queries; none for all.
        include_judged: passages with official judgments too.
        top: so many at the most; None for all.
        progress: called after each query with (queries done, queries).

    Raises:
        TrecexamError: `top` is below 1, fewer than two runs, nothing graded, a measure that cannot be
            computed or that does not see what would be judged, an unknown query; or a measure, a level or an
            order of citations.
    """
    if top is not None and top < 1:
        raise TrecexamError(f"top {top}: give 1 or more, or None for all")
    if track.asked.citing is not None:
        if measure is not None or level is not None or by != "change" or include_judged:
            raise TrecexamError(
                f"the grader {track.name} labels citations: leave out measure, level, order and official "
                f"judgments, which apply to passages"
            )
        return next_citations(track, query_ids, top)
    name = None if measure is None else str(measure)
    search = Search(track, name, level, include_judged=include_judged)
    by_query: list[QuerySuggestions] = []
    chosen = search.chosen(query_ids)
    for of_query in search.looks(chosen):
        by_query.append(of_query)
        if progress:
            progress(len(by_query), len(chosen))
    listed = ranked((suggestion for of_query in by_query for suggestion in of_query.suggestions), by)
    result = NextJudgments(
        level=search.level,
        measure=search.measure,
        by=by,
        n_runs=search.n_runs,
        tied=search.tied,
        candidates=sum(of_query.candidates for of_query in by_query),
        judged=sum(of_query.judged for of_query in by_query),
        ungraded=sum(of_query.ungraded for of_query in by_query),
        could_change=len(listed),
        rows=tuple(_with_texts(track, suggestion) for suggestion in listed[:top]),
    )
    return result.noted(*_notes(track, result, include_judged=include_judged))


def _with_texts(track: Assessment, suggestion: Suggestion) -> SuggestedJudgment:
    query_id, doc_id = suggestion.query_id, suggestion.doc_id
    return SuggestedJudgment(
        query_id,
        doc_id,
        None if suggestion.item is None else track.bank.items[query_id][suggestion.item],
        suggestion.now,
        suggestion.runs,
        suggestion.chances,
        suggestion.expected_change,
        suggestion.p_change,
        track.query_texts.get(query_id, ""),
        track.sheets[query_id].text_of(doc_id) or "",
        suggestion.expected_swaps,
        suggestion.source,
    )


def _notes(track: Assessment, result: NextJudgments, *, include_judged: bool) -> Iterator[str]:
    """Notes: what was left out, how many judgments could change the ranking, and how to judge."""
    n_listed, candidates = len(result.rows), plural(result.candidates, result.level)
    if result.judged:
        more = result.level == "passage" and not include_judged
        yield (
            f"{plural(result.judged, result.level)} {_are(result.judged)} left out: judged by a person"
            + ("; --include-judged lists those with official judgments, too" if more else "")
        )
    if result.ungraded:
        yield (
            f"{plural(result.ungraded, result.level)} {_are(result.ungraded)} left out: not graded yet; run "
            f"`trecexam watch`"
        )
    if result.tied:
        yield f"all {result.n_runs} runs are tied on {result.measure}"
    if result.rows:
        first = f"; these are the first {n_listed:,}" if n_listed < result.could_change else ""
        yield f"{result.could_change:,} of {candidates} could change the ranking by {result.measure}{first}"
        yield how_to_judge(track, result.rows[0])
    elif result.candidates:
        yield (
            f"no judgment of the {candidates} would change the ranking: the graders agree on them, or the "
            f"runs rank them alike"
        )
    else:
        yield f"no {result.level} is left to judge"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
