"""Support: whether a passage that a sentence of a response cites says what the sentence says.

Each sentence is an item, and it is graded with the passages that it cites. Responses to a query that have the
same sentence share its item.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from converters.records import Item, Response
from converters.support_labels import LABELS
from trecexam.bank.model import STATEMENT, Bank
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.inputs.kind import Asked, ItemSources, Kind, MeasureFacts
from trecexam.scores.support import SUPPORT

#: How the item ids of sentences begin.
PREFIX = "statement:"
Citations = Literal["first", "all"]


class Statement(NamedTuple):
    """A sentence of a response.

    Attributes:
        place: in its response, from 1.
        doc_ids: the passages that are looked at, those cited first first.
        citations: how many passages it cites, each once; those out of range are not among them.
        out_of_range: how many citations name no reference.
    """

    run: str
    query_id: str
    place: int
    text: str
    doc_ids: tuple[str, ...]
    citations: int
    out_of_range: int

    @property
    def item_id(self) -> str:
        """Item id, made of the text, so that it tells no run."""
        return PREFIX + hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:16]

    @property
    def item(self) -> Item:
        """The sentence as an item."""
        return Item(self.query_id, self.item_id, self.text, STATEMENT)


def statements_of(run: str, response: Response, citations: Citations) -> list[Statement]:
    """The sentences of a response that are not blank, in its order."""
    limit = 1 if citations == "first" else None
    return [
        Statement(run, response.query_id, number, text, cited[:limit], len(cited), sentence.out_of_range)
        for number, sentence in enumerate(response.sentences, 1)
        for text in [sentence.text.strip()]
        if text
        for cited in [tuple(dict.fromkeys(citation.doc_id for citation in sentence.citations))]
    ]


def statements_to(
    responses: Mapping[str, Iterable[Response]], query_id: str, citations: Citations
) -> Iterator[Statement]:
    """The sentences of all responses to a query, run by run."""
    for run, of_run in responses.items():
        for response in of_run:
            if response.query_id == query_id:
                yield from statements_of(run, response, citations)


def _queries(bank: Bank, query_texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the queries of the bank; without one all with a text."""
    if bank.query_ids or bank.retired:
        return tuple(bank.query_ids)
    return tuple(sorted(query_id for query_id, text in query_texts.items() if text.strip()))


def _asked(sources: ItemSources) -> Asked:
    citations = sources.config.grader.citations
    # Of each query: text -> the first sentence that has it, and the passages that it is looked at with.
    cited: dict[str, dict[str, tuple[Statement, dict[str, None]]]] = {
        query_id: {} for query_id in _queries(sources.bank, sources.query_texts)
    }
    for run, responses in sources.responses.items():
        for response in responses:
            of_query = cited.get(response.query_id)
            for statement in () if of_query is None else statements_of(run, response, citations):
                if of_query is not None and statement.doc_ids:
                    _, doc_ids = of_query.setdefault(statement.text, (statement, {}))
                    doc_ids.update(dict.fromkeys(statement.doc_ids))
    items = {q: tuple(statement.item for statement, _ in of.values()) for q, of in cited.items()}
    citing = {q: tuple(tuple(doc_ids) for _, doc_ids in of.values()) for q, of in cited.items()}
    return Asked(Bank(items, {}), citing, _recorded_as(sources.responses, citations))


def _recorded_as(
    responses: Mapping[str, Iterable[Response]], citations: Citations
) -> Callable[[str, str, str], str]:
    """Recordings know a sentence by RUN/QUERY_ID/PLACE: the first that cites the passage."""

    @lru_cache(maxsize=1)
    def of_query(query_id: str) -> Mapping[tuple[str, str], str]:
        names: dict[tuple[str, str], str] = {}
        for each in statements_to(responses, query_id, citations):
            for doc_id in each.doc_ids:
                names.setdefault((each.item_id, doc_id), f"{each.run}/{query_id}/{each.place}")
        return names

    return lambda query_id, item_id, doc_id: of_query(query_id)[item_id, doc_id]


def _named(sources: ItemSources, query_id: str, name: str) -> Item:
    """Return the Nth sentence of a run's response for RUN:N, or raise a TrecexamError."""
    run, _, number = name.rpartition(":")
    n_sentences: Counter[str] = Counter()
    for each in statements_to(sources.responses, query_id, sources.config.grader.citations):
        if name in (each.item_id, f"{each.run}:{each.place}"):
            return each.item
        n_sentences[each.run] += 1
    if not n_sentences:
        query_ids = {each.query_id for of_run in sources.responses.values() for each in of_run}
        raise TrecexamError(
            f"no response to query '{query_id}'{did_you_mean(query_id, query_ids, before='; ')}"
        )
    if run in n_sentences and number.lstrip("-").isdecimal():
        has = f"it has {n_sentences[run]:,}, counted from 1"
        raise TrecexamError(
            f"the response of '{run}' to query '{query_id}' has no sentence {number[:40]}: {has}"
        )
    raise TrecexamError(
        f"query '{query_id}' has no sentence '{name[:80]}': name it by RUN:N, as in support.tsv"
        f"{did_you_mean(run, set(n_sentences), before='; ')}"
    )


def _measures(facts: MeasureFacts) -> tuple[str, ...]:
    named = facts.config.scores.measures
    return SUPPORT if named is None else tuple(dict.fromkeys(named))


KIND = Kind(
    "support",
    frozenset({STATEMENT}),
    {"track": {"unit": "response"}, "grader": {"prompt": "TRECRAG2024Support"}},
    _measures,
    lambda _: SUPPORT[2:],
    queries=_queries,
    items=_asked,
    graders={
        "embedding": "trecexam.inputs.kinds.support_graders:create_embedding",
        "recorded": "trecexam.inputs.kinds.support_graders:create_recorded",
    },
    words=LABELS,
    cell_noun="citation",
    ranks=False,
    item_named=_named,
)
