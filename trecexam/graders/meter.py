"""The costs of work: tokens as a server counts them, and money by the prices set; and where to stop."""

from __future__ import annotations

from typing import NamedTuple

from trecexam.config import LanguageModelSection
from trecexam.errors import GraderError
from trecexam.results.text import plural

#: Tokens of an answer where a prompt has permitted ones and nothing is known of the model yet.
SHORT = 8
#: Tokens of an answer in free text, likewise.
LONG = 1_000
#: Bytes of a token in common tokenizers, and tokens that a chat adds to a prompt: for guesses.
_BYTES, _AROUND = 4, 8
_MILLION = 1_000_000


class Usage(NamedTuple):
    """The use of a grader that is paid by the token."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def line(self, cost: float | None) -> str:
        """Return it in words, with its cost where prices are set."""
        money = "" if cost is None else f", cost {cost:.4g}"
        tokens = f"{plural(self.tokens_in, 'token')} in, {self.tokens_out:,} out"
        return f"{plural(self.requests, 'request')}, {tokens}{money}"

    def less(self, other: Usage) -> Usage:
        return Usage(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Spent(NamedTuple):
    """The use of one budget by several graders: tokens in and out, and money (None: no price is set)."""

    tokens: int = 0
    cost: float | None = None

    def plus(self, other: Spent) -> Spent:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Spent(self.tokens + other.tokens, sum(costs) if costs else None)


def guessed(text: str) -> int:
    """Return about how many tokens a prompt has; each model's tokenizer counts otherwise."""
    return len(text.encode()) // _BYTES + _AROUND


class Meter:
    """Counts the tokens that are paid for.

    Attributes:
        before: tokens before `begin`; `used` those since.

    Raises:
        GraderError: there is a budget and no price.
    """

    def __init__(self, settings: LanguageModelSection) -> None:
        if settings.budget is not None and (settings.price_in is None or settings.price_out is None):
            raise GraderError(
                "`budget` in [grader] needs `price_in` and `price_out`; `budget_tokens` needs none"
            )
        self._settings = settings
        self.before, self._beside, self.used = Usage(), Spent(), Usage()

    def begin(self, before: Usage, beside: Spent) -> None:
        """Count from here, after what the grader used `before` and others of its budget used `beside`."""
        self.before, self._beside, self.used = before, beside, Usage()

    def cost(self, usage: Usage) -> float | None:
        """Return the money that so many tokens take; None where no price is set."""
        price_in, price_out = self._settings.price_in, self._settings.price_out
        if price_in is None or price_out is None:
            return None
        return (usage.tokens_in * price_in + usage.tokens_out * price_out) / _MILLION

    def spent(self, usage: Usage) -> Spent:
        """Return tokens and money that so much is."""
        return Spent(usage.tokens_in + usage.tokens_out, self.cost(usage))

    def passes(self, most: Usage) -> str:
        """Say which limits could be passed if so much more were asked now; "" where none could."""
        budget, budget_tokens = self._settings.budget, self._settings.budget_tokens
        spent = self.spent(self.before.plus(self.used).plus(most)).plus(self._beside)
        passed = []
        if budget is not None and spent.cost is not None and spent.cost > budget:
            passed.append(f"`budget` = {budget:g}")
        if budget_tokens is not None and spent.tokens > budget_tokens:
            passed.append(f"`budget_tokens` = {budget_tokens:,}")
        verb, them = ("are", "both") if len(passed) > 1 else ("is", "it")
        limits = " and ".join(passed)
        return limits and f"{limits} in [grader] {verb} reached; raise {them} to go on"

    def count(self, text: str, answer: str, tokens_in: int | None, tokens_out: int | None) -> None:
        """Count an answer: as the server says, or guessed (None) where it says nothing."""
        tokens_in = guessed(text) if tokens_in is None else tokens_in
        tokens_out = guessed(answer) if tokens_out is None else tokens_out
        self.used = self.used.plus(Usage(1, tokens_in, tokens_out))

    def expected_out(self, most: int, *, short: bool, labels: int = 1) -> int:
        """Return the tokens of an answer, `most` at most, by those there were, else by a guess.

        Args:
            short: the prompt has permitted answers; so many `labels` are one answer.
        """
        so_far = self.before.plus(self.used)
        if so_far.requests:
            return min(most, -(-so_far.tokens_out // so_far.requests))
        return min(most, SHORT * labels if short else LONG)
