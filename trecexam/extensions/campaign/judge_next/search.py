"""Searches for judgments that would change the ranking, given ratings, runs and existing judgments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from converters.records import judgment
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.campaign.judge_next.arithmetic.chances import cell_chances, passage_chances
from trecexam.extensions.campaign.judge_next.arithmetic.next_judgments import Suggestion, suggestions
from trecexam.extensions.campaign.judge_next.arithmetic.what_if import Board, PossibleJudgments, Scoring
from trecexam.extensions.campaign.judge_next.grader_probabilities import grader_probabilities
from trecexam.line.diagnostics import nothing_graded
from trecexam.line.evaluation import leaderboard
from trecexam.line.track_graders import check_names
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.support import SUPPORT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trecexam.extensions.campaign.judge_next.arithmetic.chances import Opinions
    from trecexam.line.assessment import Assessment
    from trecexam.scores.ratings import QueryRatings

Level = Literal["passage", "cell"]


@dataclass(frozen=True)
class QuerySuggestions:
    """Suggestions for one query; `candidates`, `judged` and `ungraded` as in `NextJudgments`."""

    query_id: str
    suggestions: tuple[Suggestion, ...]
    candidates: int
    judged: int
    ungraded: int


class Search:
    """Searches query by query, because a query can take seconds.

    Attributes:
        level, measure, n_runs, tied: as in `NextJudgments`.

    Args:
        track: a loaded one.
        measure, level, include_judged: as in `next_judgments`.

    Raises:
        TrecexamError: as `next_judgments`.
    """

    def __init__(
        self, track: Assessment, measure: str | None, level: Level | None, *, include_judged: bool = False
    ) -> None:
        self._track = track
        self._scoring = _scoring(track, measure, level)
        on_items = self._scoring.on_items
        self.level: Level = level or ("cell" if on_items else "passage")
        self.measure = str(self._scoring.measure)
        if self.level == "passage" and on_items:
            raise TrecexamError(
                f"{self.measure} is computed from the items' ratings, and a rating of a whole passage would "
                f"not change it: use --level cell, or a measure on labels (P, nDCG, AP)"
            )
        self._queries = {q.query_id: q for q in track.ratings()}
        _check(track, list(self._queries.values()))
        self._board = _board(track, self.measure)
        means = self._board.means.round(12)
        self.n_runs, self.tied = len(means), bool((means == means[0]).all())
        self._judged = _judged(track, officially=not include_judged) if self.level == "passage" else {}

    def chosen(self, query_ids: Collection[str] = ()) -> list[str]:
        """These queries, or all, in the bank's order.

        Raises:
            TrecexamError: one is not in the bank.
        """
        for query_id in query_ids:
            if query_id not in self._queries:
                hint = did_you_mean(query_id, self._queries, before="; ")
                root = self._track.folder.root
                raise TrecexamError(f"no query '{query_id}' in the bank{hint}", path=root)
        return [query_id for query_id in self._queries if not query_ids or query_id in query_ids]

    def looks(self, query_ids: Sequence[str]) -> Iterator[QuerySuggestions]:
        """The suggestions for each of these queries."""
        track, level = self._track, self.level
        queries = [self._queries[query_id] for query_id in query_ids]
        for q, opinions in zip(queries, grader_probabilities(track, queries), strict=True):
            possible, judged = _possible_judgments(
                track, q, opinions, level, self._judged.get(q.query_id, ())
            )
            ungraded = int((~q.rated if level == "passage" else q.ratings < 0).sum())
            of_query = suggestions(q, possible, self._board, self._scoring, track.config.track.depth)
            yield QuerySuggestions(
                q.query_id, tuple(of_query), int(possible.included.sum()), judged, ungraded
            )


def _scoring(track: Assessment, name: str | None, level: Level | None) -> Scoring:
    """The score that ranks runs: this measure, or the track's first that a judgment of this level changes."""
    scores = track.config.scores
    try:
        names = track.measures if name is None else (name,)
        check_names(track.folder, names)
        if measure(names[0]).NAME in SUPPORT:
            raise TrecexamError(
                f"{names[0]} is computed from citations, and no judgment of a passage changes it: use a "
                f"measure on labels of passages, or --grader support"
            )
        if level == "passage":
            on_labels = (each for each in names if measure(each).NAME not in COVER | DIVERSITY)
            names = (next(on_labels, names[0]),)
        if measure(names[0]).NAME == "ECover":
            raise ValueError(
                f"{names[0]} uses probabilities, and a judgment is tried out as a certain "
                f"rating: use Cover instead"
            )
        return Scoring(measure(names[0]), scores.label, scores.min_rating, scores.min_answers)
    except ValueError as error:
        raise TrecexamError(str(error)) from None


