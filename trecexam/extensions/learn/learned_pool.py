"""What is gathered of a track, what is fitted on its judgments, and what that predicts of its pool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import Learned, Prediction, QueryPassages, fit, predict
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.steps import C
from trecexam.extensions.learn.encoding import Encoded, Encoder, TrackVectors
from trecexam.extensions.learn.gather import Gathered, gather, odd_judgments, odd_texts
from trecexam.extensions.learn.peoples_labels import with_peoples_labels
from trecexam.extensions.learn.settings import LearnSection
from trecexam.extensions.learn.text_encoder import TextEncoder
from trecexam.line.assessment import Assessment
from trecexam.line.loader import TrackLoader
from trecexam.line.official import Official, official_judgments
from trecexam.line.stored_grades import unusable_lines
from trecexam.packages import install
from trecexam.tables.text import plural, shorten_list
from trecexam.track import TrackFolder

#: Of fewer judgments it is said that they are few.
FEW = 50
#: What to do about too few judgments.
MORE = "`trecexam learned-next` names passages to judge, `--from TRACK` takes another track's judgments"


@dataclass(frozen=True, eq=False)
class LearningData:
    """What a track has to learn from: passages, features and judgments.

    Attributes:
        queries: of the track.
        others: of the other track, with its judgments.
        official: the track's judgments; None where there are none.
        notes: what a reader must know, a line each.
        n_encoded: how many passages were encoded.
        encoder: its name and identity.
        graded: whether the grader's ratings are among the features.
        asked_here: which of `others` are queries of the track, too: their texts are the same.
    """

    queries: tuple[PooledQueryToLearn, ...]
    others: tuple[QueryPassages, ...]
    official: Official | None
    notes: tuple[str, ...]
    n_encoded: int
    encoder: dict[str, Any]
    graded: bool
    asked_here: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class LearnedPool:
    """What was learned, and what it predicts of a track's pool.

    Attributes:
        data: what it was learned from; `data.queries` are those that `predictions` are of.
        learned: what was fitted.
        predictions: of each query's passages that have a text.
        notes: what a reader must know, a line each.
    """

    data: LearningData
    learned: Learned
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """What it was learned by and from, for JSON."""
        return _identity(self.data, self.learned)


def learn_pool(
    track: Assessment,
    *,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    grades: bool = True,
    official: Official | None = None,
    progress: Encoded | None = None,
) -> LearnedPool:
    """Learns from the track's judgments, and predicts what its pool would be judged; grades nothing.

    For each step of the judgment scale a logistic regression on features of query and passage; the sum of
    their probabilities, and on what they leave unexplained a Gaussian process over each query's passages.

    Args:
        source: another track, whose judgments are learned from, too.
        encoder: a sentence-transformers model, as a folder or a hub id, or an object with `identity` and
            `encode`. None: what [learn] names, else that of the track's grader if it is `embedding`, else the
            extra `offline`.
        grades: whether the grader's ratings, where there are any, are features, too.
        official: people's judgments in place of the track's.
        progress: called with how many passages are encoded, and of how many.

    Raises:
        TrecexamError: no judgments, or all the same; texts are missing; scales do not fit.
        GraderError: the encoder is not installed.
    """
    data = gather_data(
        track, source=source, encoder=encoder, grades=grades, official=official, progress=progress
    )
    with threadpool_limits(1):
        try:
            learned = fit([*data.others, *(query.passages for query in data.queries)])
        except ValueError as error:
            why = "; ".join([str(error), *(data.official.warnings() if data.official else ())])
            raise TrecexamError(f"nothing to learn: {why}; {MORE}", path=track.folder.root) from None
        predictions = tuple(predict(learned, query.passages) for query in data.queries)
    return LearnedPool(data, learned, predictions, (*data.notes, *_few(data.queries, data.others, learned)))


def gather_data(
    track: Assessment,
    *,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    grades: bool = True,
    official: Official | None = None,
    progress: Encoded | None = None,
) -> LearningData:
    """Encodes what has no vector yet and gathers features and judgments; arguments as of `learn_pool`.

    Raises:
        TrecexamError: as `learn_pool`.
    """
    if find_spec("sklearn") is None:
        raise TrecexamError(f"learning needs scikit-learn: {install('learn')}")
    if official is None:
        official = _official(track, needed=source is None)
    if encoder is None or isinstance(encoder, str):
        encoder = track_encoder(track, encoder)
    pools = [(track, official)]
    # Its store is read while features are made.
    with ExitStack() as stack:
        if source is not None:
            other = stack.enter_context(TrackLoader(TrackFolder.open(source))).load()
            if other.folder.root.resolve() == track.folder.root.resolve():
                raise TrecexamError("is this track itself, whose judgments count already", path=source)
            pools.append((other, _official(other, needed=True)))
            # Ratings of one grader say nothing about those of another.
            grades = grades and other.grader.identity == track.grader.identity
        own, *rest = sides = _gathered(pools, encoder, progress, grades=grades)
        if len({side.queries[0].passages.features.shape[1] for side in sides}) > 1:
            own, *rest = _gathered(pools, encoder, progress, grades=False)
    queries = own.queries
    others = rest[0].queries if rest else ()
    own_texts = {track.query_texts[query.passages.query_id].strip() for query in queries}
    asked_here = frozenset(
        query.passages.query_id
        for query in others
        if pools[1][0].query_texts[query.passages.query_id].strip() in own_texts
    )
    model = str(getattr(encoder, "name", "the encoder"))
    notes = [*([] if official is None else odd_judgments(track, official)), *odd_texts(track, queries, model)]
    notes += unusable_lines(own.unusable + sum(of.unusable for of in rest))
    if source is not None:
        notes += _other_scale(queries, others, source)
    return LearningData(
        queries,
        tuple(query.passages for query in others),
        official,
        tuple(notes),
        own.n_encoded + sum(of.n_encoded for of in rest),
        {"model": getattr(encoder, "name", None), **encoder.identity},
        # Of each feature there are two columns.
        queries[0].passages.features.shape[1] > 12,
        asked_here,
    )


def track_encoder(track: Assessment, model: str | None = None) -> TextEncoder:
    """What a track's texts are encoded with: else than asked for, the embedding grader's own model.

    Args:
        model: as `encoder` of `learn_pool`.

    Raises:
        GraderError: it is not installed.
    """
    settings = track.config.grader
    model = model or track.config.section(LearnSection).encoder
    if model is None and settings.name == "embedding":
        return TextEncoder(settings.model, track.folder.root, settings.device, settings.revision)
    return TextEncoder(model, track.folder.root, settings.device)


def _gathered(
    pools: Sequence[tuple[Assessment, Official | None]],
    encoder: Encoder,
    progress: Encoded | None,
    *,
    grades: bool,
) -> list[Gathered]:
    return [
        gather(
            track,
            TrackVectors(track.folder.shared_state, encoder),
            official,
            grades=grades,
            progress=progress,
        )
        for track, official in pools
    ]


def people_judgments(track: Assessment) -> tuple[Official | None, int]:
    """The track's judgments and what people say beside them, see `with_peoples_labels`.

    Raises:
        TrecexamError: a machine wrote the judgments.
    """
    return with_peoples_labels(track, _official(track, needed=False))


def _official(track: Assessment, *, needed: bool) -> Official | None:
    """The track's judgments.

    Raises:
        TrecexamError: there are none and they are needed, or a machine wrote them.
    """
    file = track.folder.qrels()
    if track.official is None and not needed and file is None:
        return None
    official = official_judgments(track)
    if official.written_by:
        raise TrecexamError(
            "labels of a machine are among these judgments; name the official ones that they were made from "
            "with `qrels` in [track]",
            path=file,
        )
    return official


def _other_scale(
    queries: Sequence[PooledQueryToLearn], others: Sequence[PooledQueryToLearn], source: Path | str
) -> Iterator[str]:
    """Refuses judgments of two scales, as far as their highest labels say that they are.

    Yields:
        A line, where there are so few here that the highest label may not have been given yet.

    Raises:
        TrecexamError: with both.
    """
    judged = [
        np.concatenate([q.judgments[~np.isnan(q.judgments)] for q in side]) for side in (queries, others)
    ]
    if not all(map(len, judged)):
        return
    here, there = (float(of_side.max()) for of_side in judged)
    both = f"the highest judgment here is {here:g}, and that of {source} {there:g}: "
    if here < there and len(judged[0]) < FEW:
        yield f"{both}taken as of one scale, as there are few here"
    elif here != there:
        raise TrecexamError(f"{both}they are not of one scale, so nothing can be learned from both")


def _few(
    queries: Sequence[PooledQueryToLearn], others: Sequence[QueryPassages], learned: Learned
) -> list[str]:
    """What makes the judgments few, a line each."""
    notes = []
    judged = [q for q in queries if not np.isnan(q.passages.judgments).all()]
    if learned.n_judgments < FEW:
        notes.append(
            f"learned from {plural(learned.n_judgments, 'judgment')} only: see `trecexam cross-validate`"
        )
    if len(judged) == 1 and not others:
        notes.append(
            f"all judgments are of one query, '{judged[0].passages.query_id}': what is learned may not hold "
            "for the others"
        )
    without = [q.passages.query_id for q in queries if np.isnan(q.passages.judgments).all()]
    if without:
        notes.append(
            f"{len(without):,} of {plural(len(queries), 'query')} ({shorten_list(without, 3, dots=True)}) "
            "without a judgment: their gains are of the other queries' judgments alone"
        )
    never = [
        f"{step:g}" for step, cut in zip(learned.steps.scale[1:], learned.cuts, strict=True) if np.isinf(cut)
    ]
    if never:
        notes.append(f"no cut for the label {', '.join(never)} is better than chance: no passage gets it")
    return notes


def _identity(data: LearningData, learned: Learned) -> dict[str, Any]:
    digest = hashlib.sha256()
    n_judged = 0
    for passages in (*data.others, *(query.passages for query in data.queries)):
        judged = ~np.isnan(passages.judgments)
        n_judged += int(judged.sum())
        for doc_id, judgment in zip(passages.doc_ids, passages.judgments.tolist(), strict=True):
            if judgment == judgment:
                digest.update(f"{passages.query_id}\0{doc_id}\0{judgment:g}\n".encode(errors="surrogatepass"))
    return {
        "encoder": data.encoder,
        "judgments": {
            "source": None if data.official is None else data.official.source,
            "sha256": digest.hexdigest(),
            "count": n_judged,
        },
        "grader_ratings": data.graded,
        "scale": learned.steps.scale.tolist(),
        "c": C,
        "kernel": None if learned.kernel is None else asdict(learned.kernel),
        "cuts": [None if np.isinf(cut) else cut for cut in learned.cuts.tolist()],
        "versions": {"scikit-learn": version("scikit-learn"), "numpy": version("numpy")},
    }
