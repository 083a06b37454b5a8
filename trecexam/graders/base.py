"""What a grader is: it knows no store and no track, gets cells and gives answers."""

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
from trecexam.graders.meter import MeasuredTime, Meter

#: Seconds that requests on their way to a server get, where grading is to stop.
LAST_ANSWERS = 5.0
#: Characters of an answer that are read, behind the model's thoughts. It is stored whole.
MOST_READ = 100_000
ITEM_KINDS = frozenset({"question", "nugget"})


class Stopwatch:
    """Tells when work is to stop; what is on its way to a server then gets `LAST_ANSWERS` seconds.

    Args:
        stop: called again and again; None for never.
        paid: answers on their way may have to be paid for, wanted or not.
    """

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
    """One question to a grader: how well does this passage answer this item of this query?"""

    query_id: str
    query_text: str
    doc_id: str
    text: str
    item: Item


class Answer(NamedTuple):
    """What a grader said of a cell.

    `status` is "ok" (`rating` is 0..5), or "unparsed", "refused", "error" (`rating` is None). `raw` is the
    answer as it came; `probabilities` are those of the ratings 0..5 where the grader has them. `cut_at` is
    the most tokens of a reply, where these ended it.
    """

    rating: int | None
    status: str
    raw: str
    probabilities: tuple[float, ...] | None = None
    cut_at: int | None = None


class Estimate(NamedTuple):
    """What grading would take: cells, tokens as expected and at most, and money (None: no prices are set).

    `time` is None unless it was asked for, and where the model runs elsewhere. `calls` are requests to a
    server where each answer can be read; `calls_at_most` also has those that are sent again where it cannot.
    """

    cells: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_out_at_most: int | None = None
    cost: float | None = None
    cost_at_most: float | None = None
    time: MeasuredTime | None = None
    calls: int | None = None
    calls_at_most: int | None = None

    def plus(self, other: Estimate) -> Estimate:
        """Return what both take together. Tokens, money and calls are those of the one that counts them."""
        if not self.cells or not other.cells:
            return self if self.cells else other
        cells = self.cells + other.cells
        if self.tokens_in is None or other.tokens_in is None:
            return (other if self.tokens_in is None else self)._replace(cells=cells, time=None)
        columns = zip(self._replace(time=None), other._replace(time=None), strict=True)
        return Estimate._make(None if None in column else sum(column) for column in columns)

    def columns(self) -> dict[str, int | float | None]:
        """Return what a table shows: all but the time, and calls where they are counted."""
        columns = self._asdict()
        del columns["time"]
        return {key: value for key, value in columns.items() if key[:5] != "calls" or value is not None}


class Scale(NamedTuple):
    """A grader's ratings: 0..`max_rating`; from `min_rating` on one counts, where the track does not say."""

    max_rating: int = 5
    min_rating: int = 4

    @classmethod
    def up_to(cls, max_rating: int) -> Scale:
        """Return the scale 0..`max_rating`, of 1 to 5; what counts is one below its best, if there is."""
        return cls(max_rating, max(1, max_rating - 1))


class Grader(ABC):
    """Answers cells. What has a default here need not be said.

    Attributes:
        item_kinds: the kinds of items that it grades; {"query"} grades a passage's relevance to the query
            itself, whatever the bank holds.
        needs_query_text: it is told the query's text beside each item.
        scale: of its ratings.
        score_settings: settings of [scores] that suit it, where the track does not say otherwise.
        model_and_prompt: what people know them as, where the identity names neither; None for no name.
        meter: where tokens are paid for; with it comes `estimate`.
        read: (item, raw answer, True where `reply_limit` ended it) -> the rating that it means, its status.
        reply_limit: the most tokens of a reply, where that is not in the identity: a cell whose answer was
            cut off at fewer is graded again.
        free_text: what is stored is a model's own words, and `read` counts; None where it does not say.
        probabilities: raw answers -> those of the ratings 0..5, (answers, 6), NaN where one means none; None
            where the grader stores what it knows of them.
        cosines: raw answers -> the cosines that they are, NaN where one is none; None if they are not.
        label: (item, raw answer) -> a label between 0 and 1, finer than a rating.
        prompt: the prompt of a cell, and whether its text was cut for it.
        cut: how many texts were too long for its model, since it was made.
        known_passages: query_id -> doc_ids that it has grades of, where it goes by ids. It needs no texts
            then, and all of these passages are pooled.
        cells_share: with a language model, what a passage's cells have in common there: "nothing",
            the beginning of their "prompts", which is read once where they come together, or one "answer" to
            all. Such a model grades the most useful cells first.
    """

    item_kinds: frozenset[str] = ITEM_KINDS
    needs_query_text: bool = False
    scale: Scale = Scale()
    score_settings: Mapping[str, Any] = MappingProxyType({})
    model_and_prompt: tuple[str | None, str | None] | None = None
    meter: Meter | None = None
    read: Callable[..., tuple[int | None, str]] | None = None
    reply_limit: int | None = None
    free_text: bool | None = None
    probabilities: Callable[[Sequence[str]], Any] | None = None
    cosines: Callable[[Sequence[str]], Any] | None = None
    label: Callable[[Item, str], Any] | None = None
    prompt: Callable[[Cell], Any] | None = None
    cut: int = 0
    known_passages: Mapping[str, Collection[str]] | None = None
    cells_share: Literal["nothing", "prompts", "answer"] | None = None

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Everything that can change an answer (model, prompt, decoding ...), but not batch size and device.

        It is known before any model is loaded.
        """

    @abstractmethod
    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Answer, batch by batch, in any order; each batch is stored in one transaction.

        A cell that the grader has nothing to say about (`recorded`: not in the recording) is left out. A
        batch may be empty: then the grader is still at work, and who reads it can stop it.

        Raises:
            UngradedError: it gave what it can give now; the rest is graded at the next update.
            GraderError: it cannot grade at all; the message says what to do.
        """

    @property
    def environment(self) -> Mapping[str, str] | None:
        """What the last answers were made on (device, dtype, versions ...); None where that is not known."""
        return None

    @property
    def model_to_load(self) -> str:
        """The name of the model that the next grading loads; "" if it loads none."""
        return ""

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        """Return what grading would take; asks nobody."""
        return Estimate(sum(1 for _ in cells))


@dataclass(frozen=True)
class Factory:
    """How a grader is made.

    Attributes:
        summary: one line for `trecexam graders`.
        missing: "" where the grader can run here, else what is missing and how to get it.
        create: (settings, track root) -> Grader; loads no model.
        standard: its prompts are of `trecexam.graders.prompts`, or none, and its answers are read as theirs;
            so what it needs is known before it is made.
        runs_model: False where it has nothing to compute that a cluster could do.
        reads: those of the settings `base_url`, `metric` and `prompt` that change something for it.
        check_prompt: refuses a prompt file that it cannot use; None where it asks one of the published ones.
        reading: how its stored answers are read, without its model: those of `read`, `label`, `probabilities`
            and `cosines` that do it, by name. None: ratings are what they were when stored.
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
