"""Gathering of pooled passages, features and judgments, and fit of the model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.features import Lexical, query_features
from trecexam.extensions.learn.arithmetic.learning import Learned, fit
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Floats, QueryPassages, Vectors
from trecexam.extensions.learn.encoding import encode
from trecexam.extensions.learn.settings import LearnSection
from trecexam.features.fill.records import Encoded
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import OFFLINE_MODEL, embedding_folder, processor_dtype
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import track_judgments
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.official import Official, no_overlap
from trecexam.inputs.pool import Texts, no_passages
from trecexam.packages import install, missing_packages
from trecexam.results.text import CHANGES, Note, plural, shorten_list
from trecexam.scores.ratings import MAX_RATING

#: Maximum number of other queries' passages that represent unretrieved passages, per query.
BACKGROUND = 20
#: Minimum number of judgments for trust in the highest label.
FEW = 50
#: Minimum median number of judged passages per query for a reliable order of runs.
FEW_A_QUERY = 5
#: Advice on too few judgments.
MORE = "`trecexam judge-next` names passages to judge"


@dataclass(frozen=True, eq=False)
class LearningData:
    """A track's data for learning: passages, features and judgments.

    Attributes:
        queries: queries of the track.
        other_queries: queries of the other track, with its judgments.
        official: the track's judgments; empty if there are none.
        notes: warnings, one per line.
        encoder: name and identity of the encoder.
    """

    queries: tuple[QueryPassages, ...]
    other_queries: tuple[QueryPassages, ...]
    official: Official
    notes: tuple[str, ...]
    encoder: dict[str, Any]


def fit_pool(track: GradedTrack, data: LearningData) -> tuple[Learned, LearningData]:
    """Fit the model on all judgments, and add notes on too few judgments; grade nothing.

    The model has a logistic regression on the features for each step of the judgment scale and, if it helps,
    a Gaussian process over each query's passages.

    Raises:
        TrecexamError: no judgments, or only equal judgments.
    """
    try:
        learned = fit([*data.other_queries, *data.queries])
    except ValueError as error:
        pooled = {query_id: pool.doc_ids for query_id, pool in track.pool.items()}
        unmet = no_overlap(data.official, pooled, track.config.track.unit) if data.official.judged else None
        why = "; ".join([unmet or str(error), *data.official.warnings()])
        raise TrecexamError(
            f"nothing to learn: {why}; {MORE}, `trecexam learn --from` learns from another track, too",
            path=track.folder.root,
        ) from None
    return learned, replace(data, notes=(*_few(data.queries, learned), *data.notes))


def _few(queries: Sequence[QueryPassages], learned: Learned) -> Iterator[str]:
    """Yield notes on conclusions for which there are too few judgments."""
    median = np.median([int(query.judged.sum()) for query in queries])
    if median < FEW_A_QUERY:
        line = (
            f"{median:g} judged passages a query in the median: with three, tau of the learned leaderboard "
            "with that of all judgments was .57 to .90 over five collections; judge ten a query: `trecexam "
            "judge-next` names them"
        )
        yield Note(line, CHANGES)
    without = [query.query_id for query in queries if not query.judged.any()]
    if without:
        yield (
            f"{len(without):,} of {plural(len(queries), 'query')} ({shorten_list(without, 3)}) "
            "have no judgment: their gains come from the other queries' judgments alone"
        )
    never = [f"{step:g}" for step, cut in zip(learned.scale[1:], learned.cuts, strict=True) if np.isinf(cut)]
    if never:
        yield f"no cut for the label {', '.join(never)} is better than chance: no passage gets it"


def gather_data(
    track: GradedTrack,
    *,
    source: Path | str | None = None,
    official: Official | None = None,
    progress: Encoded | None = None,
) -> LearningData:
    """Encode new texts, and gather features and judgments.

    Args:
        source: another track with judgments to learn from.
        official: judgments that replace the track's.
        progress: called with (texts encoded, texts in all).

    Raises:
        TrecexamError: there are no judgments; scales do not fit.
        GraderError: the encoder is not installed.
    """
    if missing := missing_packages(["sklearn"], install("learn")):
        raise TrecexamError(missing)
    if official is None:
        official = _official(track, needed=source is None)
    encoder = track_encoder(track)
    queries = _gather(track, encoder, official, progress)
    extra: tuple[QueryPassages, ...] = ()
    notes = [*_odd_judgments(track, official), *_odd_texts(track)]
    if source is not None:
        with OpenTrack(TrackFolder.open(source)) as opened:
            other = opened.first.load(bank_needed=False)
            if other.folder.root.resolve() == track.folder.root.resolve():
                raise TrecexamError(
                    "is this track itself, whose judgments are used already: give another track", path=source
                )
            extra = _gather(other, encoder, _official(other, needed=True), progress)
        # Query ids of the two tracks are unrelated.
        extra = tuple(replace(query, query_id=f"{Path(source).name}/{query.query_id}") for query in extra)
        if other.grader.identity != track.grader.identity:
            # Ratings of different graders are not comparable.
            is_rating = np.arange(len(FEATURES)) == FEATURES.index("rating")
            extra = tuple(
                replace(query, features=np.where(is_rating, 0.0, query.features)) for query in extra
            )
        notes += _other_scale(queries, extra, source)
    return LearningData(queries, extra, official, tuple(notes), {"model": encoder.model, **encoder.identity})


def _gather(
    track: GradedTrack, encoder: EmbeddingGrader, official: Official, progress: Encoded | None
) -> tuple[QueryPassages, ...]:
    """Gather passages, features and judgments of the queries with pooled passages, in bank order.

    Raises:
        TrecexamError: no queries, no passages, or an empty pool.
    """
    pooled = {query_id: pool for query_id, pool in track.pool.items() if pool.doc_ids}
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
    query_texts = {query_id: track.query_texts.get(query_id, "").strip() for query_id in pooled}
    texts = {doc: track.texts.get(doc, "").strip() for pool in pooled.values() for doc in pool.doc_ids}
    if not all(texts.values()) and not Texts(track.folder).has_source:
        raise no_passages(track.folder)
    every = sorted({*texts.values(), *query_texts.values()} - {""})
    vectors = encode(track.folder.shared_state, encoder, every, progress)
    vector_of = dict(zip(every, vectors, strict=True))
    nothing = np.zeros(vectors.shape[1], np.float32)
    lexical = Lexical({text for text in texts.values() if text})
    with_text = sorted(doc for doc, text in texts.items() if text)
    queries = []
    for query_id, pool in pooled.items():
        pooled_ids, query_text = set(pool.doc_ids), query_texts[query_id]
        judged = official.judged.get(query_id, {})
        docs = [*pool.doc_ids, *_background(query_id, pooled_ids, with_text)]
        doc_texts = [texts[doc] for doc in docs]
        rows: Vectors = np.array([vector_of.get(text, nothing) for text in doc_texts])
        features, background = query_features(
            pool.ranks,
            vector_of.get(query_text, nothing),
            rows,
            doc_texts,
            lexical.scores(query_text, doc_texts),
            _ratings(track, query_id),
        )
        queries.append(
            QueryPassages(
                query_id,
                pool.doc_ids,
                pool.ranks,
                np.array([judged.get(doc, np.nan) for doc in pool.doc_ids], np.float64),
                np.array([label for doc, label in judged.items() if doc not in pooled_ids], np.float64),
                features,
                background,
                rows[: len(pooled_ids)],
            )
        )
    return tuple(queries)


def _ratings(track: GradedTrack, query_id: str) -> Floats:
    """Return the grader's mean rating of each pooled passage, without people's; NaN without one.

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
    """Select passages with a text that are pooled only for other queries, independent of file order."""
    candidates = [doc for doc in with_text if doc not in pooled]
    if len(candidates) <= BACKGROUND:
        return candidates
    digest = hashlib.sha256(query_id.encode(errors="surrogatepass")).digest()
    drawn = np.random.default_rng(list(digest[:16])).choice(len(candidates), BACKGROUND, replace=False)
    return [candidates[at] for at in np.sort(drawn).tolist()]


