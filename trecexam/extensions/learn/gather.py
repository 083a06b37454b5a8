"""Gathers the input of learning from a track: pooled passages, features and judgments."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.features import Lexical, query_features
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages, Vectors
from trecexam.extensions.learn.encoding import encode
from trecexam.features.fill.records import Encoded
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import Official
from trecexam.inputs.pool import Texts, no_passages
from trecexam.results.notes import CHANGES, Note
from trecexam.results.text import plural, shorten_list
from trecexam.scores.ratings import MAX_RATING

#: Passages of other queries that mean what no run retrieves, of each query, at most.
BACKGROUND = 20


def gather(
    track: GradedTrack, encoder: EmbeddingGrader, official: Official | None, progress: Encoded | None = None
) -> tuple[QueryPassages, ...]:
    """Gather passages, features and judgments of the queries with pooled passages, in bank order.

    Raises:
        TrecexamError: there are no queries, no passages, or nothing is pooled.
    """
    pooled = {query_id: of for query_id, of in track.pool.items() if of.doc_ids}
    if not track.bank.query_ids:
        raise TrecexamError(
            "no queries: put queries.tsv here, `query_id<TAB>text` lines", path=track.folder.root
        )
    if not pooled:
        raise TrecexamError(
            "nothing to learn from: the pool is empty; drop runs into the track, or set `pool_judged` in "
            "[track]",
            path=track.folder.runs,
        )
    asks = {query_id: track.query_texts.get(query_id, "").strip() for query_id in pooled}
    texts = {doc: track.texts.get(doc, "").strip() for of in pooled.values() for doc in of.doc_ids}
    if not all(texts.values()) and not Texts(track.folder).has_source:
        raise no_passages(track.folder)
    every = sorted({*texts.values(), *asks.values()} - {""})
    vectors = encode(track.folder.shared_state / "vectors.sqlite", encoder, every, progress)
    vector_of = dict(zip(every, vectors, strict=True))
    nothing = np.zeros(vectors.shape[1], np.float32)
    lexical = Lexical({text for text in texts.values() if text})
    with_text = sorted(doc for doc, text in texts.items() if text)
    queries = []
    for query_id, of in pooled.items():
        pooled_ids = set(of.doc_ids)
        judged = {} if official is None else official.judged.get(query_id, {})
        docs = [*of.doc_ids, *_background(query_id, pooled_ids, with_text)]
        n, of_texts = len(of.doc_ids), [texts[doc] for doc in docs]
        rows: Vectors = np.array([vector_of.get(text, nothing) for text in of_texts])
        features, background = query_features(
            of.ranks,
            vector_of.get(asks[query_id], nothing),
            rows,
            [len(text) for text in of_texts],
            lexical.scores(asks[query_id], of_texts),
            np.append(_ratings(track, query_id), np.full(len(docs) - n, np.nan)),
            np.array([bool(text) for text in of_texts]),
            n,
        )
        queries.append(
            QueryPassages(
                query_id,
                of.doc_ids,
                of.ranks,
                np.array([judged.get(doc, np.nan) for doc in of.doc_ids], np.float64),
                np.array([label for doc, label in judged.items() if doc not in pooled_ids], np.float64),
                features,
                background,
                rows[:n],
            )
        )
    return tuple(queries)


def _ratings(track: GradedTrack, query_id: str) -> Floats:
    """The grader's mean rating of each pooled passage, without people's; NaN without one.

    Where the grader gave probabilities, a rating is the expected one: the sum of rating times probability.
    """
    sheet = track.sheets[query_id]
    if not sheet.items or sheet.cells is not None:
        return np.full(len(sheet.doc_ids), np.nan)
    ratings = sheet.ratings(track.config.scores.unparsed, human=False).ratings.astype(np.float64)
    if track.grades.has_probabilities:
        expected = track.grades.distributions(sheet, read=True) @ np.arange(MAX_RATING + 1)
        ratings = np.where((ratings >= 0) & ~np.isnan(expected), expected, ratings)
    n = (ratings >= 0).sum(axis=1)
    return np.where(n, np.maximum(ratings, 0).sum(axis=1) / np.maximum(n, 1), np.nan)


def _background(query_id: str, pooled: Collection[str], with_text: Sequence[str]) -> list[str]:
    """Passages with a text that are pooled only for other queries; independent of the order of files."""
    candidates = [doc for doc in with_text if doc not in pooled]
    if len(candidates) <= BACKGROUND:
        return candidates
    digest = hashlib.sha256(query_id.encode(errors="surrogatepass")).digest()
    drawn = np.random.default_rng(list(digest[:16])).choice(len(candidates), BACKGROUND, replace=False)
    return [candidates[at] for at in np.sort(drawn).tolist()]


def odd_judgments(track: GradedTrack, official: Official) -> Iterator[str]:
    """Notes on judgments that are not used, one per line."""
    yield from official.warnings()
    yield from official.people_notes
    pooled = {query_id: set(of.doc_ids) for query_id, of in track.pool.items()}
    outside = sum(
        doc not in pooled[query_id]
        for query_id, judged in official.judged.items()
        if query_id in pooled
        for doc in judged
    )
    if outside:
        yield (
            f"{plural(outside, 'judged passage')} outside of the pool are not learned from; set "
            f"`pool_judged = true` in [track] to use them"
        )


def odd_texts(track: GradedTrack) -> Iterator[str]:
    """Notes on passages and queries without a text, one per line."""
    docs = {doc for of in track.pool.values() for doc in of.doc_ids}
    without = [doc for doc in sorted(docs) if not track.texts.get(doc, "").strip()]
    if without:
        line = (
            f"{plural(len(without), 'pooled passage')} ({shorten_list(without, 2, dots=True)}) without a "
            f"text: labels come from the votes of the runs alone"
        )
        yield Note(line, CHANGES)
    mute = [query_id for query_id in track.pool if not track.query_texts.get(query_id, "").strip()]
    if mute:
        yield (
            f"{plural(len(mute), 'query')} ({shorten_list(mute, 3, dots=True)}) without a text: labels come "
            f"from votes and length alone"
        )
