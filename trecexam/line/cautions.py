"""Lines on how to read values of measures: which depend on the pool, and from which label on they count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.records import Qrel
from trecexam.config import TrackConfig
from trecexam.files.cache import memoized
from trecexam.line.measure_names import MeasureLike
from trecexam.line.relevance import official_measures, relevance_thresholds
from trecexam.line.sheets import Sheet
from trecexam.scores.encoder_likeness import MAX_RANKS, MIN_RUNS, agreement, runs_like_encoder
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.measures import COVER, DIVERSITY, at_min_rating, depends_on_pool, measure
from trecexam.scores.values import TIE_DECIMALS
from trecexam.tables.notes import CHANGES, STANDING, Note
from trecexam.tables.text import number, plural, shorten_list

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def pool_cautions(track: Assessment, measures: Iterable[MeasureLike]) -> tuple[str, ...]:
    """A line on measures that depend on the pool, where the pool is of the track's runs alone.

    With `pool_judged` it is not: it holds the judged passages, too. The line is then about the queries
    without official judgments.
    """
    names = _names(each for each in map(measure, measures) if depends_on_pool(each))
    query_ids, alone = track.bank.query_ids, track.pooled_of_runs_alone
    pool_judged = track.config.track.pool_judged
    if not names or not alone or not track.runs:
        return ()
    where = f" for {len(alone):,} of {plural(len(query_ids), 'query')}" if pool_judged else ""
    if pool_judged:
        helps = "`pool_judged` in [track] adds nothing there, for lack of official judgments"
    elif track.official is None:
        helps = "report how many runs were pooled, and to which depth"
    else:
        helps = "`pool_judged = true` in [track] adds the passages of official judgments"
    line = (
        f"values of {', '.join(names)} depend on this pool of {plural(len(track.runs), 'run')}{where}; "
        f"do not compare them with values from other pools; {helps}"
    )
    return (Note(line, STANDING),)


def depth_cautions(track: Assessment, measures: Iterable[MeasureLike]) -> tuple[str, ...]:
    """A line on measures whose cutoff is beyond the pool's depth, where runs have passages there.

    Args:
        measures: the track's own are left alone.
    """
    track_measures = {*_names(map(measure, (*track.measures, *track.columns)))}
    deeper = [each for each in map(measure, measures) if each.params.get("cutoff", 0) > track.depth]
    names = [name for name in _names(deeper) if name not in track_measures]
    # Of qrels that are grades all passages that they name are graded.
    if not names or track.grader.known_passages is not None:
        return ()
    if not any(run.count(query) > track.depth for run in track.runs.values() for query in run.query_ids):
        return ()
    caution = f"deeper than the pool (depth {track.depth}), outside which nothing is relevant"
    return (Note(f"{caution}: {', '.join(names)}", CHANGES),)


def telling_cautions(track: Assessment, board: Leaderboard, *, official: bool = False) -> tuple[str, ...]:
    """Say that no run has as many ranks as P looks at, or that all runs have an equal value; what to type.

    Generated responses have no ranks.
    """
    measures = [measure(name) for name in board.measures]
    means = [row.scores[0].mean for row in board.rows if measures and row.scores[0].exists]
    if not means:
        return ()
    ranked = [track.runs[row.run] for row in board.rows if row.run not in track.responses]
    precision = next((each for each in measures if each.NAME == "P"), None)
    cutoff = 0 if precision is None else int(precision.params.get("cutoff", 0))
    parts, n_ranks = [], 0
    if ranked and not any(run.count(query) >= cutoff for run in ranked for query in run.query_ids):
        n_ranks = max((run.count(query) for run in ranked for query in run.query_ids), default=0)
        share = number(n_ranks / cutoff)
        parts.append(f"no run has more than {plural(n_ranks, 'rank')}, so {precision} is at most {share}")
    other = precision(cutoff=n_ranks) if precision is not None and n_ranks else None
    if len(means) > 1 and len({round(mean, TIE_DECIMALS) for mean in means}) == 1:
        parts.append(f"all {len(means):,} runs have the same {board.measures[0]}")
        is_ndcg = measures[0].NAME == "nDCG"
        depth = n_ranks or measures[0].params.get("cutoff", 10)
        other = measure(f"nDCG@{depth}") if track.of_documents and not is_ndcg else None
        rankings = [{query: run.ranking(query, depth) for query in run.query_ids} for run in ranked]
        if len(ranked) == len(means) and all(each == rankings[0] for each in rankings):
            parts[-1] += f", as they have the same first {plural(depth, 'rank')}"
            other = None
    if not parts:
        return ()
    grader = f"{track.name}:" if track.folder.grader and not official else ""
    see = "" if other is None else f": ask for {grader}{other}"
    return (Note(f"{'; '.join(parts)}{see}", CHANGES),)


def skipped_cautions(track: Assessment, query_ids: Sequence[str], of: str = "bank") -> tuple[str, ...]:
    """Name the queries that no run answers, where means are over all queries.

    Args:
        query_ids: those that means are over; `of` says whose they are.
    """
    if track.config.scores.average != "all" or not track.runs:
        return ()
    answered = {query_id for run in track.runs.values() for query_id in run.query_ids}
    skipped = [query_id for query_id in query_ids if query_id not in answered]
    if not skipped:
        return ()
    return (
        f"in no run, and so 0: {len(skipped):,} of the {plural(len(query_ids), 'query')} of the {of}: "
        f"{shorten_list(skipped, quote='')}",
    )


def answered_cautions(board: Leaderboard) -> tuple[str, ...]:
    """Name the runs that skip queries, and say what these count.

    Queries that no run answers are left to `skipped_cautions`.
    """
    skipping = sum(row.n_answered < board.n_queries for row in board.rows)
    if board.average != "answered":
        return skipping_cautions({row.run: row.n_answered for row in board.rows}, board.n_queries)
    if not skipping:
        return ()
    return (
        "means are over the queries that each run answered (`average` in [scores]), which flatters runs that "
        f"skip some; {skipping:,} of {plural(len(board.rows), 'run')} "
        f"{'skips' if skipping == 1 else 'skip'} queries",
    )


def skipping_cautions(answered: Mapping[str, int], n_queries: int) -> tuple[str, ...]:
    """Name the runs that answer fewer queries than others do, where means are over all queries.

    Args:
        answered: run -> how many of the `n_queries` queries it answers.
    """
    most = max(answered.values(), default=0)
    fewer = sorted((n, run) for run, n in answered.items() if n < most)
    if not fewer:
        return ()
    n, run = fewer[0]
    queries = plural(n_queries, "query")
    if len(fewer) == 1:
        return (f"{run} answers {n:,} of {queries}; the others count as 0",)
    listed = shorten_list([f"{run} {n:,}" for n, run in fewer], quote="")
    return (f"{len(fewer):,} runs answer fewer than {queries}, and the others count as 0: {listed}",)


def rating_cautions(config: TrackConfig, measures: Iterable[MeasureLike]) -> tuple[str, ...]:
    """A line on measures on rubric ratings that count from their default rating on, and not from min_rating.

    Labels that count items have no such threshold; Cover has one all the same, 4 by default.

    Args:
        config: on the scale of the grader.
        measures: as they were given: one whose `rel` is written is left alone.
    """
    threshold, counts = config.scores.min_rating, config.scores.label == "count"
    at_default = [each for each in _at_default(measures) if not counts or each.NAME in COVER]
    return tuple(
        _line(
            [each for each in at_default if each["rel"] == default],
            f"ratings from {default} on; this track's threshold is {threshold}",
            threshold,
        )
        for default in sorted({each["rel"] for each in at_default} - {threshold})
    )


def judgment_cautions(track: Assessment, measures: Sequence[MeasureLike] | None = None) -> tuple[str, ...]:
    """A line on official measures that count from 1 on, where `min_relevant` is another or was never set.

    Where it was not set, it is said of graded judgments alone.

    Args:
        measures: as they were given; None for the track's own.
    """
    scores = track.config.scores
    at_default = list(_at_default(official_measures(track) if measures is None else measures))
    if not at_default:
        return ()
    at = relevance_thresholds(track)
    if at.same_scale and at.min_relevant > 1:
        what = (
            f"judgments from 1 on; on this scale, labels' and judgments', the threshold is {at.min_relevant}"
        )
        return (_line(at_default, what, at.min_relevant),)
    if scores.min_relevant > 1:
        what = f"judgments from 1 on; this track's `min_relevant` is {scores.min_relevant}"
        return (_line(at_default, what, scores.min_relevant),)
    best = _best(track.official or ())
    if best <= 1 or "min_relevant" in scores.model_fields_set:
        return ()
    line = (
        f"{_count(at_default)} judgments from 1 on, and labels go up to {best}: set `min_relevant` in "
        "[scores] to the label from which a passage is relevant, 2 in TREC DL"
    )
    return (Note(line, CHANGES),)


def _at_default(measures: Iterable[MeasureLike]) -> Iterator[Measure]:
    """Those that take a `rel` and were given none. Subtopics are made with the threshold: they have none."""
    for each in map(measure, measures):
        rel = each.SUPPORTED_PARAMS.get("rel")
        if rel and isinstance(rel.default, int) and "rel" not in each.params and each.NAME not in DIVERSITY:
            yield each


def _line(measures: Sequence[Measure], what: str, threshold: int) -> Note:
    named = ", ".join(_names(at_min_rating(each, threshold, counts=False) or each for each in measures))
    return Note(f"{_count(measures)} {what}: {named}", CHANGES)


def _count(measures: Sequence[Measure]) -> str:
    names = _names(measures)
    return f"{', '.join(names)} {'counts' if len(names) == 1 else 'count'}"


def _names(measures: Iterable[Measure]) -> list[str]:
    return list(dict.fromkeys(map(str, measures)))


def _best(rows: Iterable[Qrel]) -> int:
    return max((row.relevance for row in rows), default=0)


def encoder_cautions(track: Assessment) -> tuple[str, ...]:
    """A line that names the runs nearer to the grader's encoder than chance allows, see `runs_like_encoder`.

    A passage's cosine is its highest over the query's items, as its label is its best rating.
    """
    if track.grader.cosines is None or len(track.runs) < MIN_RUNS:
        return ()
    runs = _runs_like_encoder(track)
    if not runs:
        return ()
    rank, their, them = ("ranks", "its", "it") if len(runs) == 1 else ("rank", "their", "them")
    line = (
        f"{plural(len(runs), 'run')} {rank} passages much as the grader's encoder does "
        f"({shorten_list(runs, quote='')}): {their} scores are likely too high; leave {them} out, "
        "or use another grader"
    )
    return (Note(line, CHANGES),)


@memoized
def _runs_like_encoder(track: Assessment) -> tuple[str, ...]:
    names = list(track.runs)
    return tuple(names[row] for row in runs_like_encoder(encoder_agreements(track)))


def encoder_agreements(track: Assessment) -> NDArray[np.float64]:
    """How far each run ranks as the grader's encoder does, shape (runs, queries): see `agreement`."""
    agreements = np.full((len(track.runs), len(track.sheets)), np.nan)
    for column, (query_id, sheet) in enumerate(track.sheets.items()):
        ranks = track.pool[query_id].ranks[:, :MAX_RANKS]
        if ranks.shape[1] < 2:
            continue
        if highest_cosines not in sheet.memo:
            sheet.memo[highest_cosines] = highest_cosines(track, sheet)
        highest: NDArray[np.float64] = sheet.memo[highest_cosines]
        # The last one is for rank -1.
        agreements[:, column] = agreement(np.append(highest, np.nan)[ranks])
    return agreements


def highest_cosines(track: Assessment, sheet: Sheet) -> NDArray[np.float64]:
    """Each passage's highest cosine, NaN where it has none."""
    cosines = track.grades.cosines(sheet)
    if cosines is None or not cosines.shape[1]:
        return np.full(len(sheet.doc_ids), np.nan)
    highest: NDArray[np.float64] = np.fmax.reduce(cosines, axis=1)
    return highest
