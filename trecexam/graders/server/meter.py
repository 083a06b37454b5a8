"""What asking a server takes: tokens as it counts them, money by the prices set, and where to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from trecexam.graders.base import NOTHING_SPENT, Spent, Usage

#: Tokens of an answer where a prompt has permitted ones and nothing is known of the model yet.
SHORT = 8
#: Tokens of an answer in free text, likewise.
LONG = 1_000
#: Bytes of a token in common tokenizers, and tokens that a chat adds to a prompt: for guesses.
_BYTES, _AROUND = 4, 8
_MILLION = 1_000_000
_MINUTE = 60.0
#: Between two limits.
_AND = " and "


def guessed(text: str) -> int:
    """About as many tokens a prompt has; each model's tokenizer counts otherwise."""
    return len(text.encode()) // _BYTES + _AROUND


@dataclass(frozen=True)
class Prices:
    """Of a million tokens, in any one currency; and how much may be spent, None for no limit.

    Attributes:
        budget: money.
        budget_tokens: tokens in and out.
    """

    tokens_in: float | None = None
    tokens_out: float | None = None
    budget: float | None = None
    budget_tokens: int | None = None

    def cost(self, usage: Usage) -> float | None:
        """The money that so many tokens take; None where no price is set."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / _MILLION

    def over(self, usage: Usage, beside: Spent = NOTHING_SPENT) -> str:
        """The limits that so many tokens pass, with what others used, in words; "" where they pass none."""
        own_cost, passed = self.cost(usage), []
        cost = own_cost if beside.cost is None else beside.cost + (own_cost or 0.0)
        if self.budget is not None and cost is not None and cost > self.budget:
            passed.append(f"`budget` = {self.budget:g}")
        if self.budget_tokens is not None and (
            usage.tokens_in + usage.tokens_out + beside.tokens > self.budget_tokens
        ):
            passed.append(f"`budget_tokens` = {self.budget_tokens:,}")
        return _AND.join(passed)


def reached(limits: str, then: str) -> str:
    """That limits, as `Prices.over` names them, are in the way of going on."""
    verb, them = ("are", "both") if _AND in limits else ("is", "it")
    return f"{limits} in [grader] {verb} reached; raise {them} {then}"


class Pace(NamedTuple):
    """How much a server takes in a minute; None for any number."""

    requests: int | None = None
    tokens: int | None = None

    def seconds(self, tokens: int) -> float:
        """Return the seconds that a request of so many tokens takes up."""
        of_request = _MINUTE / self.requests if self.requests else 0.0
        return max(of_request, _MINUTE * tokens / self.tokens if self.tokens else 0.0)


class Meter:
    """Counts. What is on its way counts as much as it may become.

    Attributes:
        before: what this grader used earlier on this track; set from outside.
        beside: what other graders used of the same budget; set from outside.
        used: what it used since.
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.beside = NOTHING_SPENT
        self.before = Usage()
        self.used = Usage()
        self._underway = Usage()

    def passes(self, most: Usage) -> str:
        """The limits that could be passed if so much more were asked now; "" where none could."""
        return self.prices.over(self.before.plus(self.used).plus(self._underway).plus(most), self.beside)

    def begin(self) -> None:
        """Nothing is on its way."""
        self._underway = Usage()

    def start(self, most: Usage) -> None:
        self._underway = self._underway.plus(most)

    def end(self, most: Usage) -> None:
        self._underway = self._underway.less(most)

    def count(self, text: str, answer: str, tokens_in: int | None, tokens_out: int | None) -> None:
        """Counts an answer: as the server says, or guessed (None) where it says nothing."""
        tokens_in = guessed(text) if tokens_in is None else tokens_in
        tokens_out = guessed(answer) if tokens_out is None else tokens_out
        self.used = self.used.plus(Usage(1, tokens_in, tokens_out))

    def expected_out(self, most: int, *, short: bool, labels: int = 1) -> int:
        """Tokens of an answer, by those there were, else by a guess.

        Args:
            most: that an answer may have.
            short: the prompt has permitted answers; so many `labels` are one answer.
        """
        so_far = self.before.plus(self.used)
        if so_far.requests:
            return min(most, -(-so_far.tokens_out // so_far.requests))
        return min(most, SHORT * labels if short else LONG)

    def as_json(self, usage: Usage) -> dict[str, Any]:
        return {**usage._asdict(), "cost": self.prices.cost(usage)}
