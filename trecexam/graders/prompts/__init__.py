"""Prompts: published ones by name, a user's own from a file; and what graders that ask them share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders.base import Cell, Grader, Scale
from trecexam.graders.prompts.custom import load_prompt
from trecexam.graders.prompts.model import Prompt
from trecexam.graders.prompts.parsing import UNPARSED, Reading
from trecexam.graders.prompts.published import published
from trecexam.graders.replies import json_value
from trecexam.templates import published_prompt

#: Asked where the track names no prompt: the paper's self-rating of each kind of item.
DEFAULT = ("QuestionSelfRatedUnanswerablePromptWithChoices", "NuggetSelfRatedPrompt")

__all__ = ["DEFAULT", "Prompt", "Reading", "chosen_prompts", "load_prompt", "named", "published"]


def named(name: str, root: Path) -> Prompt:
    """Return the published prompt of that name, or the one in a file of the track folder `root`.

    Raises:
        GraderError: there is none; the message names the nearest.
    """
    if Path(name).suffix.lower() in PROMPT_SUFFIXES:
        path = root / name
        if not path.is_file():
            raise GraderError("no such prompt file; see `prompt` in [grader] of trecexam.toml", path=path)
        return load_prompt(path)
    return published_prompt(name, published())


def chosen_prompts(settings: GraderSection, root: Path, *, passage_first: bool) -> list[Prompt]:
    """Return the prompts that the settings name, or the paper's self-ratings."""
    names = DEFAULT if settings.prompt is None else (settings.prompt,)
    prompts = [named(name, root) for name in names]
    return [prompt.passage_first() for prompt in prompts] if passage_first else prompts


def with_verdict(answer: str, verdict: str) -> str:
    """Return what is stored of an answer and a model's verdict on it."""
    return json.dumps({"answer": answer, "verification": verdict}, ensure_ascii=False)


def verdict_in(text: str) -> str | None:
    """Return the verdict that `with_verdict` stored; None for other texts."""
    stored = json_value(text)
    verdict = stored.get("verification") if isinstance(stored, dict) else None
    return verdict if isinstance(verdict, str) else None


def reader(prompts: Sequence[Prompt], compat: str | None) -> Callable[..., Reading]:
    """Return the reader of answers to prompts, one for each kind of item: (item, answer, cut off) -> reading.

    `compat` is that of `Prompt.read`.
    """
    prompt_of = {prompt.asks: prompt for prompt in prompts}

    # A model says the same few things of a million cells.
    @lru_cache(maxsize=65_536)
    def reading(kind: str, key: tuple[str, ...], text: str, cut: bool) -> Reading:
        prompt, item = prompt_of[kind], Item("", "", "", kind, key)
        if prompt.verification is None:
            return prompt.read(text, item, compat, cut=cut)
        verdict = verdict_in(text)
        return UNPARSED if verdict is None else prompt.verification.read(verdict, item, compat, cut=cut)

    return lambda item, text, cut=False: reading(item.kind, item.gold_answers, text, cut)


def prompted_reading(settings: GraderSection, root: Path) -> dict[str, Any]:
    """Return the readers of stored answers, see `Factory`."""
    return {"read": reader(chosen_prompts(settings, root, passage_first=False), settings.compat)}


class PromptedGrader(Grader):
    """Has a prompt for each kind of item, and reads the answers to it; see `reader`."""

    def __init__(self, prompts: Sequence[Prompt], compat: str | None) -> None:
        self.prompts: Mapping[str, Prompt] = {prompt.asks: prompt for prompt in prompts}
        self.compat = compat
        self.read = reader(prompts, compat)
        self.item_kinds = frozenset(self.prompts)
        self.scale = Scale(max(p.max_rating for p in prompts), max(p.min_rating for p in prompts))
        self.needs_query_text = any(prompt.needs_query_text for prompt in prompts)
        self.asks_lists = any(prompt.group > 1 for prompt in prompts)

    def _calls(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, ...]]:
        """Yield the cells of each prompt: one by one, or several of a passage, in their order."""
        for (_, _, kind), same in groupby(cells, lambda cell: (cell.query_id, cell.text, cell.item.kind)):
            while call := tuple(islice(same, self.prompts[kind].group)):
                yield call

    def _filled(
        self, prompt: Prompt, cells: Sequence[Cell], passage: str, plain: Callable[[str], str]
    ) -> str:
        """Return the prompt of a call's cells with a passage; `plain` takes special tokens out of texts."""
        items = [
            item._replace(
                text=plain(item.text),
                gold_answers=tuple(map(plain, item.gold_answers)),
                choices=tuple((key, plain(text)) for key, text in item.choices),
            )
            for item in (cell.item for cell in cells)
        ]
        return prompt.list_text(plain(cells[0].query_text), items, plain(passage))
