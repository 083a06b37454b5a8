"""Sentences of responses with what they cite, as the page shows them: without the runs that they are of."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from trecexam.features.judge_next.support import labels_to_make
from trecexam.graders.base import identity_digest

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.line.support import SupportCells, SupportPair


class CitedSentence(NamedTuple):
    """A sentence with a passage that it cites.

    Attributes:
        name: what it is called in addresses; it tells no run.
        key: (query_id, doc_id, item_id), as in overrides.tsv.
        machine: the grader's label 0..2, or a code of `trecexam.line.sheets`.
        before, after: the sentences around it in a response; "" where there is none.
    """

    name: str
    key: tuple[str, str, str]
    item: Item
    machine: int
    before: str
    after: str


@dataclass(frozen=True)
class SupportQueue:
    """What people can label.

    Attributes:
        sentences: in the order in which to label them, whoever labelled any.
        citing: (query_id, item_id) -> the sentence, and all that responses to the query cite for it.
        texts: doc_id -> text.
        grader_digest: the digest of the identity of the grader of support.
    """

    sentences: tuple[CitedSentence, ...]
    citing: Mapping[tuple[str, str], tuple[Item, tuple[str, ...]]]
    texts: Mapping[str, str]
    grader_digest: bytes

    @cached_property
    def by_name(self) -> Mapping[str, CitedSentence]:
        """The sentences by their names."""
        return {sentence.name: sentence for sentence in self.sentences}

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str, str], CitedSentence]:
        """The sentences by their keys."""
        return {sentence.key: sentence for sentence in self.sentences}


class PickledQueue:
    """A queue that is opened when somebody looks at it."""

    def __init__(self, state: bytes) -> None:
        self._state = state

    @cached_property
    def queue(self) -> SupportQueue:
        """It, opened."""
        # Our own pickle, out of our own process.
        opened: SupportQueue = pickle.loads(self._state)
        return opened


def support_queue(cells: SupportCells) -> SupportQueue:
    """The queue of these cells; those whose passages have no text cannot be read, and are left out.

    Args:
        cells: without people's labels.
    """
    planned = [row.pair for row in labels_to_make(cells, cells.pairs)]
    citing: dict[tuple[str, str], tuple[Item, tuple[str, ...]]] = {}
    for statement in cells.statements:
        key = statement.query_id, statement.item.item_id
        earlier = citing.get(key, (statement.item, ()))[1]
        citing[key] = statement.item, tuple(dict.fromkeys((*earlier, *statement.doc_ids)))
    return SupportQueue(
        tuple(_sentence(cells, pair) for pair in planned),
        citing,
        dict(cells.texts),
        identity_digest(cells.grades.identity),
    )


def _sentence(cells: SupportCells, pair: SupportPair) -> CitedSentence:
    place = pair.places[0]
    shown = cells.statements[place]
    of_response = cells.responses[shown.run, shown.query_id]
    around = [cells.statements[near].text if near in of_response else "" for near in (place - 1, place + 1)]
    name = hashlib.sha256("\0".join(pair.key).encode(errors="surrogatepass")).hexdigest()[:20]
    return CitedSentence(name, pair.key, pair.item, pair.machine, *around)
