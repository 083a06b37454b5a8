"""The measures of what responses cite: computed of sentences and their citations, as no qrels have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from converters.records import HumanRating, Response
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
