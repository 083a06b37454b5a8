"""Lists of labels, written by a model that may write nothing else: `['support', 'not_support']`.

Token by token the model chooses among those that permitted lists go on with, so that each list has the length
that it should have. At most places there is one such token; where labels part, the model's probabilities of
these tokens, made to sum to 1, say how probable each label is, given the labels before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job

if TYPE_CHECKING:
    from torch import Tensor

    from trecexam.extensions.local_models.local import LocalModel

#: Texts -> their tokens as answers.
Spell = Callable[[Sequence[str]], list[list[int]]]


def written_lists(
    model: LocalModel, jobs: Sequence[Job], labels: Sequence[str]
) -> Callable[[], list[list[tuple[float, ...]]]]:
    """Has lists written with a label for each cell of each job; see `LabelLists.scores` for what they say.

    Raises:
        GraderError: this model cannot write so.
        OutOfMemoryError: there are too many.
    """
    tokens = ListTokens.of(labels, model.answers, model.folder)
    numbers = [len(job.cells) for job in jobs]
    scores: list[list[tuple[float, ...]]] = [[] for _ in jobs]

    def of(places: Sequence[int]) -> LabelLists:
        lists = LabelLists(tokens, [numbers[place] for place in places], model.ends[0])
        # A tile is filled up at its end.
        for place, row in reversed(list(zip(places, lists.scores(), strict=True))):
            scores[place] = row
        return lists

    decoding = model.decoding(tokens.longest(max(numbers)))
    try:
        model.continued([job.tokens for job in jobs], decoding, of)
    except (ValueError, NotImplementedError) as error:
        raise GraderError(
            f"this model cannot write lists: {loading.line_of(error)}", path=model.folder
        ) from error
    return lambda: scores


#: The tokens of each label at a place.
Ways = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ListTokens:
    """The tokens of lists of labels.

    Attributes:
        first: those of each label as the first.
        later: the same after each label.
        closing: what ends a list after each label.
    """

    first: Ways
    later: tuple[Ways, ...]
    closing: Ways

    @classmethod
    def of(cls, labels: Sequence[str], spell: Spell, folder: Path) -> ListTokens:
        """The tokens of lists of these labels.

        Raises:
            GraderError: the model's tokenizer cannot write them, or cannot tell two apart.
        """
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
        """Tokens that a list of so many labels may have, and one that ends the answer."""
        later = max(len(way) for ways in self.later for way in ways)
        return max(map(len, self.first)) + (number - 1) * later + max(map(len, self.closing)) + 1


def _after(begun: str, rest: str, before: tuple[int, ...], spell: Spell) -> tuple[int, ...]:
    """The tokens of the rest after a text with these tokens; its own, where they change what is before."""
    tokens = tuple(spell([begun + rest])[0])
    return tokens[len(before) :] if tokens[: len(before)] == before else tuple(spell([rest])[0])


@dataclass
class _Row:
    """A list as far as it is written.

    Attributes:
        scores: of each label that is written, log P of each label at its place.
        label: log P of each label at the place that is being written.
        open: labels that what is written of this one can still become; `written` tokens are.
        last: the label before, -1 where there is none.
    """

    number: int
    scores: list[tuple[float, ...]] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    written: int = 0
    last: int = -1


class LabelLists:
    """Holds a model to lists, and keeps what it found probable; a logits processor of transformers.

    Args:
        numbers: labels of each row's list.
        end: the token that ends an answer.
    """

    def __init__(self, tokens: ListTokens, numbers: Sequence[int], end: int) -> None:
        self._tokens = tokens
        self._end = end
        self._rows = [_Row(number) for number in numbers]
        for row in self._rows:
            self._begin(row)
        self._started = False

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores of each row's next token, -inf where no list goes on so.

        Args:
            input_ids: what there is of each row; its last token was chosen here, but for the first time.
            scores: shape (rows, vocabulary).
        """
        import torch

        if self._started:
            for row, token in zip(self._rows, input_ids[:, -1].tolist(), strict=True):
                self._advance(row, token)
        self._started = True
        allowed = [self._next(row) for row in self._rows]
        width = max(map(len, allowed))
        columns = torch.tensor([[*each, *[each[0]] * (width - len(each))] for each in allowed])
        columns = columns.to(scores.device)
        chances = scores.gather(1, columns)
        for row, tokens, logits in zip(self._rows, allowed, chances.float().tolist(), strict=True):
            if len(tokens) > 1:
                self._note(row, tokens, logits[: len(tokens)])
        return torch.full_like(scores, -math.inf).scatter(1, columns, chances)

    def scores(self) -> list[list[tuple[float, ...]]]:
        """For each row and place of its list log P of each label, given the labels written before.

        The lists grow while the model writes.
        """
        return [row.scores for row in self._rows]

    def _begin(self, row: _Row) -> None:
        n_labels = len(self._tokens.first)
        row.label, row.open, row.written = [0.0] * n_labels, [*range(n_labels)], 0

    def _ways(self, row: _Row) -> Ways:
        return self._tokens.first if row.last < 0 else self._tokens.later[row.last]

    def _next(self, row: _Row) -> list[int]:
        """The tokens that may come."""
        if len(row.scores) == row.number:
            closing = self._tokens.closing[row.last]
            return [closing[row.written] if row.written < len(closing) else self._end]
        ways = self._ways(row)
        return list(dict.fromkeys(ways[label][row.written] for label in row.open))

    def _note(self, row: _Row, tokens: Sequence[int], logits: Sequence[float]) -> None:
        """Labels part here: each gets the share of the token that it goes on with."""
        top = max(logits)
        total = top + math.log(sum(math.exp(logit - top) for logit in logits))
        ways = self._ways(row)
        by_token: Mapping[int, list[int]] = {
            token: [label for label in row.open if ways[label][row.written] == token] for token in tokens
        }
        for token, logit in zip(tokens, logits, strict=True):
            for label in by_token[token]:
                row.label[label] += logit - total

    def _advance(self, row: _Row, token: int) -> None:
        if len(row.scores) == row.number:
            row.written += 1
            return
        ways = self._ways(row)
        still = [label for label in row.open if ways[label][row.written] == token]
        others = [ways[label][row.written] for label in row.open if label not in still]
        for label in row.open:
            if label not in still:
                # How labels would part that the list did not go on with was not asked.
                row.label[label] -= math.log(others.count(ways[label][row.written]))
        row.open, row.written = still, row.written + 1
        if len(still) == 1 and row.written == len(ways[still[0]]):
            row.scores.append(tuple(row.label))
            row.last = still[0]
            self._begin(row)
