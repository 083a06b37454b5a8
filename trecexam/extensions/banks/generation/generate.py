"""`trecexam bank generate`: the items in replies of a model, and the bank's file that gets them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

from converters.fields import made_id
from converters.records import Item, Origin
from trecexam.bank.model import copies, folded, words
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import read_items, tidy
from trecexam.extensions.banks.lines import merged
from trecexam.files.atomic import replace as replace_file
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import AskingResult, Job, KeepingWriter, Kept, PromptSet, read_replies
from trecexam.graders.writing.base import Writer
from trecexam.inputs.missing_banks import check_unchanged


@dataclass(frozen=True, kw_only=True)
class Generated(AskingResult[ItemRequest]):
    """Result of generating a bank.

    Attributes:
        output: the file with the items; `written` says whether it was changed.
        queries: those that got new items.
        items: new items; `replaced`: items that gave way to them.
        dropped: why items of answers were left out, and how many.
        failures: (query or sub-topic, why it has no items or too few), in the order of the queries;
            `unwritten` is among them.
        n_cut: prompts in which passages had to be cut to fit the model.
    """

    output: Path
    written: bool
    queries: int
    items: int
    replaced: int
    dropped: Mapping[str, int]
    failures: tuple[tuple[ItemRequest, str], ...]
    n_cut: int = 0

    @property
    def complete(self) -> bool:
        """Whether all queries have all their items."""
        return not self.failures and not self.why


class Listed(NamedTuple):
    """The items that a model listed for a request.

    `importances` are of the texts, () for none of any; `time` is of the last answer, ISO 8601. `cut`: the
    list ends early. `problem` says which steps could not be read; "" for none.
    """

    texts: Sequence[str]
    importances: Sequence[str] = ()
    time: str = ""
    cut: bool = False
    problem: str = ""


def items_job(
    plan: BankPlan, prompt: ItemPrompt, source: KeepingWriter, *, again: bool, in_file: bool
) -> Job[Generated]:
    """Return the job of one prompt for each query or sub-topic.

    Args:
        again: prompts whose answers have no items are sent again; `in_file` as of `KeepingWriter.forget`.
    """
    plain = source.writer.plain
    prompts = PromptSet(source, {request: prompt.text(request, plain) for request in plan.requests})
    read = partial(_listed, plan, prompt)
    unread = [
        prompts.prompts[reply.key]
        for reply in (read_replies([prompts], read) if again else ())
        if isinstance(reply.record, Unread)
    ]
    source.forget(unread, in_file=in_file)

    def write(result: AskingResult[ItemRequest]) -> Generated:
        listed = {reply.key: reply.record for reply in read_replies([prompts], read)}
        return write_items(plan, prompt, source.writer, listed, result)

    return Job([prompts], write, n_forgotten=len(unread))


def _listed(plan: BankPlan, prompt: ItemPrompt, request: ItemRequest, kept: Kept) -> Listed | Unread:
    """Read the items in an answer."""
    texts, cut = read_items(kept.text, prompt.kind, cut=kept.cut)
    if texts:
        return Listed(texts, (), kept.time, cut)
    start = " ".join(kept.text.split())[:60]
    which = f"that begins '{start}'" if start else "that is empty"
    early = " and ends early: raise `max_new_tokens`" if kept.cut else f"; {plan.asks_again}"
    return Unread(f"no items in an answer {which}{early}")


def write_items(
    plan: BankPlan,
    prompt: ItemPrompt,
    writer: Writer,
    listed: Mapping[ItemRequest, Listed | Unread],
    result: AskingResult[Any],
    n_cut: int = 0,
) -> Generated:
    """Write the new items to the file, and return the result."""
    known = {query_id: {*texts} for query_id, texts in plan.known.items()}
    new: dict[ItemRequest, list[Item]] = {}
    failures = [*result.unwritten]
    dropped: Counter[str] = Counter()
    for request, each in listed.items():
        if isinstance(each, Unread):
            failures.append((request, each.reason))
            continue
        origin = Origin(prompt.name, writer.model, writer.seed, each.time, "")
        texts_of_query = known.setdefault(request.query_id, set())
        items, left_out = items_of(request, each, prompt, origin, texts_of_query)
        dropped += left_out
        new[request] = items
        problem = each.problem
        if not items:
            why = ", ".join(f"{number:,} {why}" for why, number in left_out.items()) or "empty"
            problem = problem or f"every item of its answer was left out: {why}"
        elif each.cut and (prompt.number is None or len(items) < prompt.number):
            problem = f"its answer ends early, after {len(items)} items: raise `max_new_tokens`"
        if problem:
            failures.append((request, problem))
    order = {request: index for index, request in enumerate(plan.requests)}
    written, replaced = _write(plan, new, early=bool(result.why))
    return result.made(
        Generated,
        output=plan.output,
        written=written,
        queries=len({request.query_id for request, items in new.items() if items}),
        items=sum(map(len, new.values())),
        replaced=replaced,
        dropped=dropped,
        failures=tuple(sorted(failures, key=lambda failure: order[failure[0]])),
        n_cut=n_cut,
    )


def items_of(
    request: ItemRequest,
    listed: Listed,
    prompt: ItemPrompt,
    origin: Origin,
    texts_of_query: set[tuple[str, ...]],
) -> tuple[list[Item], Counter[str]]:
    """Return the items of a list, in order, and how many of its texts were left out, by why.

    Args:
        origin: of all of them, without the text.
        texts_of_query: folded texts that the query has already; those of the new items are added.
    """
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    for raw, importance in zip(listed.texts, chain(listed.importances, repeat(""))):  # noqa: B905
        text = tidy(raw)
        if not words(text):
            dropped["empty"] += 1
        elif copies(text, request.query_text):
            dropped["copies of the query"] += 1
        elif folded(text) in texts_of_query:
            dropped["duplicates"] += 1
        elif prompt.number is not None and len(items) >= prompt.number:
            dropped["more than asked for"] += 1
        else:
            texts_of_query.add(folded(text))
            items.append(
                Item(
                    request.query_id,
                    made_id(request.query_id, text),
                    text,
                    prompt.kind,
                    facet_id=request.facet_id,
                    importance=importance,
                    origin=origin._replace(text=text, importance=importance),
                )
            )
    return items, dropped


def _write(plan: BankPlan, new: Mapping[ItemRequest, Sequence[Item]], *, early: bool) -> tuple[bool, int]:
    """Write the file; return whether it changed, and how many items were replaced.

    Args:
        early: not every query is through.
    """
    rows = [(item, request.query_text) for request, items in new.items() for item in items]
    if not rows or (early and plan.whole):
        return False, 0
    replaced_lines: set[int] = set()
    places: dict[str, int] = {}
    for request, items in new.items():
        replaced = plan.replaced_lines.get((request.query_id, request.facet_id), ())
        if items and replaced:
            replaced_lines.update(replaced)
            places.setdefault(request.query_id, replaced[0])
    check_unchanged(plan.output, plan.content)
    # A link stays a link.
    path = Path(os.path.realpath(plan.output))
    return replace_file(path, merged(plan.content, replaced_lines, rows, places)), len(replaced_lines)
