"""The grades of runs: how many of their cells have one, and the labels of what responses cite."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from converters.records import HumanRating, Response
from trecexam.files.cache import memoized
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import MISSING, Sheet
from trecexam.inputs.kinds.support import Statement, statements_of
from trecexam.scores.support import SUPPORT, WEIGHTS, support_scores

#: The code of a citation whose passage has no text.
NO_TEXT = -5


class CitedStatement(NamedTuple):
    """A sentence with what counts of the passages that it cites.

    Attributes:
        codes: of its `doc_ids`: 0 none, 1 partial, 2 full support, or a code of `trecexam.grades.sheets`, or
            NO_TEXT.
        human: the label of a person that counts there, None where there is none.
        weights: of its citations that are looked at, as `support_scores` takes them.
    """

    statement: Statement
    codes: tuple[int, ...]
    human: tuple[HumanRating | None, ...]
    weights: tuple[float, ...]


def cited_statements(
    track: GradedTrack, runs: Collection[str], query_ids: Iterable[str]
) -> Iterator[tuple[str, Response, list[CitedStatement]]]:
    """Yield each response of these runs to these queries with its sentences, query by query."""
    by_query: dict[str, list[tuple[str, Response]]] = {query_id: [] for query_id in query_ids}
    run_names = frozenset(runs)
    for run, responses in track.responses.items():
        for response in responses if run in run_names else ():
            if response.query_id in by_query:
                by_query[response.query_id].append((run, response))
    for query_id, of_query in by_query.items():
        codes = _codes(track, track.sheets[query_id]) if of_query else {}
        for run, response in of_query:
            statements = statements_of(run, response, track.config.grader.citations)
            yield run, response, [_cited(track, statement, codes) for statement in statements]


def _cited(
    track: GradedTrack, statement: Statement, codes_of: Mapping[tuple[str, str], int]
) -> CitedStatement:
    codes, ratings = (
        tuple(codes_of[statement.text, doc] for doc in statement.doc_ids),
        track.overrides.ratings,
    )
    human: tuple[HumanRating | None, ...] = (None,) * len(codes)
    if ratings and codes:
        item_id = statement.item_id
        human = tuple(ratings.get((statement.query_id, doc, item_id)) for doc in statement.doc_ids)
    weights = tuple(WEIGHTS[code] if code >= 0 else 0.0 for code in codes)
    if track.config.grader.citations == "all":
        weights += (0.0,) * statement.out_of_range
    elif not weights:
        weights = (0.0,) * min(1, statement.out_of_range)
    return CitedStatement(statement, codes, human, weights)


def _codes(track: GradedTrack, sheet: Sheet) -> Mapping[tuple[str, str], int]:
    """Return the code of each text of a sentence and passage, a person's rating in the grader's place."""
    rows, columns = sheet.at(np.arange(sheet.codes.size))
    has_text = np.array([doc_id in track.texts for doc_id in sheet.doc_ids], np.bool_)
    flat = np.where((sheet.flat() == MISSING) & ~has_text[rows], NO_TEXT, sheet.flat())
    for key, rating in (sheet.overrides.cells if sheet.overrides else {}).items():
        flat[sheet.place_of(*key)] = rating
    return {
        (sheet.items[column].text, sheet.doc_ids[row]): code
        for row, column, code in zip(rows.tolist(), columns.tolist(), flat.tolist(), strict=True)
    }


def cited_values(track: GradedTrack, runs: Sequence[str], query_ids: Sequence[str]) -> NDArray[np.float64]:
    """Return the measures of `SUPPORT`, shape (runs, queries, 3); 0 where a run has no response."""
    row_of, column_of = ({name: at for at, name in enumerate(names)} for names in (runs, query_ids))
    values = np.zeros((len(runs), len(query_ids), len(SUPPORT)))
    for run, response, cited in cited_statements(track, runs, query_ids):
        values[row_of[run], column_of[response.query_id]] = support_scores([each.weights for each in cited])
    return values


@memoized
def _cells_of_runs(track: GradedTrack) -> NDArray[np.int64]:
    """Count each run's cells, or citations: rated ones, all with a text, and those without; (runs, 3)."""
    total = np.zeros((len(track.runs), 3), np.int64)
    if track.asked.citing is not None:
        row_of = {run: row for row, run in enumerate(track.runs)}
        for run, _, cited in cited_statements(track, track.runs, track.bank.query_ids):
            codes = [code for each in cited for code in each.codes]
            no_text = codes.count(NO_TEXT)
            total[row_of[run]] += (sum(code >= 0 for code in codes), len(codes) - no_text, no_text)
        return total
    for query_id, sheet in track.sheets.items():
        shape = len(sheet.doc_ids), len(sheet.items)
        rated, has_text = sheet.rated.reshape(shape), sheet.gradable.reshape(shape)
        counts = [cells.sum(axis=1) for cells in (rated, rated | has_text, ~(rated | has_text))]
        # The last one is for rank -1.
        by_passage = np.vstack([np.stack(counts, axis=1), np.zeros((1, 3), np.int64)])
        total += by_passage[track.pool[query_id].ranks].sum(axis=1)
    return total


def runs_without_score(track: GradedTrack) -> frozenset[str]:
    """Return the runs of which no passage has a grade. Zeros would say that they found nothing good.

    A run that has nothing to grade (it answers no query) has its zeros, unless nothing at all is graded.
    """
    if not track.counts.is_graded:
        return frozenset(track.runs)
    rated, cells, without_text = _cells_of_runs(track).T
    ungraded = list(compress(track.runs, (rated == 0) & (cells + without_text > 0)))
    if not ungraded or track.asked.citing is not None:
        return frozenset(ungraded)
    # Measures may look deeper than the pool: what is graded there is in the pool by another run.
    graded = {
        query_id: {sheet.doc_ids[row] for row in np.unique(sheet.where(sheet.rated)[0]).tolist()}
        for query_id, sheet in track.sheets.items()
    }
    return frozenset(
        run
        for run in ungraded
        if all(ids.isdisjoint(track.runs[run].ranking(query_id)) for query_id, ids in graded.items())
    )


def partly_graded(track: GradedTrack) -> Mapping[str, tuple[int, int]]:
    """Return by run (cells with a grade, cells) where some with a text have none.

    None of qrels that are grades: `without_label` says how many passages have no label.
    """
    if track.grader.known_passages is not None or not track.counts.is_graded:
        return {}
    counts = zip(track.runs, _cells_of_runs(track).tolist(), strict=True)
    return {run: (rated, cells) for run, (rated, cells, _) in counts if rated < cells}
