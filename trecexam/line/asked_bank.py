"""What of a track's bank its grader asks about, and what stands in the way of the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from converters.gold import KIND as GOLD
from trecexam.bank import Bank
from trecexam.bank.asked import QUERY, asked
from trecexam.errors import TrackError
from trecexam.files.stamps import Rejected
from trecexam.line.judged_answers import JUDGED
from trecexam.tables.text import shorten_list
from trecexam.track import TrackFolder


def asked_bank(
    folder: TrackFolder,
    bank: Bank,
    texts: Mapping[str, str],
    files: Sequence[Path],
    kinds: Collection[str],
    *,
    with_query: bool = False,
    known: Collection[str] | None = None,
) -> tuple[Bank, list[Rejected]]:
    """What of the bank is graded, and why the rest of its queries is not.

    Args:
        texts: query_id -> text.
        files: of the bank.
        kinds, with_query, known: as for `trecexam.bank.asked.asked`.

    Raises:
        TrackError: nothing is.
    """
    part = asked(bank, kinds, texts, with_query=with_query, known=known)
    if not part.query_ids:
        _refuse_nothing(folder, bank, part, texts, files, kinds, with_query, known)
        return part, []
    needs_text = known is None and (QUERY in kinds or with_query)
    without_text = [query_id for query_id in bank.query_ids if needs_text and query_id not in part.items]
    rejected = [
        Rejected(folder.shown(folder.root), None, f"query '{query_id}' has no text")
        for query_id in without_text
    ]
    unknown = [] if known is None else [query_id for query_id in bank.query_ids if query_id not in part.items]
    if unknown:
        reason = (
            f"no grades of {len(unknown):,} of the bank's {len(bank.query_ids):,} queries, which "
            f"are not evaluated: {shorten_list(unknown)}"
        )
        rejected.append(Rejected(folder.shown(folder.recorded() or folder.config_path), None, reason))
    where = folder.shown(files[0]) if len(files) == 1 else "the bank"
    rejected += (
        Rejected(where, None, f"all items of query '{query_id}' are retired: it is not evaluated")
        for query_id in part.retired
        if query_id not in part.items and query_id not in without_text
    )
    return part, rejected


def _refuse_nothing(
    folder: TrackFolder,
    bank: Bank,
    part: Bank,
    texts: Mapping[str, str],
    files: Sequence[Path],
    kinds: Collection[str],
    with_query: bool,
    known: Collection[str] | None,
) -> None:
    """Says why nothing is asked about, where the bank has something at all."""
    if part.retired and not asked(bank, kinds, texts).query_ids:
        raise TrackError(
            'every item that could be asked about is retired: take "retired" off some', path=files[0]
        )
    if known is not None:
        raise TrackError(
            f"the recording has grades of none of the bank's queries, but of {shorten_list(list(known))}",
            path=folder.root,
        )
    if QUERY in kinds:
        raise TrackError(
            "this prompt asks about the queries, and there are none: put queries.tsv here", path=folder.root
        )
    if not bank.query_ids:
        return
    if with_query and asked(bank, kinds, texts).query_ids:
        raise TrackError(
            "this prompt names {query}, and no query of the bank has a text: put queries.tsv here",
            path=folder.root,
        )
    if GOLD in kinds:
        raise TrackError(
            'no gold outputs in it: a line is {"query_id": ..., "outputs": [...]}, or KILT\'s', path=files[0]
        )
    if frozenset(kinds) >= JUDGED:
        raise TrackError(
            "the bank has no questions with their knowledge blocks: `trecexam ragval questions` writes them",
            path=folder.root,
        )
    raise TrackError(
        f"this prompt asks about {' and '.join(f'{kind}s' for kind in sorted(kinds))}, and the bank "
        "has none; see `prompt` in [grader]",
        path=folder.config_path,
    )
