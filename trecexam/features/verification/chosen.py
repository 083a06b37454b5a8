"""Of what a view of `trecexam verify` is: the queries asked for, their items, the official judgments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError, did_you_mean, quoted
from trecexam.line.diagnostics import resolve_min_rating
from trecexam.line.official import no_overlap, official_judgments
from trecexam.line.relevance import relevance_thresholds
from trecexam.scores.ratings import QueryRatings
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

Ids = Collection[str] | None
Judgments = Mapping[str, Mapping[str, int]]


def unused_note(track: Assessment) -> tuple[str, ...]:
    """A line on why the official judgments say nothing of the pool; () where they do, or there are none."""
    if track.official is None and track.folder.qrels() is None:
        return ()
    try:
        reason = no_overlap(track, official_judgments(track), _pooled(track))
    except TrecexamError as error:
        reason = str(error)
    return () if reason is None else (f"no judgments shown: {reason}",)


def thresholds(track: Assessment, min_rating: int | None, min_relevant: int | None) -> tuple[int, int]:
    """From which rating and from which judgment on a passage counts."""
    resolve_min_rating(track, min_rating)
    at = relevance_thresholds(track, min_rating, min_relevant)
    return at.min_rating, at.min_relevant


def known_judgments(track: Assessment) -> Judgments:
    """query_id -> doc_id -> the official judgment; nothing where there are none."""
    return {} if track.official is None else official_judgments(track).judged


def judged_queries(
    track: Assessment, query_ids: Ids, item_ids: Ids = None
) -> tuple[Sequence[QueryRatings], Judgments]:
    """The ratings of the queries asked for, and the official judgments, of at least one of them."""
    judged = official_judgments(track)
    queries = chosen_queries(track, query_ids, item_ids)
    reason = no_overlap(track, judged, _pooled(track))
    if reason is None and not any(q.query_id in judged.judged for q in queries):
        id_list = shorten_list([q.query_id for q in queries], 3, dots=True)
        reason = f"{judged.source}: no official judgments of {id_list}"
    if reason is not None:
        raise TrecexamError(reason)
    return queries, judged.judged


def unjudged_note(query_ids: Sequence[str]) -> tuple[str, ...]:
    """A line on the queries that have no official judgments; () where there are none such."""
    if not query_ids:
        return ()
    some = shorten_list(query_ids, 3, dots=True)
    return (f"left out because they have no official judgments: {plural(len(query_ids), 'query')} ({some})",)


def chosen_queries(
    track: Assessment, query_ids: Ids = None, item_ids: Ids = None, doc_ids: Ids = None
) -> Sequence[QueryRatings]:
    """The ratings of the queries asked for, of those that have the items asked for.

    Raises:
        TrecexamError: nothing is graded yet, or an id is not in the track.
    """
    folder, bank = track.folder, track.bank
    bank_ids = bank.query_ids
    _refuse_unknown(query_ids, bank_ids, "query", "in the bank", track)
    chosen = [query_id for query_id in bank_ids if query_ids is None or query_id in query_ids]
    items = {query_id: [item.item_id for item in bank.items[query_id]] for query_id in chosen}
    in_bank = [item_id for of_query in items.values() for item_id in of_query]
    _refuse_unknown(item_ids, in_bank, "item", "in the bank", track)
    counts = track.counts
    ratings = track.ratings()
    if counts.cells == counts.missing + counts.no_text_cells and not any(q.rated.any() for q in ratings):
        first = "" if track.runs else f"drop runs into {folder.runs}, then "
        raise TrecexamError(
            f"nothing is graded yet: {first}`trecexam watch {quoted(folder.root)} --once` grades",
            path=folder.root,
        )
    kept_ids = {q for q in chosen if item_ids is None or any(i in item_ids for i in items[q])}
    queries = [q for q in ratings if q.query_id in kept_ids]
    _refuse_unknown(doc_ids, {d for q in queries for d in q.doc_ids}, "passage", "in the pool", track)
    return queries


def _refuse_unknown(ids: Ids, known_ids: Collection[str], what: str, where: str, track: Assessment) -> None:
    for unknown in ids or ():
        if unknown not in known_ids:
            hint = did_you_mean(unknown, known_ids, before="; ")
            raise TrecexamError(f"no {what} '{unknown}' {where}{hint}", path=track.folder.root)


def _pooled(track: Assessment) -> Mapping[str, Sequence[str]]:
    return {q.query_id: q.doc_ids for q in track.ratings()}
