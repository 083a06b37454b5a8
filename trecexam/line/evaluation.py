"""The runs of a loaded track evaluated: on the rubric labels, and on the official judgments."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trecexam.line.loaded import LoadedTrack
from trecexam.line.measures import check_importance
from trecexam.line.official import official_judgments
from trecexam.line.value_cache import ValueCache, Values
from trecexam.scores.evaluate import OfficialJudgments, RubricJudgments, measure
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.leaderboard import leaderboard as leaderboard_of


def rubric_values(
    track: LoadedTrack, measures: Sequence[str] | None = None, *, min_rating: int | None = None
) -> Values:
    """run -> query -> measure -> value on the rubric labels, over all queries of the bank.

    Args:
        measures: None for the track's own.
        min_rating: in place of the track's setting.
    """
    scores = track.config.scores

    def judgments(query_ids: Sequence[str]) -> RubricJudgments:
        return RubricJudgments(
            track.ratings(query_ids),
            rule=scores.label,
            min_rating=scores.min_rating if min_rating is None else min_rating,
            min_answers=scores.min_answers,
        )

    names = track.config.measures() if measures is None else list(measures)
    check_importance(names, track.bank, track.bank_files)
    own = measures is None and min_rating is None
    cache = track.evaluated.own("rubric") if own else track.evaluated.other(tuple(names), min_rating)
    return cache.values(track.runs, track.run_contents, names, track.sheets, judgments)


def official_values(
    track: LoadedTrack, measures: Sequence[str] | None = None, query_ids: Collection[str] | None = None
) -> Values:
    """run -> query -> measure -> value on the official judgments.

    Args:
        measures: None for the track's own.
        query_ids: only those of these queries that are judged; None for all judged queries.

    Raises:
        TrecexamError: the track has no official judgments.
    """
    official = official_judgments(track)
    judged = sorted(official.labels)
    queries = [q for q in judged if query_ids is None or q in query_ids]
    names = track.config.official_measures() if measures is None else list(measures)
    part = "official, all" if query_ids is None else "official"
    cache = track.evaluated.own(part) if measures is None else ValueCache()

    def judgments(query_ids: Sequence[str]) -> OfficialJudgments:
        kept = set(query_ids)
        return OfficialJudgments(qrel for qrel in official.rows if qrel.query_id in kept)

    tokens = dict.fromkeys(queries, track.digests.get(official.source))
    return cache.values(track.runs, track.run_contents, names, tokens, judgments)


def leaderboard(
    track: LoadedTrack, measures: Sequence[str] | None = None, *, official: bool = False
) -> Leaderboard:
    """The leaderboard on the rubric labels, or on the official judgments.

    Means are over all queries of the bank (official: of the judgments), as trec_eval -c.
    """
    values = official_values(track, measures) if official else rubric_values(track, measures)
    default = track.config.official_measures() if official else track.config.measures()
    names = [str(measure(name)) for name in (default if measures is None else measures)]
    query_ids: Sequence[str] = sorted(official_judgments(track).labels) if official else track.bank.query_ids
    answered = {name: [q for q in query_ids if q in run] for name, run in track.runs.items()}
    return leaderboard_of(values, names, query_ids, answered, average=track.config.scores.average)
