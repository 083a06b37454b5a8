"""The sentences of a track's responses with the passages they cite, and what a grader says of each pair."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from converters.records import HumanRating, Item, Response
from trecexam.files.stamps import Rejected
from trecexam.graders.base import Cell
from trecexam.graders.support import STATEMENT
from trecexam.line.sheets import MISSING, UNPARSED, SheetShape
from trecexam.line.stored_grades import StoredGrades
from trecexam.line.texts import Texts
from trecexam.scores.support import SUPPORT, WEIGHTS, support_scores
from trecexam.scores.values import MeasureValues

#: The code of a citation whose passage has no text.
NO_TEXT = -5
#: How the item ids of statements begin.
PREFIX = "statement:"


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
    def item(self) -> Item:
        """The sentence as an item; its id is made of its text, so that it tells no run."""
        digest = hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()
        return Item(self.query_id, f"{PREFIX}{digest[:16]}", self.text, STATEMENT)


class SupportPair(NamedTuple):
    """A sentence with a passage that it cites, whichever responses to the query have both.

    Attributes:
        doc_id: the first of the passages with this text; `passage` is the text, None where there is none.
        machine: the grader's code alone; `code` is what counts.
        places: of the responses' sentences among `SupportCells.statements`.
    """

    item: Item
    doc_id: str
    passage: str | None
    machine: int
    code: int
    places: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """(query_id, doc_id, item_id), as in overrides.tsv."""
        return self.item.query_id, self.doc_id, self.item.item_id


def statements_of(
    responses: Mapping[str, Sequence[Response]], citations: Literal["first", "all"]
) -> tuple[Statement, ...]:
    """The sentences of the responses that are not blank, by run, in each file's order."""
    return tuple(
        Statement(run, response.query_id, place, sentence.text.strip(), cited[:limit], len(cited), outside)
        for limit in [1 if citations == "first" else None]
        for run, of_run in responses.items()
        for response in of_run
        for place, sentence in enumerate(response.sentences, 1)
        if sentence.text.strip()
        for cited in [tuple(dict.fromkeys(citation.doc_id for citation in sentence.citations))]
        for outside in [sentence.out_of_range]
    )


@dataclass(frozen=True, eq=False)
class SupportCells:
    """Sentences, what they cite, and the labels of these pairs.

    Attributes:
        statements: by run, in each file's order.
        machine: of each statement, the grader's codes of its `doc_ids`: 0 none, 1 partial, 2 full support, or
            those of `trecexam.line.sheets`, or `NO_TEXT`.
        texts: doc_id -> text of the cited passages that have one.
        citations: "first" or "all".
        grades: what the grader of support wrote, as it is stored.
        rejected: passage lines that were not taken.
        human: (query_id, doc_id, item_id) -> the label of a person that counts there.
    """

    statements: tuple[Statement, ...]
    machine: tuple[tuple[int, ...], ...]
    texts: Mapping[str, str]
    citations: Literal["first", "all"]
    grades: StoredGrades
    rejected: tuple[Rejected, ...] = ()
    human: Mapping[tuple[str, str, str], HumanRating] = field(default_factory=dict)

    @cached_property
    def codes(self) -> tuple[tuple[int, ...], ...]:
        """The codes that count: as `machine`, with people's labels in the grader's place."""
        if not self.human:
            return self.machine
        return tuple(
            tuple(
                code if row is None or row.rating is None else row.rating
                for row, code in zip(self.human_rows(place), codes, strict=True)
            )
            for place, codes in enumerate(self.machine)
        )

    def human_rows(self, place: int) -> tuple[HumanRating | None, ...]:
        """People's labels of what a statement cites, None where there is none."""
        statement = self.statements[place]
        if not self.human:
            return (None,) * len(statement.doc_ids)
        item_id = statement.item.item_id
        return tuple(self.human.get((statement.query_id, doc_id, item_id)) for doc_id in statement.doc_ids)

    @cached_property
    def digest(self) -> str:
        """Equal exactly when statements, codes and people's labels are."""
        human = (self.machine, sorted(self.human.items())) if self.human else ()
        content = repr((self.statements, self.codes, *human))
        return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()

    @cached_property
    def pairs(self) -> tuple[SupportPair, ...]:
        """What a person can label: each sentence with each passage, once for all responses to a query."""
        places: dict[tuple[str, str, str | None, str], list[tuple[int, int]]] = {}
        for place, statement in enumerate(self.statements):
            for column, doc_id in enumerate(statement.doc_ids):
                text = self.texts.get(doc_id)
                key = statement.query_id, statement.text, text, doc_id if text is None else ""
                places.setdefault(key, []).append((place, column))
        return tuple(
            SupportPair(
                self.statements[place].item,
                self.statements[place].doc_ids[column],
                passage,
                self.machine[place][column],
                self.codes[place][column],
                tuple(dict.fromkeys(each for each, _ in alike)),
            )
            for (_, _, passage, _), alike in places.items()
            for place, column in alike[:1]
        )

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many `pairs` there are (`cells`), `graded`, labelled `by_people`, and with `no_text`."""
        return {
            "cells": len(self.pairs),
            "graded": sum(pair.machine >= 0 for pair in self.pairs),
            "by_people": sum(pair.key in self.human for pair in self.pairs),
            "no_text": sum(pair.passage is None for pair in self.pairs),
        }

    def missing(self) -> Iterator[Cell]:
        """Every pair with a text and without a grade; equal ones once.

        The item's id is RUN/QUERY_ID/PLACE, by which recordings know a sentence.
        """
        asked: set[tuple[str, str]] = set()
        for statement, codes in zip(self.statements, self.machine, strict=True):
            for doc_id, code in zip(statement.doc_ids, codes, strict=True):
                if code != MISSING or (statement.text, self.texts[doc_id]) in asked:
                    continue
                asked.add((statement.text, self.texts[doc_id]))
                recorded_as = f"{statement.run}/{statement.query_id}/{statement.place}"
                item = statement.item._replace(item_id=recorded_as)
                yield Cell(statement.query_id, "", doc_id, self.texts[doc_id], item)

    def weights(self, place: int) -> tuple[float, ...]:
        """The weights of a statement's citations that are looked at, as `support_scores` takes them."""
        statement = self.statements[place]
        known = tuple(WEIGHTS[code] if code >= 0 else 0.0 for code in self.codes[place])
        if self.citations == "all":
            return known + (0.0,) * statement.out_of_range
        return known or (0.0,) * min(1, statement.out_of_range)

    @cached_property
    def responses(self) -> Mapping[tuple[str, str], tuple[int, ...]]:
        """(run, query_id) -> the places in `statements` of the response's sentences."""
        places: dict[tuple[str, str], list[int]] = {}
        for place, statement in enumerate(self.statements):
            places.setdefault((statement.run, statement.query_id), []).append(place)
        return {key: tuple(of_response) for key, of_response in places.items()}

    def values(self, runs: Sequence[str], query_ids: Sequence[str]) -> MeasureValues:
        """The measures of `SUPPORT` of these runs; 0 where a run has no response to a query."""
        array = np.zeros((len(runs), len(query_ids), len(SUPPORT)))
        for row, run in enumerate(runs):
            for column, query_id in enumerate(query_ids):
                places = self.responses.get((run, query_id), ())
                array[row, column] = support_scores([self.weights(place) for place in places])
        return MeasureValues(tuple(runs), tuple(query_ids), SUPPORT, array)


