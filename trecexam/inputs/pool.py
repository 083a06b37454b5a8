"""Pooled passages of each query, their ranks in each run, and their texts.

The pool is the first ranks of all runs and, where `[track] pool_judged` says so, "all passages in official
judgments" beside them (the pool of the Rubric papers): these are at no rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from converters.arrow import column, numbers, strings
from converters.errors import ConversionError
from converters.ir_dataset import dataset_passages
from converters.passages import numbered_passages
from converters.rubric_jsonl import numbered_graded_passages
from converters.run import Run
from trecexam.errors import TrackError
from trecexam.files.stamps import Rejected, sniffed, stamp
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.inputs.dropped_files import judges_answers
from trecexam.inputs.inputs import TrackInputs
from trecexam.inputs.typed_text import differing_in_form, other_forms
from trecexam.results.text import plural, shorten_list


@dataclass(frozen=True, eq=False)
class PooledQuery:
    """The first passages of all runs for one query, and judged ones beside them.

    Attributes:
        doc_ids: the pooled passages, sorted.
        ranks: int32 of shape (runs, depth): the place among `doc_ids` of the passage at each rank; -1
            beyond the end of a run's ranking.
        n_judged_only: how many passages are at none of these ranks: they are pooled since they are judged.
    """

    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]
    n_judged_only: int = 0

    @property
    def ranked(self) -> tuple[str, ...]:
        """The passages at these ranks, sorted."""
        if not self.n_judged_only:
            return self.doc_ids
        return tuple(self.doc_ids[at] for at in np.unique(self.ranks[self.ranks >= 0]).tolist())

    def with_judged(self, doc_ids: Collection[str]) -> PooledQuery:
        """Return the same ranks in a pool that has these passages, too."""
        judged_only = set(doc_ids).difference(self.doc_ids)
        if not judged_only:
            return self
        every = tuple(sorted(judged_only.union(self.doc_ids)))
        row = {doc_id: at for at, doc_id in enumerate(every)}
        # The last one is for rank -1.
        row_now = np.array([*map(row.__getitem__, self.doc_ids), -1], np.int32)
        return PooledQuery(every, row_now[self.ranks], self.n_judged_only + len(judged_only))


def pool_with_ranks(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Mapping[str, PooledQuery]:
    """Pool the first `depth` passages of each run; every query of `query_ids` is there."""
    queries = list(query_ids)
    query_index = {query_id: number for number, query_id in enumerate(queries)}
    parts, lengths = [], np.zeros((len(runs), len(queries)), np.int64)
    query_of: list[NDArray[np.int64]] = []
    for number, run in enumerate(runs):
        at = np.array([query_index.get(query_id, -1) for query_id in run.query_ids], np.int64)
        offsets, top = run.top(depth)
        counts = np.diff(offsets)
        lengths[number, at[at >= 0]] = counts[at >= 0]
        parts.append(top)
        query_of.append(np.repeat(at, counts))
    # All runs' passages of a query, one after the other; those of queries that are not meant come first.
    query_of_entry = np.concatenate([np.empty(0, np.int64), *query_of])
    order = np.argsort(query_of_entry, kind="stable")[int((query_of_entry < 0).sum()) :]
    doc_ids = pa.concat_arrays(parts).take(column(order)) if parts else strings(())
    bounds = np.concatenate(([0], np.cumsum(lengths.sum(axis=0)))).tolist()
    pooled: dict[str, PooledQuery] = {}
    for number, query_id in enumerate(queries):
        of_query = lengths[:, number]
        ranks = np.full((len(runs), int(of_query.max(initial=0))), -1, np.int32)
        encoded = doc_ids[bounds[number] : bounds[number + 1]].dictionary_encode()
        first_seen: list[str] = encoded.dictionary.to_pylist()
        by_id = sorted(range(len(first_seen)), key=first_seen.__getitem__)
        row = np.empty(len(by_id), np.int32)
        row[by_id] = np.arange(len(by_id), dtype=np.int32)
        ranks[np.arange(ranks.shape[1]) < of_query[:, None]] = row[numbers(encoded.indices)]
        pooled[query_id] = PooledQuery(tuple(first_seen[at] for at in by_id), ranks)
    return pooled


class Texts:
    """The texts of a track's passages: each source is read once until it changes or more is wanted."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        #: Never changed once given: loaded tracks hold it.
        self._texts: Mapping[str, str] = {}
        self._sought: set[str] = set()
        self._source: object = None
        self._rejected: tuple[Rejected, ...] = ()

    @property
    def has_source(self) -> bool:
        """True where the track has a file or dataset that texts may be in."""
        folder = self.folder
        return bool(folder.passages() or folder.config.track.dataset or folder.recorded())

    def of(self, doc_ids: Iterable[str]) -> tuple[Mapping[str, str], tuple[Rejected, ...]]:
        """Return the texts of documents, as far as the track has them, and the passage lines rejected."""
        dataset = self.folder.config.track.dataset
        path = self.folder.passages() or (None if dataset else self.folder.recorded())
        if path is None and dataset is None:
            raise no_passages(self.folder)
        current = dataset if path is None else (path, stamp(path))
        if current != self._source:
            self._texts, self._sought, self._source = {}, set(), current
        needed = set(doc_ids) - self._sought
        if needed and path is not None:
            wanted = needed | self._texts.keys()
            self._texts, self._rejected = _passages(path, wanted, self.folder.shown(path))
        elif needed:
            new = dataset_passages(str(dataset), needed)
            self._texts = {**self._texts, **{doc_id: each.text for doc_id, each in new.items()}}
        self._sought |= needed
        return self._texts, self._rejected


