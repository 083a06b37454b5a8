"""Gathers a track's data, fits a model on its judgments, and predicts labels of its pool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import Learned, Prediction, fit, predict
from trecexam.extensions.learn.arithmetic.passages import FEATURES, QueryPassages
from trecexam.extensions.learn.encoding import Encoder, TextEncoder, TrackVectors
from trecexam.extensions.learn.gather import gather, odd_judgments, odd_texts
from trecexam.extensions.learn.settings import LearnSection
from trecexam.features.fill.records import Encoded
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import dtype_of
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import track_judgments
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.official import Official, no_overlap
from trecexam.packages import install
from trecexam.results.text import plural, shorten_list

#: Of fewer judgments it is said that they are few.
FEW = 50
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


@dataclass(frozen=True, eq=False)
class LearnedPool:
    """The fitted model and its predictions for a track's pool.

    Attributes:
        data: what it was learned from; `data.queries` are those that `predictions` are of.
        learned: what was fitted.
        predictions: of each query's passages.
        notes: what a reader must know, one per line.
    """

    data: LearningData
    learned: Learned
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """The encoder, judgments, features and versions, for JSON."""
        return _identity(self.data, self.learned)


def fit_pool(track: GradedTrack, data: LearningData) -> LearnedPool:
    """Fit the model on all judgments, and predict labels of the pool; grades nothing.

    For each step of the judgment scale a logistic regression on the votes of the runs, the cosine with the
    query and the length, on words that passage and query share and the grader's rating where they add
    something; and a Gaussian process over each query's passages where that adds something.

    Raises:
        TrecexamError: there are no judgments, or all are the same.
    """
    with threadpool_limits(1):
        learned = fitted(track, data)
        predictions = tuple(predict(learned, query) for query in data.queries)
    return LearnedPool(data, learned, predictions, (*data.notes, *_few(data.queries, data.others, learned)))


def fitted(
    track: GradedTrack, data: LearningData, without: Sequence[str] = (), *, neighbours: bool = True
) -> Learned:
    """Fits the model on the judgments.

    Args:
        without, neighbours: as of `fit`.

    Raises:
        TrecexamError: there are no judgments, or all are the same.
    """
    try:
        return fit([*data.others, *data.queries], without, neighbours)
    except ValueError as error:
        raise TrecexamError(
            f"nothing to learn: {why_nothing(track, data, error)}; {MORE}, "
            "`trecexam learn --from` learns from another track, too",
            path=track.folder.root,
        ) from None


def why_nothing(track: GradedTrack, data: LearningData, error: ValueError) -> str:
    """Why nothing can be learned: no judged passage is in the pool (with ids of both), or the error."""
    official = data.official
    if official is None:
        return str(error)
    why, n_judged = str(error), sum(map(len, official.judged.values()))
    pooled = {query_id: of.doc_ids for query_id, of in track.pool.items()}
    if n_judged and (unmet := no_overlap(official, pooled, track.config.track.unit)) is not None:
        are = "is" if n_judged == 1 else "are"
        why = f"there {are} {plural(n_judged, 'judgment')}, all outside of the pool: {unmet}"
    return "; ".join([why, *official.warnings()])


def gather_data(
    track: GradedTrack,
    *,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    official: Official | None = None,
    progress: Encoded | None = None,
) -> LearningData:
    """Encode new texts, and gather features and judgments.

    Args:
        source: another track, whose judgments are learned from, too.
        encoder: a sentence-transformers model, as a folder or a hub id, or an object with `identity` and
            `encode`. None: what [learn] names, else that of the track's grader if it is `embedding`, else the
            extra `offline`.
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
    if encoder is None or isinstance(encoder, str):
        encoder = track_encoder(track, encoder)
    track_data = gather(track, TrackVectors(track.folder.shared_state, encoder), official, progress)
    other_queries: tuple[QueryPassages, ...] = ()
    notes = [
        *([] if official is None else odd_judgments(track, official)),
        *odd_texts(track),
    ]
    if source is not None:
        with ExitStack() as stack:
            loaders = stack.enter_context(OpenTrack(TrackFolder.open(source)))
            other = loaders.first.load(bank_needed=False)
            if other.folder.root.resolve() == track.folder.root.resolve():
                raise TrecexamError(
                    "is this track itself, whose judgments are used already: give another track", path=source
                )
            vectors = TrackVectors(other.folder.shared_state, encoder)
            source_data = gather(other, vectors, _official(other, needed=True), progress)
            if other.grader.identity != track.grader.identity:
                # Ratings of one grader say nothing about those of another.
                source_data = tuple(map(_without_ratings, source_data))
        # A query that both ask may have another id there, and another query the same one.
        name = Path(source).name
        other_queries = tuple(replace(q, query_id=f"{name}/{q.query_id}") for q in source_data)
        notes += _other_scale(track_data, other_queries, source)
    return LearningData(
        track_data,
        other_queries,
        official,
        tuple(notes),
        {"model": getattr(encoder, "name", None), **encoder.identity},
    )


