"""Declaration of a kind of grading: its items, settings and measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from converters.records import Item, Response
from trecexam.bank.model import Bank
from trecexam.config import TrackConfig


class ItemSources(NamedTuple):
    """Inputs for kinds whose items are not in the bank.

    Attributes:
        bank: the whole one.
        query_texts: query_id -> text.
        responses: those of generated runs to queries of the bank, by the runs' display names.
        config: the grader's settings.
    """

    bank: Bank
    query_texts: Mapping[str, str]
    responses: Mapping[str, tuple[Response, ...]]
    config: TrackConfig


class Asked(NamedTuple):
    """The items that a grader asks about.

    Attributes:
        bank: these; a query may have none.
        citing: query_id -> the doc_ids that each of its items is graded with; None: every pooled text.
        recorded_as: (query_id, item_id, doc_id) -> the item's name in recordings; None: its id.
    """

    bank: Bank
    citing: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    recorded_as: Callable[[str, str, str], str] | None = None

    def cited_by(self, query_ids: Collection[str]) -> frozenset[tuple[str, str, str]] | None:
        """Return (query_id, doc_id, item_id) of these queries' cells; None for every text with every item."""
        if self.citing is None:
            return None
        return frozenset(
            (query_id, doc_id, item.item_id)
            for query_id in query_ids
            if query_id in self.citing
            for item, doc_ids in zip(self.bank.items[query_id], self.citing[query_id], strict=True)
            for doc_id in doc_ids
        )


class MeasureFacts(NamedTuple):
    """The facts that measures follow from.

    Attributes:
        config: on the scale of the grader.
        bank: what the grader asks about.
        responses_only: all runs are generated responses, and there is one.
        max_rating: the best of the grader's scale.
    """

    config: TrackConfig
    bank: Bank
    responses_only: bool
    max_rating: int


@dataclass(frozen=True)
class Kind:
    """A kind of grading.

    Attributes:
        name: as `kind` in [graders.NAME] has it.
        item_kinds: what its prompt may ask about; the grader's other items are left out.
        settings: by section and key, where trecexam.toml says nothing.
        measures: on its ratings, in leaderboard order.
        columns: the measures that stand on the leaderboard of several graders.
        queries: the queries that means are over; None: those with items.
        items: the items to grade; None: the bank's items of these kinds, or the queries themselves.
        graders: "module:name" of what makes its grader, by `name` of [grader], where others have another one.
        words: names of the ratings 0, 1, 2 ...; () for the numbers.
        cell_noun: what one of its cells is called.
        ranks: labels are of documents that runs rank, so that official judgments can be set against them.
        item_named: (sources, query_id, name) -> the item that people know by this name; raises TrecexamError
            with what is wrong with the name. None: ids and indexes are all names.
    """

    name: str
    item_kinds: frozenset[str]
    settings: Mapping[str, Mapping[str, Any]]
    measures: Callable[[MeasureFacts], tuple[str, ...]]
    columns: Callable[[MeasureFacts], tuple[str, ...]]
    queries: Callable[[Bank, Mapping[str, str]], tuple[str, ...]] | None = None
    items: Callable[[ItemSources], Asked] | None = None
    graders: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    cell_noun: str = "cell"
    ranks: bool = True
    item_named: Callable[[ItemSources, str, str], Item] | None = None
