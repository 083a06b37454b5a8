"""What all graders have in common that ask a language model by prompts, here or behind a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from converters.records import Item
from trecexam.graders.base import Scale
from trecexam.graders.prompts.model import Prompt
from trecexam.graders.prompts.parsing import Reading


class PromptedGrader:
    """Has a prompt for each kind of item, and reads the answers to it.

    Args:
        prompts: one for each kind of item that is graded ("question", "nugget", or "query" alone).
        compat: "workbench" reads answers as that code does.
    """

    def __init__(self, prompts: Sequence[Prompt], compat: str | None) -> None:
        self.prompts: Mapping[str, Prompt] = {prompt.asks: prompt for prompt in prompts}
        self.compat = compat
        # A model says the same few things of a million cells.
        self._reading = lru_cache(maxsize=65_536)(self._read)

    @property
    def item_kinds(self) -> frozenset[str]:
        """The kinds of items it grades."""
        return frozenset(self.prompts)

    @property
    def needs_query_text(self) -> bool:
        """Whether a prompt names the query's text beside the item."""
        return any(prompt.needs_query_text for prompt in self.prompts.values())

    @property
    def scale(self) -> Scale:
        """The scale of its ratings."""
        prompts = self.prompts.values()
        return Scale(max(p.max_rating for p in prompts), max(p.min_rating for p in prompts))

    def read(self, item: Item, text: str) -> Reading:
        """The rating that an answer of this grader means, under `compat`."""
        return self._reading(item.kind, item.gold_answers, text)

    def _read(self, kind: str, key: tuple[str, ...], text: str) -> Reading:
        return self.prompts[kind].read(self._answer_in(text), Item("", "", "", kind, key), self.compat)

    def _answer_in(self, text: str) -> str:
        """What of a stored answer is read."""
        return text