def _check(track: Assessment, queries: Sequence[QueryRatings]) -> None:
    runs, root = track.runs, track.folder.root
    if len(runs) < 2:
        n_runs = f"only one run, '{next(iter(runs))}'" if runs else "no runs yet"
        raise TrecexamError(
            f"{n_runs}, so there is no ranking to change: drop {'another' if runs else 'two or more'} into "
            f"{track.folder.runs}",
            path=root,
        )
    if not any(q.rated.any() for q in queries):
        raise TrecexamError(nothing_graded(track), path=root)


def _board(track: Assessment, measure: str) -> Board:
    import numpy as np

    runs, query_ids = track.runs, track.bank.query_ids
    rows = {row.run: row for row in leaderboard(track, [measure]).rows}
    answered_only = track.config.scores.average == "answered"
    return Board(
        np.array([rows[name].scores[0].mean for name in runs]),
        {query_id: [run.ranking(query_id) for run in runs.values()] for query_id in query_ids},
        {
            query_id: np.array(
                [
                    0.0 if answered_only and query_id not in run else 1 / rows[name].n_queries
                    for name, run in runs.items()
                ]
            )
            for query_id in query_ids
        },
    )


def _judged(track: Assessment, *, officially: bool) -> dict[str, set[str]]:
    """query_id -> the passages judged on the scale of [judging], or also officially."""
    judged = {query_id: set(people.passages) for query_id, people in track.judgments.queries.items()}
    for row in (track.official if officially else None) or ():
        if judgment(row.relevance) is not None:
            judged.setdefault(row.query_id, set()).add(row.doc_id)
    return judged


def _possible_judgments(
    track: Assessment,
    q: QueryRatings,
    opinions: Opinions,
    level: Level,
    elsewhere: Collection[str],
) -> tuple[PossibleJudgments, int]:
    """The possible judgments of a query, and how many passages or cells a person judged already."""
    alike, first = _equal_texts(track, q)
    if level == "passage":
        judged = _judged_passages(q, elsewhere, alike)
        rated = (q.ratings >= 0).any(axis=1) & first
        chances = passage_chances(q, opinions, track.config.scores.min_answers)
    else:
        judged = _judged_cells(track, q)
        rated = (q.ratings >= 0) & first[:, None]
        chances = cell_chances(q, opinions)
    return PossibleJudgments(chances, rated & ~judged, alike), int((rated & judged).sum())


def _equal_texts(track: Assessment, q: QueryRatings) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """An index for each passage's text, and which passages are the first with their text."""
    import numpy as np

    numbers: dict[str, int] = {}
    # Passages without a text are never equal to others.
    texts = [track.sheets[q.query_id].text_of(doc_id) or f"\0{doc_id}" for doc_id in q.doc_ids]
    alike = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    first = np.zeros(len(alike), np.bool_)
    first[np.unique(alike, return_index=True)[1]] = True
    return alike, first


def _judged_passages(
    q: QueryRatings, elsewhere: Collection[str], alike: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which passages a person judged as a whole, or one with the same text."""
    import numpy as np

    judged = np.array([doc_id in q.human or doc_id in elsewhere for doc_id in q.doc_ids], np.bool_)
    return np.isin(alike, alike[judged])


def _judged_cells(track: Assessment, q: QueryRatings) -> NDArray[np.bool_]:
    """Which cells a person rated, shape (n_docs, n_items)."""
    import numpy as np

    human = track.overrides.queries.get(q.query_id)
    cells = human.cells if human else {}
    items = track.bank.items[q.query_id]
    judged = np.array([[(doc_id, item.item_id) in cells for item in items] for doc_id in q.doc_ids], np.bool_)
    return judged.reshape(q.ratings.shape)
