"""Sentences of responses with what they cite, as the page shows them: without the runs that they are of."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from trecexam.extensions.campaign.judge_next.cited import cited_pairs, labels_to_make
from trecexam.features.override.overriding import QueryToRate
from trecexam.graders.base import identity_digest
from trecexam.line.cited import responses_by_query
from trecexam.line.kinds.support import statements_of

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.extensions.campaign.judge_next.cited import CitedPair
    from trecexam.line.assessment import Assessment


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
        grader: its name in the track.
        sentences: in the order in which to label them, whoever labelled any.
        citing: (query_id, item_id) -> the sentence, and all that responses to the query cite for it.
        texts: doc_id -> text.
        grader_digest: the digest of the identity of the grader.
        max_rating: the best label.
    """

    grader: str
    sentences: tuple[CitedSentence, ...]
    citing: Mapping[tuple[str, str], tuple[Item, tuple[str, ...]]]
    texts: Mapping[str, str]
    grader_digest: bytes
    max_rating: int

    @cached_property
    def by_name(self) -> Mapping[str, CitedSentence]:
        """The sentences by their names."""
        return {sentence.name: sentence for sentence in self.sentences}

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str, str], CitedSentence]:
        """The sentences by their keys."""
        return {sentence.key: sentence for sentence in self.sentences}

    def to_rate(self, sentence: CitedSentence) -> QueryToRate:
        """The sentence as it is to a person who labels it."""
        item, doc_ids = self.citing[sentence.item.query_id, sentence.item.item_id]
        texts = {doc_id: self.texts.get(doc_id) for doc_id in doc_ids}
        return QueryToRate(item.query_id, (item,), (), texts, 0, self.max_rating)


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


def support_queue(track: Assessment) -> SupportQueue:
    """What people can label of what responses cite; passages without a text cannot be read."""
    assert track.asked.citing is not None
    planned = [row.pair for row in labels_to_make(track, list(cited_pairs(track)))]
    citing = {
        (query_id, item.item_id): (item, doc_ids)
        for query_id, of_query in track.asked.citing.items()
        for item, doc_ids in zip(track.bank.items[query_id], of_query, strict=True)
    }
    around = dict(_around(track))
    return SupportQueue(
        track.name,
        tuple(
            _sentence(pair, *around[pair.item.query_id, pair.item.text, pair.responses[0]])
            for pair in planned
        ),
        citing,
        dict(track.texts),
        identity_digest(track.grader.identity),
        track.traits.scale.max_rating,
    )


def _around(track: Assessment) -> Iterator[tuple[tuple[str, str, tuple[str, str]], tuple[str, str]]]:
    """(query_id, a sentence, (run, query_id) of a response) -> the sentences around it there."""
    citations = track.config.grader.citations
    for query_id, given in responses_by_query(track, track.responses, track.bank.query_ids):
        for run, response in given:
            texts = ["", *(each.text for each in statements_of(run, response, citations)), ""]
            # Of a sentence that stands there twice, the first.
            for place in range(len(texts) - 2, 0, -1):
                yield (query_id, texts[place], (run, query_id)), (texts[place - 1], texts[place + 1])


def _sentence(pair: CitedPair, before: str, after: str) -> CitedSentence:
    name = hashlib.sha256("\0".join(pair.key).encode(errors="surrogatepass")).hexdigest()[:20]
    return CitedSentence(name, pair.key, pair.item, pair.machine, before, after)