def no_passages(folder: TrackFolder) -> TrackError:
    """Return the error of a track that lacks the texts of its passages."""
    return TrackError(
        'no passages: put passages.jsonl here, one {"docid", "text"} a line, or set `dataset` in [track]',
        path=folder.root,
    )


def _passages(
    path: Path, doc_ids: Collection[str], file_name: str
) -> tuple[dict[str, str], tuple[Rejected, ...]]:
    errors: list[ConversionError] = []
    texts: dict[str, str] = {}
    lines: dict[str, int] = {}
    numbered = (
        numbered_graded_passages(path)
        if sniffed(path) == "rubric"
        else numbered_passages(path, errors.append)
    )
    try:
        for line, (doc_id, text) in numbered:
            if doc_id not in doc_ids:
                continue
            first = lines.setdefault(doc_id, line)
            if texts.setdefault(doc_id, text) != text:
                reason = (
                    f"passage '{doc_id}' has another text on line {first}, which counts; this one does not"
                )
                errors.append(ConversionError(path, line, reason, "line"))
    except ConversionError as error:
        # A truncated archive: what came before the end counts, the rest is named.
        errors.append(ConversionError(path, error.line, error.reason, "file"))
    return texts, tuple(Rejected(file_name, error.line, error.reason, error.lost) for error in errors)


class TrackPool(NamedTuple):
    """The pool of a track, with what store and grader know each passage by.

    Attributes:
        queries: query_id -> what is pooled of it.
        texts: doc_id -> text, as far as there are texts.
        keys: doc_id -> what store and grader know the passage by: its text or, where the grader goes by ids,
            its id; passages that have one.
        gradable: those of `keys` whose text is long enough to be graded.
        rejected: passage lines that were rejected.
        no_text: what of the pool has no text.
        notes: documents of responses that the track has with another text.
    """

    queries: Mapping[str, PooledQuery]
    texts: Mapping[str, str]
    keys: Mapping[str, str]
    gradable: Mapping[str, str]
    rejected: tuple[Rejected, ...]
    no_text: tuple[Rejected, ...]
    notes: tuple[str, ...]

    @property
    def doc_ids(self) -> dict[str, tuple[str, ...]]:
        """query_id -> its pooled passages, sorted."""
        return {query_id: of_query.doc_ids for query_id, of_query in self.queries.items()}


