"""From a loaded track to what is learned from: passages with a text, their features and their judgments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.features import query_features
from trecexam.extensions.learn.arithmetic.learning import QueryPassages
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.encoding import Encoded, TrackVectors
from trecexam.extensions.learn.language import odd_languages
from trecexam.extensions.learn.ratings import cell_ratings, mean_ratings
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official
from trecexam.tables.text import plural, shorten_list

#: So many passages of each query are looked at for their language.
_SAMPLE = 5


class Gathered(NamedTuple):
    """The queries that have a text and pooled passages, in bank order.

    Attributes:
        n_encoded: how many passages were encoded.
        unusable: for how many ratings numbers are stored that can be no probabilities.
    """

    queries: tuple[PooledQueryToLearn, ...]
    n_encoded: int
    unusable: int


def gather(
    track: Assessment,
    vectors: TrackVectors,
    official: Official | None,
    *,
    grades: bool = True,
    progress: Encoded | None = None,
) -> Gathered:
    """What a track has to learn from.

    Args:
        grades: whether the grader's ratings, where there are any, are features too; expected ones where it
            gave probabilities.

    Raises:
        TrecexamError: nothing is pooled; no pooled passage has a text, or no query that has such ones.
    """
    texts = {
        query_id: [
            (at, doc, track.texts[doc]) for at, doc in enumerate(pooled.doc_ids) if _has_text(track, doc)
        ]
        for query_id, pooled in track.pool.items()
        if _asks(track, query_id)
    }
    if not any(pooled.doc_ids for pooled in track.pool.values()):
        raise TrecexamError(
            "the pool is empty, so there is nothing to learn of: drop runs first, or set `pool_judged` in "
            "[track]",
            path=track.folder.runs,
        )
    if not any(texts.values()):
        raise TrecexamError(
            "no pooled passage has a text to learn from, or its query has none: name them with `passages` "
            "and `queries` in [track]",
            path=track.folder.root,
        )
    asked = {query_id: track.query_texts[query_id] for query_id in texts}
    items = {query_id: [item.text for item in track.bank.items.get(query_id, ())] for query_id in texts}
    passages: dict[str, list[str]] = {}
    for query_id, rows in texts.items():
        passages.setdefault(asked[query_id], []).extend(text for _, _, text in rows)
    n_encoded = vectors.encode(
        passages, sorted({text for of_query in items.values() for text in of_query}), progress
    )
    unparsed = track.config.scores.unparsed
    ratings = {query_id: cell_ratings(track.sheets[query_id], track.grades, unparsed) for query_id in texts}
    graded = grades and any((of_query >= 0).any() for of_query, _ in ratings.values())
    queries = []
    for query_id, rows in texts.items():
        pooled = track.pool[query_id]
        at = np.array([row for row, _, _ in rows], np.intp)
        of_texts = [text for _, _, text in rows]
        judged = {} if official is None else official.judged.get(query_id, {})
        judgments = np.array([judged.get(doc, np.nan) for doc in pooled.doc_ids], np.float64)
        in_pool = set(pooled.doc_ids)
        rated, _ = ratings[query_id]
        features = (
            query_features(
                vectors.of([asked[query_id]])[0],
                vectors.of(items[query_id]),
                vectors.of(of_texts),
                vectors.max_sims(asked[query_id], of_texts),
                [len(text) for text in of_texts],
                rated[at] if graded else None,
            )
            if rows
            else np.empty((0, 0))
        )
        queries.append(
            PooledQueryToLearn(
                QueryPassages(
                    query_id,
                    tuple(doc for _, doc, _ in rows),
                    vectors.of(of_texts),
                    features,
                    judgments[at],
                ),
                pooled.doc_ids,
                at,
                judgments,
                pooled.ranks,
                np.array([label for doc, label in judged.items() if doc not in in_pool], np.float64),
                mean_ratings(rated),
            )
        )
    return Gathered(
        tuple(query for query in queries if len(query.rows)),
        n_encoded,
        sum(unusable for _, unusable in ratings.values()) if grades else 0,
    )


def odd_judgments(track: Assessment, official: Official) -> Iterator[str]:
    """What of the judgments is not learned from, a line each."""
    yield from official.warnings()
    outside = [
        doc
        for query_id, judged in official.judged.items()
        for doc in judged
        if query_id not in track.pool or doc not in track.sheets[query_id].row_of
    ]
    if outside:
        yield (
            f"{plural(len(outside), 'judged passage')} ({shorten_list(outside, 2, dots=True)}) not in the "
            "pool: not learned from; `pool_judged = true` in [track] pools those with a text"
        )
    without_text = [
        doc
        for query_id, judged in official.judged.items()
        for doc in judged
        if query_id in track.pool and doc in track.sheets[query_id].row_of and not _has_text(track, doc)
    ]
    if without_text:
        yield (
            f"{plural(len(without_text), 'judged passage')} ({shorten_list(without_text, 2, dots=True)}) "
            "without a text: the judgment counts, and nothing is learned from it"
        )


def odd_texts(track: Assessment, queries: Sequence[PooledQueryToLearn], model: str) -> Iterator[str]:
    """What of the pool cannot be learned of, or hardly by this encoder, a line each."""
    unknown = sum(int(np.isnan(np.delete(query.judgments, query.rows)).sum()) for query in queries)
    if unknown:
        yield f"{plural(unknown, 'unjudged passage')} without a text: no gain, and no label"
    mute = [query_id for query_id in track.pool if not _asks(track, query_id)]
    if mute:
        yield (
            f"{plural(len(mute), 'query')} ({shorten_list(mute, 3, dots=True)}) without a text: left out, "
            "but for the official lines"
        )
    sample = [track.texts[doc] for query in queries for doc in query.passages.doc_ids[:_SAMPLE]]
    yield from odd_languages(sample, model)


def _asks(track: Assessment, query_id: str) -> bool:
    return bool(track.query_texts.get(query_id, "").strip())


def _has_text(track: Assessment, doc_id: str) -> bool:
    return bool(track.texts.get(doc_id, "").strip())