def load_support(
    statements: tuple[Statement, ...],
    citations: Literal["first", "all"],
    texts: Texts,
    grades: StoredGrades,
) -> SupportCells:
    """The cells of these statements, as far as there are texts and stored grades; asks nobody.

    Raises:
        ConversionError: the passages cannot be read.
    """
    cited = {doc_id for statement in statements for doc_id in statement.doc_ids}
    known, rejected = texts.of(cited) if cited and texts.has_source else ({}, ())
    known = {doc_id: known[doc_id] for doc_id in cited & known.keys() if known[doc_id].strip()}
    cells = SupportCells(statements, (), known, citations, grades, rejected)
    return with_codes(cells, grades)


def with_codes(cells: SupportCells, grades: StoredGrades) -> SupportCells:
    """The same cells with the grader's codes that the store has now."""
    texts: dict[str, int] = {}
    items: dict[str, Item] = {}
    columns: dict[str, int] = {}
    pairs: dict[tuple[int, int], tuple[str, str]] = {}
    for statement in cells.statements:
        for doc_id in statement.doc_ids:
            if doc_id in cells.texts:
                passage = cells.texts[doc_id]
                row = texts.setdefault(passage, len(texts))
                column = columns.setdefault(statement.text, len(columns))
                items.setdefault(statement.text, statement.item)
                pairs[row, column] = statement.text, passage
    keys = sorted(pairs)
    places = np.array([row * len(items) + column for row, column in keys], np.int64)
    (of_pairs,) = grades.codes([SheetShape(tuple(texts), tuple(items.values()), places)])
    code_of = dict(zip(map(pairs.__getitem__, keys), of_pairs.tolist(), strict=True))
    codes = tuple(
        tuple(
            code_of[statement.text, cells.texts[doc_id]] if doc_id in cells.texts else NO_TEXT
            for doc_id in statement.doc_ids
        )
        for statement in cells.statements
    )
    return replace(cells, machine=codes, grades=grades)


def count_codes(codes: Collection[int]) -> dict[str, int]:
    """Labels that there are not, by why: no text, not graded, not read (or refused, or failed)."""
    return {
        "no_text": sum(code == NO_TEXT for code in codes),
        "ungraded": sum(code == MISSING for code in codes),
        "unread": sum(NO_TEXT < code <= UNPARSED for code in codes),
    }