def track_pool(
    folder: TrackFolder, inputs: TrackInputs, grader: Grader, texts_of: Texts, depth: int
) -> TrackPool:
    """Pool the first ranks of the runs and, where the track says so, passages that no run has.

    Raises:
        TrackError: some of the runs' passages are not those of generated responses, and the track has items
            to grade them on and no passages at all.
    """
    by_id = grader.known_passages is not None
    queries = pool_with_ranks(tuple(inputs.runs.values()), inputs.bank.query_ids, depth)
    doc_ids = {doc_id for of_query in queries.values() for doc_id in of_query.doc_ids}
    judged = inputs.judged if folder.config.track.pool_judged and not by_id else {}
    outside = _outside(folder, grader.known_passages or judged, queries)
    all_ids = doc_ids.union(*outside.values())
    texts: Mapping[str, str] = inputs.dropped.own_texts
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    if not by_id or folder.passages() is not None:
        texts, rejected, notes = _texts(doc_ids, all_ids - doc_ids, inputs, grader, texts_of)
    keys = {doc_id: doc_id for doc_id in all_ids} if by_id else texts
    # Ids may be of any length.
    least = 0 if by_id else folder.config.track.min_text
    gradable = {doc_id: key for doc_id, key in keys.items() if len(key) >= least}
    added = {query_id: ids & gradable.keys() for query_id, ids in outside.items()}
    lost = doc_ids - keys.keys()
    other_ids = {other for _, other in other_forms(lost)}
    known = texts_of.of(other_ids)[0].keys() & other_ids if other_ids and texts_of.has_source else ()
    to_read = len(inputs.bank) > 0 or texts_of.has_source
    no_text = _without_text(folder, inputs, keys, depth, known) if lost and to_read else ()
    return TrackPool(
        {query_id: of_query.with_judged(added.get(query_id, ())) for query_id, of_query in queries.items()},
        texts,
        keys,
        gradable,
        rejected,
        (*no_text, *_judged_without_text(folder, outside, added)),
        notes,
    )


def cited_pool(folder: TrackFolder, inputs: TrackInputs, grader: Grader, texts_of: Texts) -> TrackPool:
    """Pool what items are graded with that cite it: no run has it at any rank.

    A grader that knows passages by ids needs no text of those that have none.

    Raises:
        ConversionError: the passages cannot be read.
    """
    assert inputs.asked.citing is not None
    nowhere = np.full((len(inputs.runs), 0), -1, np.int32)
    queries = {
        query_id: PooledQuery(tuple(sorted({doc for docs in citing for doc in docs})), nowhere)
        for query_id, citing in inputs.asked.citing.items()
    }
    cited = {doc_id for of_query in queries.values() for doc_id in of_query.doc_ids}
    has_texts = folder.passages() is not None or folder.config.track.dataset is not None
    texts_by_id, rejected, notes = document_texts(cited, inputs, texts_of, read=bool(cited) and has_texts)
    texts = {
        doc_id: text for doc_id in sorted(cited & texts_by_id.keys()) if (text := texts_by_id[doc_id]).strip()
    }
    by_id = {doc_id for of_query in (grader.known_passages or {}).values() for doc_id in of_query}
    keys = {**{doc_id: doc_id for doc_id in sorted(cited & by_id)}, **texts}
    return TrackPool(queries, texts, keys, keys, rejected, (), notes)


def _outside(
    folder: TrackFolder, passages: Mapping[str, Iterable[str]], queries: Mapping[str, PooledQuery]
) -> dict[str, set[str]]:
    """Return those of these passages that no run has in the pool, by query; no query's own document."""
    exclude = folder.config.track.exclude_query_document
    return {
        query_id: set(passages.get(query_id, ())).difference(of.doc_ids, (query_id,) if exclude else ())
        for query_id, of in (queries.items() if passages else ())
    }


