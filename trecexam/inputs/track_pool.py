"""The pool of a track, with what store and grader know each passage by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from converters.gold import KIND as GOLD
from converters.records import judgment
from trecexam.bank.model import QUERY
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.inputs.dropped_files import judges_answers
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.pool import PooledQuery, pool_with_ranks
from trecexam.inputs.texts import Texts
from trecexam.inputs.track_inputs import TrackInputs
from trecexam.inputs.typed_text import differing_in_form, other_forms
from trecexam.results.text import plural, shorten_list


class TrackPool(NamedTuple):
    """The pool of a track.

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
    folder: TrackFolder,
    inputs: TrackInputs,
    grader: Grader,
    texts_of: Texts,
    depth: int,
) -> TrackPool:
    """Pool the first ranks of the runs and, where the track says so, passages that no run has.

    Raises:
        TrackError: some of the runs' passages are not those of generated responses, and the track has items
            to grade them on and no passages at all.
    """
    by_id = grader.known_passages is not None
    queries = pool_with_ranks(tuple(inputs.runs.values()), inputs.bank.query_ids, depth)
    doc_ids = {doc_id for of_query in queries.values() for doc_id in of_query.doc_ids}
    outside = _outside(folder, inputs, grader, queries)
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
    no_text = without_text(folder, inputs, keys, depth, known) if lost and to_read else ()
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
    folder: TrackFolder, inputs: TrackInputs, grader: Grader, queries: Mapping[str, PooledQuery]
) -> dict[str, set[str]]:
    """Return passages that are pooled though no run has them: judged ones, or those a grader knows by id."""
    known_passages, track = grader.known_passages, folder.config.track
    if known_passages is None:
        return _judged_outside(folder, inputs, queries) if track.pool_judged else {}
    return {
        query_id: set(known_passages[query_id]).difference(
            of_query.doc_ids, (query_id,) if track.exclude_query_document else ()
        )
        for query_id, of_query in queries.items()
    }


def _judged_outside(
    folder: TrackFolder, inputs: TrackInputs, queries: Mapping[str, PooledQuery]
) -> dict[str, set[str]]:
    """Return the officially judged passages of the pool's queries that the pool does not have, by query."""
    outside: dict[str, set[str]] = {}
    for row in inputs.official or ():
        if judgment(row.relevance) is not None and row.query_id in queries:
            outside.setdefault(row.query_id, set()).add(row.doc_id)
    for query_id, doc_ids in outside.items():
        doc_ids.difference_update(queries[query_id].doc_ids)
        if folder.config.track.exclude_query_document:
            doc_ids.discard(query_id)
    return {query_id: doc_ids for query_id, doc_ids in outside.items() if doc_ids}


def _judged_without_text(
    folder: TrackFolder, outside: Mapping[str, Collection[str]], added: Mapping[str, Collection[str]]
) -> Iterator[Rejected]:
    """Yield a row that counts the passages outside of the runs that have no text and are not pooled."""
    lost = [
        (query_id, doc_id)
        for query_id, doc_ids in outside.items()
        for doc_id in sorted(doc_ids)
        if doc_id not in added[query_id]
    ]
    if lost:
        file = folder.qrels()
        query_id, doc_id = lost[0]
        yield Rejected(
            str(folder.config.track.dataset) if file is None else folder.shown(file),
            None,
            f"{len(lost):,} of {sum(map(len, outside.values())):,} judged passages outside of the runs' "
            f"first ranks have no text to grade and are not pooled, '{doc_id}' of query '{query_id}' among "
            "them",
            "cell",
        )


def count_judged_outside(folder: TrackFolder) -> int:
    """Count the judged passages of the bank's queries that no run has in its first `depth` ranks.

    They are 0 where the runs have no judged passage at any rank: then ids differ.
    """
    kinds = ("question", "nugget", GOLD) if folder.bank(optional=True) else (QUERY,)
    inputs = read_inputs(folder, Needs(frozenset(kinds)))
    runs, judged_ids = tuple(inputs.runs.values()), {row.doc_id for row in inputs.official or ()}
    rankings = (run.ranking(query_id) for run in runs for query_id in run.query_ids)
    if runs and all(judged_ids.isdisjoint(ranking) for ranking in rankings):
        return 0
    queries = pool_with_ranks(runs, inputs.bank.query_ids, folder.config.track.depth)
    return sum(map(len, _judged_outside(folder, inputs, queries).values()))


def _texts(
    doc_ids: Collection[str],
    judged: Collection[str],
    inputs: TrackInputs,
    grader: Grader,
    texts_of: Texts,
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
    """Return the texts of documents, as far as there are, the passage lines rejected, and warnings.

    The track's own texts count before those that come with responses.

    Args:
        read: the track's own texts; False where those of responses alone are meant.

    Raises:
        TrackError: they are to be read, and the track has none.
    """
    inline = {
        doc_id: inputs.dropped.documents[doc_id] for doc_id in doc_ids if doc_id in inputs.dropped.documents
    }
    texts, rejected = texts_of.of(doc_ids) if read else ({}, ())
    if not inline:
        return texts, rejected, ()
    other = sorted(doc_id for doc_id, text in inline.items() if texts.get(doc_id, text) != text)
    note = (
        f"{plural(len(other), 'document')} came with responses in another text than the track's own passages "
        f"have: {shorten_list(other)}; the track's own count"
    )
    return {**inline, **texts}, rejected, (note,) if other else ()


def without_text(
    folder: TrackFolder,
    inputs: TrackInputs,
    ids_with_text: Collection[str],
    depth: int,
    other_ids: Collection[str] = (),
) -> Iterator[Rejected]:
    """Yield a row for each run with pooled documents that no passages file has.

    Args:
        ids_with_text: ids of the documents that have a text.
        depth: ranks of each run that are pooled.
        other_ids: ids that have a text, and are those of lost documents in another normal form.
    """
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