def track_encoder(track: GradedTrack) -> EmbeddingGrader:
    """Return the encoder of [learn], else that of the embedding grader, else that of the extra `offline`.

    Raises:
        GraderError: the encoder is not installed.
    """
    settings, root = track.config.grader, track.folder.root
    model, revision, dtype = track.config.section(LearnSection).encoder, None, processor_dtype()
    if model is None and settings.name == "embedding":
        model, revision, dtype = settings.model, settings.revision, settings.dtype
    folder = embedding_folder(model, revision, root)
    return EmbeddingGrader(folder, device=settings.device, model=model or OFFLINE_MODEL, dtype=dtype)


def _official(track: GradedTrack, *, needed: bool) -> Official:
    """Return the track's judgments, see `track_judgments`.

    Raises:
        TrecexamError: judgments are needed but missing, or written by a model.
    """
    file = track.folder.qrels()
    if track.official is None and not needed and file is None:
        return Official("", ())
    official = track_judgments(track)
    if official.written_by:
        raise TrecexamError(
            "these judgments include labels from a model: name the file of people's judgments with `qrels` "
            "in [track]",
            path=file,
        )
    return official


def _other_scale(
    queries: Sequence[QueryPassages], other_queries: Sequence[QueryPassages], source: Path | str
) -> Iterator[str]:
    """Check that both tracks' judgments have the same highest label.

    Yields:
        A line, if there are too few judgments here to know the highest label.

    Raises:
        TrecexamError: different highest labels, both named.
    """
    judged = [np.concatenate([q.judgments[q.judged] for q in side]) for side in (queries, other_queries)]
    if not all(map(len, judged)):
        return
    highest, other_highest = (float(of_side.max()) for of_side in judged)
    both = f"the highest judgment here is {highest:g}, and {other_highest:g} in {source}: "
    if highest < other_highest and len(judged[0]) < FEW:
        yield f"{both}treated as one scale, because this track has few judgments"
    elif highest != other_highest:
        raise TrecexamError(f"{both}the scales differ and cannot be combined")


def _odd_judgments(track: GradedTrack, official: Official) -> Iterator[str]:
    """Yield notes on judgments that are not used."""
    yield from official.warnings()
    yield from official.people_notes
    outside = sum(
        len(official.judged.get(query_id, {}).keys() - set(pool.doc_ids))
        for query_id, pool in track.pool.items()
    )
    if outside:
        yield (
            f"{plural(outside, 'judged passage')} outside of the pool are not learned from; set "
            f"`pool_judged = true` in [track] to use them"
        )


def _odd_texts(track: GradedTrack) -> Iterator[str]:
    """Yield notes on passages and queries without a text."""
    docs = {doc for pool in track.pool.values() for doc in pool.doc_ids}
    without = sorted(doc for doc in docs if not track.texts.get(doc, "").strip())
    if without:
        line = (
            f"{plural(len(without), 'pooled passage')} ({shorten_list(without, 2)}) without a "
            f"text: labels come from the votes of the runs alone"
        )
        yield Note(line, CHANGES)
    mute = [query_id for query_id in track.pool if not track.query_texts.get(query_id, "").strip()]
    if mute:
        yield (
            f"{plural(len(mute), 'query')} ({shorten_list(mute, 3)}) without a text: labels come "
            f"from votes and length alone"
        )