def _without_ratings(query: QueryPassages) -> QueryPassages:
    features = query.features.copy()
    features[:, FEATURES.index("rating")] = 0
    return replace(query, features=features)


def track_encoder(track: GradedTrack, model: str | None = None) -> TextEncoder:
    """The encoder of a track's texts: the requested one, that of [learn], or the embedding grader's.

    Args:
        model: as `encoder` of `gather_data`.

    Raises:
        GraderError: it is not installed.
    """
    settings = track.config.grader
    model = model or track.config.section(LearnSection).encoder
    if model is None and settings.name == "embedding":
        root, dtype = track.folder.root, dtype_of(settings)
        return TextEncoder(settings.model, root, settings.device, settings.revision, dtype)
    return TextEncoder(model, track.folder.root, settings.device)


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
    """Checks that both tracks' judgments have the same highest label.

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


def _few(
    queries: Sequence[QueryPassages], other_queries: Sequence[QueryPassages], learned: Learned
) -> list[str]:
    """Notes on a small number of judgments, one per line."""
    notes = []
    judged = [query for query in queries if query.judged.any()]
    if learned.n_judgments < FEW:
        notes.append(
            f"learned from only {plural(learned.n_judgments, 'judgment')}: `trecexam learn` shows how well"
        )
    if len(judged) == 1 and not other_queries:
        notes.append(
            f"all judgments are of one query, '{judged[0].query_id}': the learned labels may be wrong for "
            f"other queries"
        )
    without = [query.query_id for query in queries if not query.judged.any()]
    if without:
        notes.append(
            f"{len(without):,} of {plural(len(queries), 'query')} ({shorten_list(without, 3, dots=True)}) "
            "have no judgment: their gains come from the other queries' judgments alone"
        )
    never = [f"{step:g}" for step, cut in zip(learned.scale[1:], learned.cuts, strict=True) if np.isinf(cut)]
    if never:
        notes.append(f"no cut for the label {', '.join(never)} is better than chance: no passage gets it")
    return notes


def _identity(data: LearningData, learned: Learned) -> dict[str, Any]:
    digest = hashlib.sha256()
    n_judged = 0
    for query in (*data.others, *data.queries):
        n_judged += int(query.judged.sum())
        for doc_id, judgment in zip(query.doc_ids, query.judgments.tolist(), strict=True):
            if judgment == judgment:
                digest.update(f"{query.query_id}\0{doc_id}\0{judgment:g}\n".encode(errors="surrogatepass"))
    return {
        "encoder": data.encoder,
        "judgments": {
            "source": None if data.official is None else data.official.source,
            "sha256": digest.hexdigest(),
            "count": n_judged,
        },
        "features": list(learned.features),
        "scale": learned.scale.tolist(),
        "kernel": None if learned.kernel is None else asdict(learned.kernel),
        "cuts": [None if np.isinf(cut) else cut for cut in learned.cuts.tolist()],
        "versions": {"scikit-learn": version("scikit-learn"), "numpy": version("numpy")},
    }
