"""Gathers what is learned from, and fits the model on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import Learned, fit
from trecexam.extensions.learn.arithmetic.passages import FEATURES, QueryPassages
from trecexam.extensions.learn.gather import gather, odd_judgments, odd_texts
from trecexam.extensions.learn.settings import LearnSection
from trecexam.features.fill.records import Encoded
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import EmbeddingGrader, dtype_of
from trecexam.graders.weights import OFFLINE_MODEL, embedding_folder, processor_dtype
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import track_judgments
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.official import Official, no_overlap
from trecexam.packages import install
from trecexam.results.notes import CHANGES, Note
from trecexam.results.text import plural, shorten_list

#: With fewer judgments the highest label may not have been given yet.
FEW = 50
#: With fewer judged passages of a query, in the median, the order of runs may be far off.
FEW_A_QUERY = 5
#: What to do about too few judgments.
MORE = "`trecexam judge-next` names passages to judge"


@dataclass(frozen=True, eq=False)
class LearningData:
    """A track's data for learning: passages, features and judgments.

    Attributes:
        queries: of the track.
        others: of the other track, with its judgments.
        official: the track's judgments; None where there are none.
        notes: what a reader must know, one per line.
        encoder: its name and identity.
    """

    queries: tuple[QueryPassages, ...]
    others: tuple[QueryPassages, ...]
    official: Official | None
    notes: tuple[str, ...]
    encoder: dict[str, Any]


def fit_pool(track: GradedTrack, data: LearningData) -> tuple[Learned, LearningData]:
    """Fit the model on all judgments, and add notes on what they are too few for; grades nothing.

    For each step of the judgment scale a logistic regression on the features, and a Gaussian process over
    each query's passages where that adds something.

    Raises:
        TrecexamError: there are no judgments, or all are the same.
    """
    try:
        with threadpool_limits(1):
            learned = fit([*data.others, *data.queries])
    except ValueError as error:
        why = [str(error)]
        if (official := data.official) is not None:
            n_judged = sum(map(len, official.judged.values()))
            pooled = {query_id: of.doc_ids for query_id, of in track.pool.items()}
            if n_judged and (unmet := no_overlap(official, pooled, track.config.track.unit)) is not None:
                are = "is" if n_judged == 1 else "are"
                why = [f"there {are} {plural(n_judged, 'judgment')}, all outside of the pool: {unmet}"]
            why += official.warnings()
        raise TrecexamError(
            f"nothing to learn: {'; '.join(why)}; {MORE}, `trecexam learn --from` learns from another track, "
            "too",
            path=track.folder.root,
        ) from None
    return learned, replace(data, notes=(*_few(data.queries, learned), *data.notes))


def _few(queries: Sequence[QueryPassages], learned: Learned) -> Iterator[str]:
    """Yield notes on what the judgments are too few for."""
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
            f"{len(without):,} of {plural(len(queries), 'query')} ({shorten_list(without, 3, dots=True)}) "
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
        source: another track, whose judgments are learned from, too.
        official: people's judgments in place of the track's.
        progress: called with how many texts are encoded, and of how many.

    Raises:
        TrecexamError: there are no judgments; scales do not fit.
        GraderError: the encoder is not installed.
    """
    if find_spec("sklearn") is None:
        raise TrecexamError(f"learning needs scikit-learn: {install('learn')}")
    if official is None:
        official = _official(track, needed=source is None)
    encoder = track_encoder(track)
    queries = gather(track, encoder, official, progress)
    others: tuple[QueryPassages, ...] = ()
    notes = [*([] if official is None else odd_judgments(track, official)), *odd_texts(track)]
    if source is not None:
        with OpenTrack(TrackFolder.open(source)) as opened:
            other = opened.first.load(bank_needed=False)
            if other.folder.root.resolve() == track.folder.root.resolve():
                raise TrecexamError(
                    "is this track itself, whose judgments are used already: give another track", path=source
                )
            others = gather(other, encoder, _official(other, needed=True), progress)
        # A query that both ask may have another id there, and another query the same one.
        others = tuple(replace(query, query_id=f"{Path(source).name}/{query.query_id}") for query in others)
        if other.grader.identity != track.grader.identity:
            # Ratings of one grader say nothing about those of another.
            others = tuple(map(_without_ratings, others))
        notes += _other_scale(queries, others, source)
    return LearningData(
        queries,
        others,
        official,
        tuple(notes),
        {"model": encoder.model, **encoder.identity},
    )


def _without_ratings(query: QueryPassages) -> QueryPassages:
    features = query.features.copy()
    features[:, FEATURES.index("rating")] = 0
    return replace(query, features=features)


def track_encoder(track: GradedTrack) -> EmbeddingGrader:
    """Return the encoder of [learn], else that of the embedding grader, else that of the extra `offline`.

    Raises:
        GraderError: it is not installed.
    """
    settings, root = track.config.grader, track.folder.root
    model, revision, dtype = track.config.section(LearnSection).encoder, None, processor_dtype()
    if model is None and settings.name == "embedding":
        model, revision, dtype = settings.model, settings.revision, dtype_of(settings)
    folder = embedding_folder(model, revision, root)
    return EmbeddingGrader(folder, device=settings.device, model=model or OFFLINE_MODEL, dtype=dtype)


def _official(track: GradedTrack, *, needed: bool) -> Official | None:
    """The track's judgments, see `track_judgments`.

    Raises:
        TrecexamError: they are needed but missing, or a model wrote them.
    """
    file = track.folder.qrels()
    if track.official is None and not needed and file is None:
        return None
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
        A line, where there are so few here that the highest label may not have been given yet.

    Raises:
        TrecexamError: with both.
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
