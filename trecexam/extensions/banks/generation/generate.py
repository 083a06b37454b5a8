"""`trecexam bank generate`: has a model write missing items, and adds them to the bank."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from converters.records import Item, Origin
from trecexam.errors import TrecexamError
from trecexam.extensions.banks.generation.making import DroppedItems, items_of, known_texts
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import read_items
from trecexam.extensions.banks.lines import merged
from trecexam.files.atomic import replace as replace_file
from trecexam.graders.writing.asking import Ask, AskingResult, PromptSet
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept
from trecexam.inputs.missing_banks import check_unchanged


@dataclass(frozen=True)
class Failure:
    """A query or sub-topic without items, or with too few, and the reason."""

    request: ItemRequest
    reason: str
    partly: bool = False


@dataclass(frozen=True, kw_only=True)
class Generated(AskingResult[ItemRequest]):
    """Result of generating a bank.

    Attributes:
        output: the file with the items; `written` says whether it was changed.
        queries: those that got new items.
        items: new items; `replaced`: items that gave way to them.
        failures: in the order of the queries; `unwritten` is among them.
        n_cut: prompts in which passages had to be cut to fit the model.
    """

    output: Path
    written: bool
    queries: int
    items: int
    replaced: int
    dropped: DroppedItems
    failures: tuple[Failure, ...]
    n_cut: int = 0

    @property
    def complete(self) -> bool:
        """Whether all queries have all their items."""
        return not self.failures and not self.why


class NewItems(NamedTuple):
    """The items read from all answers, and answers that could not be read."""

    items: Mapping[ItemRequest, Sequence[Item]]
    failures: Sequence[Failure]
    dropped: DroppedItems


def prompts_of(plan: BankPlan, prompt: ItemPrompt, source: KeepingWriter) -> PromptSet[ItemRequest]:
    """Return the prompt of each query or sub-topic."""
    plain = source.writer.plain
    return PromptSet(source, {request: prompt.text(request, plain) for request in plan.requests})


def generate(plan: BankPlan, prompt: ItemPrompt, prompts: PromptSet[ItemRequest], ask: Ask) -> Generated:
    """Calls the model for each query or sub-topic, and writes all items to the file at the end.

    Raises:
        TrecexamError: the file was changed meanwhile, or cannot be written.
    """
    try:
        result = ask([prompts])
    except TrecexamError:
        write(plan, _new_items(plan, prompt, prompts).items, early=True)
        raise
    return outcome(plan, result, _new_items(plan, prompt, prompts))


def unread_prompts(prompts: PromptSet[ItemRequest], prompt: ItemPrompt) -> list[str]:
    """Return the prompts whose answers have no items."""
    return [
        prompts.prompts[request]
        for request, answer in prompts.answered()
        if not read_items(answer.text, prompt.kind, cut=answer.cut).texts
    ]


def outcome(plan: BankPlan, result: AskingResult[Any], new: NewItems, n_cut: int = 0) -> Generated:
    """Writes the new items and returns the result.

    Raises:
        TrecexamError: the file was changed meanwhile, or cannot be written.
    """
    failures = [*new.failures, *(Failure(request, reason) for request, reason in result.unwritten)]
    order = {request: index for index, request in enumerate(plan.requests)}
    written, replaced = write(plan, new.items, early=bool(result.why))
    return Generated(
        asked=result.asked,
        reused=result.reused,
        unwritten=result.unwritten,
        used=result.used,
        cost=result.cost,
        why=result.why,
        output=plan.output,
        written=written,
        queries=len({request.query_id for request, items in new.items.items() if items}),
        items=sum(map(len, new.items.values())),
        replaced=replaced,
        dropped=new.dropped,
        failures=tuple(sorted(failures, key=lambda failure: order[failure.request])),
        n_cut=n_cut,
    )


def _new_items(plan: BankPlan, prompt: ItemPrompt, prompts: PromptSet[ItemRequest]) -> NewItems:
    writer = prompts.source.writer
    texts_by_query = {query_id: known_texts(items) for query_id, items in plan.kept.items()}
    new: dict[ItemRequest, Sequence[Item]] = {}
    failures: list[Failure] = []
    dropped = DroppedItems()
    for request, cached in prompts.answered():
        origin = Origin(prompt.name, writer.model, writer.seed, cached.time, "")
        answer = read_items(cached.text, prompt.kind, cut=cached.cut)
        items, left_out = items_of(
            request, answer.texts, prompt, origin, texts_by_query.setdefault(request.query_id, set())
        )
        dropped = dropped.plus(left_out)
        new[request] = items
        if not answer.texts:
            failures.append(Failure(request, _why_unread(cached, plan)))
        elif not items:
            failures.append(Failure(request, f"every item of its answer was left out: {left_out}"))
        elif answer.cut and (prompt.number is None or len(items) < prompt.number):
            reason = f"its answer ends early, after {len(items)} items: raise `max_new_tokens`"
            failures.append(Failure(request, reason, partly=True))
    return NewItems(new, failures, dropped)


def _why_unread(cached: Kept, plan: BankPlan) -> str:
    start = " ".join(cached.text.split())[:60]
    which = f"that begins '{start}'" if start else "that is empty"
    if cached.cut:
        return f"no items in an answer {which} and ends early: raise `max_new_tokens`"
    return f"no items in an answer {which}; {plan.asks_again}"


def write(
    plan: BankPlan, new: Mapping[ItemRequest, Sequence[Item]], *, early: bool = False
) -> tuple[bool, int]:
    """Writes the file; returns whether it changed, and how many items were replaced.

    Args:
        early: not every query is through.

    Raises:
        TrecexamError: somebody else changed the file meanwhile, or it cannot be written.
    """
    rows = [(item, request.query_text) for request, items in new.items() for item in items]
    if not rows or (early and plan.whole):
        return False, 0
    replaced_lines: set[int] = set()
    insert_before: dict[str, int] = {}
    for request, items in new.items():
        replaced = plan.replaced_lines.get((request.query_id, request.facet_id), ())
        if items and replaced:
            replaced_lines.update(replaced)
            insert_before.setdefault(request.query_id, replaced[0])
    check_unchanged(plan.output, plan.content)
    # A link stays a link.
    path = Path(os.path.realpath(plan.output))
    return replace_file(path, merged(plan.content, replaced_lines, rows, insert_before)), len(replaced_lines)
