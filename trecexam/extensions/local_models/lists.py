"""Constrained decoding of lists of labels: `['support', 'not_support']`.

At each step, the model chooses among the tokens that continue a permitted list, so that each list has the
right length. Mostly there is one such token; where labels diverge, the model's normalised probabilities of
these tokens give the probability of each label, given the labels before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import GraderError

if TYPE_CHECKING:
    from torch import Tensor

#: Texts -> their tokens as answers.
Spell = Callable[[Sequence[str]], list[list[int]]]
#: Tokens of each label at a position.
Ways = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ListTokens:
    """The tokens of lists of labels.

    Attributes:
        first: tokens of each label at the start.
        later: tokens of each label after each label.
        closing: tokens that end a list after each label.
    """

    first: Ways
    later: tuple[Ways, ...]
    closing: Ways

    @classmethod
    def of(cls, labels: Sequence[str], spell: Spell, folder: Path) -> ListTokens:
        """Return the tokens of lists of these labels."""
        begun = [f"['{label}" for label in labels]
        first = tuple(map(tuple, spell(begun)))
        before = list(zip(begun, first, strict=True))
        later = tuple(
            tuple(_after(text, f"', '{label}", tokens, spell) for label in labels) for text, tokens in before
        )
        for ways in (first, *later):
            if any(a[: len(b)] == b for a in ways for b in ways if a is not b):
                raise GraderError("this model's tokenizer cannot tell labels in a list apart", path=folder)
        return cls(first, later, tuple(_after(text, "']", tokens, spell) for text, tokens in before))

    def longest(self, number: int) -> int:
        """Return the maximum length of a list with this many labels, in tokens, with the end token."""
        later = max(len(token_ids) for ways in self.later for token_ids in ways)
        return max(map(len, self.first)) + (number - 1) * later + max(map(len, self.closing)) + 1


def _after(begun: str, rest: str, before: tuple[int, ...], spell: Spell) -> tuple[int, ...]:
    """Return the tokens of a text's rest after these tokens; its separate tokens if tokenization differs."""
    tokens = tuple(spell([begun + rest])[0])
    return tokens[len(before) :] if tokens[: len(before)] == before else tuple(spell([rest])[0])


#: Generator of permitted next tokens; receives the chosen token, and the scores of the permitted tokens.
_List = Generator[list[int], tuple[int, Sequence[float]], None]


def _list(tokens: ListTokens, number: int, end: int, scores: list[tuple[float, ...]]) -> _List:
    """Decode a list of this many labels; `scores` gets log P of all labels at each position."""
    last = -1
    for _ in range(number):
        ways = tokens.first if last < 0 else tokens.later[last]
        # Labels that the written tokens can still become.
        label, still, written = [0.0] * len(ways), [*range(len(ways))], 0
        while len(still) > 1 or written < len(ways[still[0]]):
            going_on = {each: ways[each][written] for each in still}
            allowed = list(dict.fromkeys(going_on.values()))
            token, logits = yield allowed
            # Labels part here: each gets the share of the token that it continues with. How labels would part
            # further that the list did not go on with is not asked: they have equal shares.
            shares = dict(zip(allowed, _log_softmax(logits[: len(allowed)]), strict=True))
            times = Counter(going_on.values())
            for each, its_token in going_on.items():
                label[each] += shares[its_token] - (0.0 if its_token == token else math.log(times[its_token]))
            still = [each for each in still if going_on[each] == token]
            written += 1
        scores.append(tuple(label))
        last = still[0]
    for token in tokens.closing[last]:
        yield [token]
    while True:
        yield [end]


def _log_softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    total = top + math.log(sum(math.exp(logit - top) for logit in logits))
    return [logit - total for logit in logits]


class LabelLists:
    """A logits processor of transformers that permits only lists, and records probabilities.

    Args:
        numbers: number of labels in each row's list.
        end: the token that ends an answer.

    Attributes:
        scores: for each row and position of its list log P of each label, given the labels before; filled
            while the model writes.
    """

    def __init__(self, tokens: ListTokens, numbers: Sequence[int], end: int) -> None:
        self.scores: list[list[tuple[float, ...]]] = [[] for _ in numbers]
        self._rows = [_list(tokens, number, end, of) for number, of in zip(numbers, self.scores, strict=True)]
        self._logits: list[list[float]] | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores of each row's next token; -inf for tokens that do not continue a list.

        Args:
            input_ids: tokens of each row so far; the last token was chosen here, except at the first call.
            scores: shape (rows, vocabulary).
        """
        import torch

        if self._logits is None:
            allowed = [next(row) for row in self._rows]
        else:
            chosen = zip(input_ids[:, -1].tolist(), self._logits, strict=True)
            allowed = [row.send(each) for row, each in zip(self._rows, chosen, strict=True)]
        width = max(map(len, allowed))
        padded = [[*each, *[each[0]] * (width - len(each))] for each in allowed]
        columns = torch.tensor(padded, device=scores.device)
        chances = scores.gather(1, columns)
        self._logits = chances.float().tolist()
        return torch.full_like(scores, -math.inf).scatter(1, columns, chances)
