"""What a grader is: it knows no store and no track, gets cells and gives answers."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.graders.sampling import MeasuredTime
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.config import GraderSection

#: Seconds that requests on their way to a server get, where grading is to stop.
LAST_ANSWERS = 5.0
#: Characters of an answer that are read, behind the model's thoughts. It is stored whole.
MOST_READ = 100_000
#: The kinds of items there are in banks.
ITEM_KINDS = frozenset({"question", "nugget"})


class Stopwatch:
    """Whether work is to stop; what is on its way to a server then gets `LAST_ANSWERS` seconds.

    Args:
        stop: asked again and again; None for never.
        paid: answers on their way may have to be paid for, wanted or not, and would be asked again.
    """

    def __init__(self, stop: Callable[[], bool] | None, *, paid: bool) -> None:
        self._stop = stop or (lambda: False)
        self._grace, self._ends = (LAST_ANSWERS if paid else 0.0), math.inf

    def stopped(self) -> bool:
        """Whether it was ever said to stop."""
        if self._ends == math.inf and self._stop():
            self._ends = time.monotonic() + self._grace
        return self._ends < math.inf

    def is_over(self) -> bool:
        """Whether nothing is waited for any more."""
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


class Usage(NamedTuple):
    """What a grader that is paid by the token took."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def line(self, cost: float | None) -> str:
        """It in words, with its cost where prices are set."""
        money = "" if cost is None else f", cost {cost:.4g}"
        tokens = f"{plural(self.tokens_in, 'token')} in, {self.tokens_out:,} out"
        return f"{plural(self.requests, 'request')}, {tokens}{money}"

    def less(self, other: Usage) -> Usage:
        return Usage(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Spent(NamedTuple):
    """What several graders used of one budget: tokens in and out, and money (None: no price is set)."""

    tokens: int = 0
    cost: float | None = None

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spent(self.tokens + other.tokens, sum(costs) if costs else None)


NOTHING_SPENT = Spent()


class Estimate(NamedTuple):
    """What grading would take: cells, tokens as expected and at most, and money (None: no prices are set).

    `time` is None unless it was asked for, and where the model runs elsewhere. `calls` are the requests to a
    server where each answer can be read; `calls_at_most` also has those that are sent again where it cannot.
    Both are None without a server, and where each of the `cells` is one request.
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
        """What both take together. Tokens, money and calls are those of the one that counts them."""
        if not self.cells or not other.cells:
            return self if self.cells else other
        cells = self.cells + other.cells
        if self.tokens_in is None or other.tokens_in is None:
            return (other if self.tokens_in is None else self)._replace(cells=cells, time=None)
        columns = zip(self._replace(time=None), other._replace(time=None), strict=True)
        return Estimate._make(None if None in column else sum(column) for column in columns)

    def columns(self) -> dict[str, int | float | None]:
        """What a table shows: all but the time, and calls where they are counted."""
        return {
            key: value
            for key, value in self._asdict().items()
            if key != "time" and (not key.startswith("calls") or value is not None)
        }


class Scale(NamedTuple):
    """A grader's ratings: 0..`max_rating`; from `min_rating` on one counts, where the track does not say."""

    max_rating: int = 5
    min_rating: int = 4

    @classmethod
    def up_to(cls, max_rating: int) -> Scale:
        """The scale 0..`max_rating`, of 1 to 5: what counts is one below its best, but for the shortest."""
        return cls(max_rating, max(1, max_rating - 1))


class Grader(Protocol):
    """Answers cells.

    `identity` holds everything that can change an answer (model, prompt, decoding ...) and nothing that
    cannot (batch size, device); it is known before any model is loaded.

    What it may say of itself beside that is in `trecexam.graders.traits.GraderTraits`: it has attributes of
    these names, and the defaults of those that it does not have.
    """

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Answers, batch by batch, in any order; each batch is stored in one transaction.

        A cell that the grader has nothing to say about (`recorded`: not in the recording) is left out. A
        batch may be empty: then the grader is still at work, and who reads it can stop it.

        Raises:
            UngradedError: it gave what it can give now; the rest is graded at the next update.
            GraderError: it cannot grade at all; the message says what to do.
        """
        ...


@dataclass(frozen=True)
class Factory:
    """How a grader is made.

    Attributes:
        summary: one line for `trecexam graders`.
        missing: "" where the grader can run here, else what is missing and how to get it.
        create: (settings, track root) -> Grader; loads no model.
        standard: it asks about questions, nuggets or queries by the prompts of `trecexam.graders.prompts` or
            by none, and reads answers as these do; so what it needs is known before it is made.
        runs_model: False where it has nothing to compute that a cluster could do.
        check_prompt: refuses a prompt file that it cannot use; None where it asks one of the published ones.
        reading: how its stored answers are read, without its model: those of its traits that do it (`read`,
            `label`, `probabilities`, `cosines`), by name. None: ratings are what they were when stored.
    """

    summary: str
    missing: Callable[[], str]
    create: Callable[[GraderSection, Path], Grader]
    standard: bool = False
    runs_model: bool = True
    check_prompt: Callable[[Path], object] | None = None
    reading: Callable[[GraderSection, Path], Mapping[str, Any]] | None = None


def identity_json(identity: Mapping[str, Any]) -> str:
    """An identity as canonical JSON: sorted keys, no white space."""
    return json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity_digest(identity: Mapping[str, Any]) -> bytes:
    """sha256 of the canonical JSON of an identity."""
    return hashlib.sha256(identity_json(identity).encode()).digest()