def _texts(
    doc_ids: Collection[str], judged: Collection[str], inputs: TrackInputs, grader: Grader, texts_of: Texts
) -> tuple[Mapping[str, str], tuple[Rejected, ...], tuple[str, ...]]:
    """Return what `document_texts` does, with the texts of responses themselves.

    Args:
        doc_ids: of the runs.
        judged: others, for which alone the track need not have passages.
    """
    own_texts = inputs.dropped.own_texts
    whole_answers = judges_answers(grader.item_kinds)
    needed_ids = set(doc_ids) - own_texts.keys()
    if judged and (texts_of.has_source or inputs.dropped.documents) and not whole_answers:
        needed_ids |= set(judged) - own_texts.keys()
    # Where all that was dropped was refused, that is the news, and not the missing passages.
    if not needed_ids and (doc_ids or inputs.rejected or whole_answers):
        return own_texts, (), ()
    # Without an item nothing is graded, and no text is needed.
    to_grade = len(inputs.bank) > 0
    read = texts_of.has_source or (to_grade and needed_ids.isdisjoint(inputs.dropped.documents))
    texts, rejected, notes = document_texts(needed_ids, inputs, texts_of, read=read)
    return {**texts, **own_texts} if own_texts else texts, rejected, notes


def document_texts(
    doc_ids: Collection[str], inputs: TrackInputs, texts_of: Texts, *, read: bool
) -> tuple[Mapping[str, str], tuple[Rejected, ...], tuple[str, ...]]:
    """Return the known texts of documents, rejected passage lines, and warnings.

    The track's texts take precedence over texts in responses.

    Args:
        read: read the track's texts; False uses only texts in responses.

    Raises:
        TrackError: `read` is True and the track has no texts.
    """
    documents = inputs.dropped.documents
    inline = {doc_id: documents[doc_id] for doc_id in doc_ids if doc_id in documents}
    texts, rejected = texts_of.of(doc_ids) if read else ({}, ())
    other = sorted(doc_id for doc_id, text in inline.items() if texts.get(doc_id, text) != text)
    note = (
        f"{plural(len(other), 'document')} came with responses in another text than the track's own passages "
        f"have: {shorten_list(other)}; the track's own count"
    )
    return {**inline, **texts} if inline else texts, rejected, (note,) if other else ()


def _judged_without_text(
    folder: TrackFolder, outside: Mapping[str, set[str]], added: Mapping[str, set[str]]
) -> Iterator[Rejected]:
    """Yield a row that counts the passages outside of the runs that have no text and are not pooled."""
    lost = [
        (query, doc) for query, docs in outside.items() for doc in sorted(docs) if doc not in added[query]
    ]
    if lost:
        file, (query_id, doc_id) = folder.qrels(), lost[0]
        reason = (
            f"{len(lost):,} of {sum(map(len, outside.values())):,} judged passages outside of the runs' "
            f"first ranks have no text to grade and are not pooled, '{doc_id}' of query '{query_id}' among "
            "them"
        )
        source = str(folder.config.track.dataset) if file is None else folder.shown(file)
        yield Rejected(source, None, reason, "cell")


def _without_text(
    folder: TrackFolder,
    inputs: TrackInputs,
    ids_with_text: Collection[str],
    depth: int,
    other_ids: Collection[str],
) -> Iterator[Rejected]:
    """Yield a row for each run with pooled documents without a text; `other_ids` differ in form alone."""
    for name, run in inputs.runs.items():
        pooled = [(query, doc) for query in inputs.bank.query_ids for doc in run.ranking(query, depth)]
        lost = [(query_id, doc_id) for query_id, doc_id in pooled if doc_id not in ids_with_text]
        if lost:
            query_id, doc_id = lost[0]
            reason = (
                f"{len(lost):,} of its {len(pooled):,} pooled passages have no text and count as not "
                f"relevant, '{doc_id}' of query '{query_id}' among them"
                f"{differing_in_form(dict.fromkeys(doc for _, doc in lost), other_ids)}"
            )
            yield Rejected(folder.shown(inputs.dropped.run_files[name]), None, reason, "cell")
