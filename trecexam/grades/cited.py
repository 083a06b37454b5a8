"""The measures of what responses cite: computed of sentences and their citations, as no qrels have them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from converters.records import HumanRating, Response
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import MISSING, UNPARSED
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


def cited_statements(track: GradedTrack) -> Callable[[str, Response], list[CitedStatement]]:
    """Return a function from a run's response to its sentences with labels; fastest query by query."""
    citations, ratings = track.config.grader.citations, track.overrides.ratings

    @lru_cache(maxsize=1)
    def codes_of(query_id: str) -> Mapping[tuple[str, str], int]:
        sheet = track.sheets[query_id]
        rows, columns = sheet.at(np.arange(sheet.codes.size))
        has_text = np.array([doc_id in track.texts for doc_id in sheet.doc_ids], np.bool_)
        flat = np.where((sheet.flat() == MISSING) & ~has_text[rows], NO_TEXT, sheet.flat())
        for key, rating in (sheet.overrides.cells if sheet.overrides else {}).items():
            flat[sheet.place_of(*key)] = rating
        return {
            (sheet.items[column].text, sheet.doc_ids[row]): code
            for row, column, code in zip(rows.tolist(), columns.tolist(), flat.tolist(), strict=True)
        }

    def of_response(run: str, response: Response) -> list[CitedStatement]:
        query_codes, cited = codes_of(response.query_id), []
        for statement in statements_of(run, response, citations):
            codes = tuple(query_codes[statement.text, doc_id] for doc_id in statement.doc_ids)
            human: tuple[HumanRating | None, ...] = (None,) * len(codes)
            if ratings and codes:
                item_id = statement.item_id
                human = tuple(ratings.get((statement.query_id, doc, item_id)) for doc in statement.doc_ids)
            weights = tuple(WEIGHTS[code] if code >= 0 else 0.0 for code in codes)
            if citations == "all":
                weights += (0.0,) * statement.out_of_range
            elif not weights:
                weights = (0.0,) * min(1, statement.out_of_range)
            cited.append(CitedStatement(statement, codes, human, weights))
        return cited

    return of_response


def responses_by_query(
    track: GradedTrack, runs: Collection[str], query_ids: Sequence[str]
) -> Iterator[tuple[str, list[tuple[str, Response]]]]:
    """Yield each query with the responses of these runs to it."""
    by_query: dict[str, list[tuple[str, Response]]] = {query_id: [] for query_id in query_ids}
    run_names = frozenset(runs)
    for run, responses in track.responses.items():
        for response in responses if run in run_names else ():
            if response.query_id in by_query:
                by_query[response.query_id].append((run, response))
    yield from by_query.items()


def cited_values(track: GradedTrack, runs: Sequence[str], query_ids: Sequence[str]) -> NDArray[np.float64]:
    """Return the measures of `SUPPORT`, shape (runs, queries, 3); 0 where a run has no response."""
    row_of = {run: row for row, run in enumerate(runs)}
    values, cited = np.zeros((len(runs), len(query_ids), len(SUPPORT))), cited_statements(track)
    for column, (_, responses) in enumerate(responses_by_query(track, runs, query_ids)):
        for run, response in responses:
            values[row_of[run], column] = support_scores([each.weights for each in cited(run, response)])
    return values


def count_codes(codes: Collection[int]) -> dict[str, int]:
    """Count missing labels by reason: no text, not graded, not read (or refused, or failed)."""
    return {
        "no_text": sum(code == NO_TEXT for code in codes),
        "ungraded": sum(code == MISSING for code in codes),
        "unread": sum(NO_TEXT < code <= UNPARSED for code in codes),
    }
