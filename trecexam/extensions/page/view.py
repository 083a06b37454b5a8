"""Immutable data of the pages: a `View` of a track, and on request a `QueryView` of a query.

The reading process makes both (`gather.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from converters.records import HumanRating, Item
from trecexam.bank.model import QUERY, STATEMENT
from trecexam.grades.sheets import NOT_ASKED, Counts
from trecexam.inputs.overrides import JudgingScale
from trecexam.results.result import Tables
from trecexam.scores.leaderboard import Leaderboard

if TYPE_CHECKING:
    from trecexam.results.page.page import Section


@dataclass(frozen=True, eq=False)
class QueryView:
    """A query: items, pooled passages with texts and ratings, and the runs' rankings.

    Attributes:
        items: in the bank's order; an item's 1-based place is its index. `retired` ones are apart.
        doc_ids: the pooled passages, sorted; rows of `ratings` and `codes`, whose columns are the items.
        texts: None where the track has no text.
        keys: keys of the passages in the store, mostly texts; None if not gradable.
        ratings: as they count, people's in the grader's place; -1 if missing.
        codes: the grader's alone: 0..5, or a code of `trecexam.grades.sheets` (missing, unparsed ...).
        labels: of each passage, None if missing.
        judgments: doc_id -> official judgment, of passages outside of the pool too.
        human: (doc_id, item_id or "" for the passage as a whole) -> the rating that counts.
        rankings: run -> its first ranks, as places in `doc_ids`.
        retrieved: run -> how many passages it has for the query in all.
        around: item_id -> the sentences around it in a response, "" if missing; {} where items are
            no sentences.
    """

    query_id: str
    text: str
    items: tuple[Item, ...]
    retired: tuple[Item, ...]
    doc_ids: tuple[str, ...]
    texts: tuple[str | None, ...]
    keys: tuple[str | None, ...]
    ratings: NDArray[np.int8]
    codes: NDArray[np.int8]
    labels: tuple[int | None, ...]
    judgments: Mapping[str, int]
    human: Mapping[tuple[str, str], HumanRating]
    rankings: Mapping[str, tuple[int, ...]]
    retrieved: Mapping[str, int]
    around: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def has_bank(self) -> bool:
        """True if its items come from a bank, not from the query or from responses."""
        return all(item.kind not in {QUERY, STATEMENT} for item in self.items)

    def place(self, doc_id: str) -> int | None:
        """Return the passage's row; None if it is not in the pool."""
        return self.doc_ids.index(doc_id) if doc_id in self.doc_ids else None

    def items_of(self, row_index: int) -> tuple[tuple[int, Item], ...]:
        """Return a passage's items with their columns."""
        codes = self.codes[row_index].tolist()
        return tuple((n, item) for n, item in enumerate(self.items) if codes[n] != NOT_ASKED)

    def ranks(self, row_index: int) -> dict[str, int]:
        """Return run -> rank, from 1, of runs with this passage in their first ranks; best first."""
        ranks = {
            run: order.index(row_index) + 1 for run, order in self.rankings.items() if row_index in order
        }
        return dict(sorted(ranks.items(), key=lambda pair: (pair[1], pair[0])))


@dataclass(frozen=True, eq=False)
class View:
    """A snapshot of a track.

    Attributes:
        version: differs for each state.
        root, name: the track's folder, and what the page calls it; `store` is where its grades are.
        grader: its name; `grader_digest` is the digest of its identity.
        pool_judged: whether judged passages are pooled that no run has in its first `depth` ranks.
        max_rating: the best rating on the grader's scale, 0..max_rating.
        least: the label from which on a passage is relevant to the grader.
        min_relevant: the official judgment from which on a passage is relevant.
        board: the leaderboard with the groups of runs that do not differ; then that on official judgments.
        runs: name -> file, sorted by name.
        queries: query_id -> its text, "" if missing, in the bank's order.
        is_judged: there are official judgments of what the grader rates.
        n_rejected: rejected files and lines; `input_notes` are warnings about accepted ones.
        sections: what extensions add to the report.
        words: what people call the ratings 0, 1, 2 ...; () where they say the number. `scale` is that of
            judgments of passages as a whole; None where these have the grader's scale.
        is_cited: items are sentences of responses, and are graded with the passages that they cite.
        grader_name: the grader of this view; `graders` are all of the track, () where it is the only one.
        joint: the leaderboard of all graders; `other_views` has their views, and `unable` says why some
            have none. Only in the first grader's view.
        ask: gives the `QueryView` of a query; set where the view is shown.
    """

    version: int
    root: str
    name: str
    store: str
    grader: str
    grader_digest: bytes
    depth: int
    pool_judged: bool
    min_rating: int
    max_rating: int
    least: int
    min_relevant: int
    board: Tables
    runs: Mapping[str, str]
    queries: Mapping[str, str]
    counts: Counts
    is_judged: bool
    n_rejected: int
    input_notes: tuple[str, ...]
    sections: tuple[Section, ...] = ()
    words: tuple[str, ...] = ()
    scale: JudgingScale | None = None
    is_cited: bool = False
    grader_name: str = ""
    graders: tuple[str, ...] = ()
    joint: Leaderboard | None = None
    other_views: Mapping[str, View] = field(default_factory=dict, repr=False)
    unable: Mapping[str, str] = field(default_factory=dict)
    ask: Callable[[View, str], QueryView | None] | None = field(default=None, repr=False)

    def of(self, grader: str | None) -> View | None:
        """Return the view of a grader (None: this one); None if there is no such grader."""
        return self if grader in (None, self.grader_name) else self.other_views.get(grader)

    def query(self, query_id: str) -> QueryView | None:
        """Return a query with its passages; None if the bank lacks it."""
        return None if self.ask is None or query_id not in self.queries else self.ask(self, query_id)
