"""Graders get cells and give answers; they know no store and no track."""

from __future__ import annotations

import hashlib
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.meter import Meter

#: Seconds that requests on their way to a server get, where grading is to stop.
LAST_ANSWERS = 5.0
ITEM_KINDS = frozenset({"question", "nugget"})


class Stopwatch:
    """Tells when work is to stop; `paid` answers on their way then get `LAST_ANSWERS` seconds."""

    def __init__(self, stop: Callable[[], bool] | None, *, paid: bool) -> None:
        self._stop = stop or (lambda: False)
        self._grace, self._ends = (LAST_ANSWERS if paid else 0.0), math.inf

    def stopped(self) -> bool:
        """Return True once it was said to stop."""
        if self._ends == math.inf and self._stop():
            self._ends = time.monotonic() + self._grace
        return self._ends < math.inf

    def is_over(self) -> bool:
        """Return True where nothing is waited for any more."""
        return self.stopped() and time.monotonic() >= self._ends


class UngradedError(GraderError):
    """Grading ended before all cells had an answer. Those that it gave hold, and outputs can be written."""


class Cell(NamedTuple):
    """A question to a grader: how well does this passage answer this item of this query?"""

    query_id: str
    query_text: str
    doc_id: str
    text: str
    item: Item


class Answer(NamedTuple):
    """A grader's answer for a cell.

    `status` is "ok" (`rating` is 0..5), or "unparsed", "refused", "error" (`rating` is None). `raw` is the
    answer as it came; `probabilities` are those of the ratings 0..5 where the grader has them. `cut_at` is
    the most tokens of a reply, where these ended it.
    """

    rating: int | None
    status: str
    raw: str
    probabilities: tuple[float, ...] | None = None
    cut_at: int | None = None

    @classmethod
    def read(
        cls,
        rating: int | None,
        raw: str,
        probabilities: tuple[float, ...] | None = None,
        cut_at: int | None = None,
    ) -> Answer:
        """Return an answer in which a rating was read, or (None) was not."""
        return cls(rating, "unparsed" if rating is None else "ok", raw, probabilities, cut_at)


class Estimate(NamedTuple):
    """Cells, tokens as expected and at most, and money (None: no prices are set) that grading would take.

    `calls` are requests to a server if each answer can be read; `calls_at_most` also has requests that are
    sent again.
    """

    cells: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_out_at_most: int | None = None
    cost: float | None = None
    cost_at_most: float | None = None
    calls: int | None = None
    calls_at_most: int | None = None

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum of both. Tokens, money and calls are those of the estimate that counts them."""
        if not self.cells or not other.cells:
            return self if self.cells else other
        cells = self.cells + other.cells
        if self.tokens_in is None or other.tokens_in is None:
            return (other if self.tokens_in is None else self)._replace(cells=cells)
        columns = zip(self, other, strict=True)
        return Estimate._make(None if None in column else sum(column) for column in columns)


class Scale(NamedTuple):
    """A grader's ratings, 0..`max_rating`; they count from `min_rating` on, unless the track says."""

    max_rating: int = 5
    min_rating: int = 4

    @classmethod
    def up_to(cls, max_rating: int) -> Scale:
        """Return the scale 0..`max_rating`; ratings count from one below the best on, and from 1 of 0..1."""
        return cls(max_rating, max(1, max_rating - 1))


class Grader(ABC):
    """Answers cells. Attributes with a default here are optional.

    Attributes:
        item_kinds: kinds of items that it grades; {"query"} grades a passage's relevance to the query itself,
            whatever the bank holds.
        needs_query_text: prompts name the query's text beside each item.
        scale: of its ratings.
        score_settings: settings of [scores] that suit it, unless the track sets them.
        model_and_prompt: names for people, if the identity has neither.
        meter: counts tokens that are paid for; with it comes `estimate`.
        read: (item, raw answer, True if `reply_limit` ended it) -> rating; None for none.
        reply_limit: the most tokens of a reply, if the identity does not have them: a cell whose answer was
            cut off at fewer is graded again.
        free_text: True if a model's own words are stored and `read` counts; None if unknown.
        probabilities: raw answers -> probabilities of the ratings 0..5, (answers, 6), NaN for other answers;
            None if they are stored.
        cosines: raw answers -> cosines, NaN for other answers.
        prompt: cell -> its prompt, and whether its text was cut.
        cut: number of texts so far that were too long for the model.
        known_passages: query_id -> doc_ids with a grade, of a grader that goes by ids. It needs no texts,
            and all of these passages are pooled.
        cells_share: what a passage's cells share in a language model, which grades the most useful cells
            first: "nothing", the beginning of their "prompts" (read once if they come together), or one
            "answer".
    """

    item_kinds: frozenset[str] = ITEM_KINDS
    needs_query_text: bool = False
    scale: Scale = Scale()
    score_settings: Mapping[str, Any] = MappingProxyType({})
    model_and_prompt: tuple[str | None, str | None] | None = None
    meter: Meter | None = None
    read: Callable[..., int | None] | None = None
    reply_limit: int | None = None
    free_text: bool | None = None
    probabilities: Callable[[Sequence[str]], Any] | None = None
    cosines: Callable[[Sequence[str]], Any] | None = None
    prompt: Callable[[Cell], Any] | None = None
    cut: int = 0
    known_passages: Mapping[str, Collection[str]] | None = None
    cells_share: Literal["nothing", "prompts", "answer"] | None = None

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Return all that can change an answer (model, prompt, decoding ...); loads no model.

        Batch size and device are not in it.
        """

    @abstractmethod
    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Yield answers, batch by batch, in any order; each batch is stored in one transaction.

        Cells without an answer (`recorded`: not in the recording) are left out. A batch may be empty, so that
        the caller can stop a grader that is still at work.

        Raises:
            UngradedError: no more can be graded now; the rest is graded at the next update.
            GraderError: nothing can be graded; the message says what to do.
        """

    @property
    def environment(self) -> Mapping[str, str] | None:
        """Device, dtype, versions ... behind the last answers; None if unknown."""
        return None

    @property
    def model_to_load(self) -> str:
        """Name of the model that the next grading loads; "" for none."""
        return ""

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        """Return the costs of grading; sends nothing."""
        return Estimate(sum(1 for _ in cells))


@dataclass(frozen=True)
class Factory:
    """Makes a grader.

    Attributes:
        summary: one line for `trecexam graders`.
        missing: returns "" if the grader can run here, else what is missing and how to get it.
        create: (settings, track root) -> Grader; loads no model.
        standard: its prompts, if any, are those of `trecexam.graders.prompts`, so its needs are known before
            it is made.
        runs_model: False if a cluster could compute nothing for it.
        reads: those of the settings `base_url`, `metric` and `prompt` that change something for it.
        check_prompt: refuses a prompt file that it cannot use; None if it takes the published prompts.
        reading: returns the readers of stored answers that need no model, by name: `read`,
            `probabilities`, `cosines`. None: ratings stay as they were stored.
    """

    summary: str
    missing: Callable[[], str]
    create: Callable[[GraderSection, Path], Grader]
    standard: bool = False
    runs_model: bool = True
    reads: tuple[str, ...] = ()
    check_prompt: Callable[[Path], object] | None = None
    reading: Callable[[GraderSection, Path], Mapping[str, Any]] | None = None


def identity_json(identity: Mapping[str, Any]) -> str:
    """Return an identity as canonical JSON: sorted keys, no white space."""
    return json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity_digest(identity: Mapping[str, Any]) -> bytes:
    """Return the sha256 of an identity's canonical JSON."""
    return hashlib.sha256(identity_json(identity).encode()).digest()
