"""Sentences of responses that a person labels with what they cite, by the names that people give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.tables.text import shorten_list

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.line.assessment import Assessment
    from trecexam.line.support import Statement, SupportCells


def cited_by(
    track: Assessment, query_id: str, name: str, doc_id: str
) -> tuple[Item, Mapping[str, str | None]]:
    """A sentence of a response to a query, and the texts of what all responses to it cite for that sentence.

    Args:
        name: its id, or RUN:N for the Nth sentence of a run's response.
        doc_id: the passage that is to be labelled.

    Raises:
        TrecexamError: there is no such sentence, or it does not cite that passage.
    """
    cells, root = track.support, track.folder.root
    if cells is None:
        raise TrecexamError(
            "labels of cited passages count with a section [support] in trecexam.toml; it may be empty",
            path=track.folder.config_path,
        )
    named = list(_named(cells, query_id, name))
    if not named:
        raise TrecexamError(_unknown(cells, query_id, name), path=root)
    item = named[0].item
    alike = _named(cells, query_id, item.item_id)
    texts = {cited: cells.texts.get(cited) for statement in alike for cited in statement.doc_ids}
    if doc_id not in texts:
        looked_at = f"those looked at are {shorten_list(texts)}" if texts else "nothing is looked at"
        raise TrecexamError(
            f"'{doc_id}' is not cited by this sentence, or not looked at: {looked_at}", path=root
        )
    return item, texts


def _named(cells: SupportCells, query_id: str, name: str) -> Iterator[Statement]:
    run, _, place = name.rpartition(":")
    for statement in cells.statements:
        if statement.query_id == query_id and (
            statement.item.item_id == name or (statement.run, str(statement.place)) == (run, place)
        ):
            yield statement


def _unknown(cells: SupportCells, query_id: str, name: str) -> str:
    queries = {statement.query_id for statement in cells.statements}
    if query_id not in queries:
        return f"no response to query '{query_id}'{did_you_mean(query_id, queries, before='; ')}"
    run, _, place = name.rpartition(":")
    n_sentences = Counter(each.run for each in cells.statements if each.query_id == query_id)
    if run in n_sentences and place.lstrip("-").isdecimal():
        has = f"it has {n_sentences[run]:,}, counted from 1"
        return f"the response of '{run}' to query '{query_id}' has no sentence {place[:40]}: {has}"
    hint = did_you_mean(run, set(n_sentences), before="; ")
    return (
        f"query '{query_id}' has no sentence '{name[:80]}': name it by RUN:N, as in support.tsv, or by the "
        f"id that `trecexam judge-next --support` shows{hint}"
    )
