"""`trecexam bank generate`: requests of items from a model, step by step, added to a bank file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from converters.fields import made_id
from converters.records import Item, Origin
from trecexam.bank.model import copies, folded, words
from trecexam.extensions.banks.editing import item_row, row_line
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import ReadItems, read_items, tidy
from trecexam.files.atomic import replace as replace_file
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import AskingResult, Job, KeepingWriter, Kept, PromptSet, Reply
from trecexam.graders.writing.base import Writer
from trecexam.inputs.missing_banks import check_unchanged, lines_of


@dataclass(frozen=True, kw_only=True)
class Generated(AskingResult[ItemRequest]):
    """Result of generating a bank.

    Attributes:
        output: the file with the items; `written` is True if it changed.
        queries: queries with new items.
        items: number of new items; `replaced`: number of removed old items.
        dropped: reason -> number of items left out of answers.
        failures: (query or sub-topic, reason for missing items), in the order of the queries.
        n_cut: number of prompts with passages cut to fit the model.
    """

    output: Path
    written: bool
    queries: int
    items: int
    replaced: int
    dropped: Mapping[str, int]
    failures: tuple[tuple[ItemRequest, str], ...]
    n_cut: int

    @property
    def complete(self) -> bool:
        """True if all queries have all items."""
        return not self.failures and not self.why


class Ask(NamedTuple):
    """A prompt of a step.

    Attributes:
        source: the writer that answers the prompt.
        read: returns the texts in an answer, or the reason for none.
        longest: an answer of maximum length, for estimates.
        cut: True if passages were cut to fit the model.
        retry: prompt to send after an unreadable answer; "" for none.
    """

    source: KeepingWriter
    prompt: str
    read: Callable[[Kept], ReadItems | Unread]
    longest: str = ""
    cut: bool = False
    retry: str = ""


class Listed(NamedTuple):
    """The items that a model listed for a request.

    `items` are (text, importance), with importance "" if unknown; `time` is that of the last answer, ISO
    8601. `cut`: the list ends early. `problem` names unreadable steps; "" for none.
    """

    items: Sequence[tuple[str, str]]
    time: str
    cut: bool = False
    problem: str = ""


#: Generator of a request's steps: yields the prompts of a step, and receives a reply to each.
Steps = Generator[Sequence[Ask], Sequence[Reply[Ask, ReadItems]], Listed | Unread]
#: Returns the stored answer to a prompt, or the reason for none; None if the prompt must be sent.
GetAnswer = Callable[[Ask], Kept | Unread | None]


def single_step(request: ItemRequest, prompt: ItemPrompt, source: KeepingWriter, asks_again: str) -> Steps:
    """Return the items in the answer to one prompt."""

    def read(reply: Kept) -> ReadItems | Unread:
        items = read_items(reply.text, prompt.kind, cut=reply.cut)
        start = " ".join(reply.text.split())[:60]
        which = f"that begins '{start}'" if start else "that is empty"
        early = " and ends early: raise `max_new_tokens`" if reply.cut else f"; {asks_again}"
        return items if items.texts else Unread(f"no items in an answer {which}{early}")

    (reply,) = yield [Ask(source, prompt.text(request, source.writer.plain), read)]
    if isinstance(reply.record, Unread):
        return reply.record
    return Listed([(text, "") for text in reply.record.texts], reply.kept.time, reply.record.cut)


def played(steps: Steps, get: GetAnswer) -> Listed | Unread | list[Ask]:
    """Return the result of a request's steps, or the unanswered prompts of its current step."""
    try:
        asks = next(steps)
        while True:
            replies = [_reply(ask, get) for ask in asks]
            if waiting := [reply for reply in replies if isinstance(reply, Ask)]:
                return waiting
            asks = steps.send([reply for reply in replies if isinstance(reply, Reply)])
    except StopIteration as end:
        listed: Listed | Unread = end.value
        return listed


def _reply(ask: Ask, get: GetAnswer) -> Reply[Ask, ReadItems] | Ask:
    """Return the reply to a prompt, else the prompt to send; unreadable replies are retried once."""
    stored, writer = get(ask), ask.source.writer
    if stored is None:
        return ask
    if isinstance(stored, Unread):
        return Reply(ask, writer, Kept("", ""), stored)
    record = ask.read(stored)
    if isinstance(record, Unread) and ask.retry:
        return _reply(ask._replace(prompt=ask.retry, retry=""), get)
    return Reply(ask, writer, stored, record)


def items_job(
    plan: BankPlan,
    prompt: ItemPrompt,
    sources: Sequence[KeepingWriter],
    steps: Callable[[ItemRequest], Steps],
    *,
    again: bool,
    in_file: bool,
    whole: bool,
) -> Job[Generated]:
    """Return the job of all steps of all requests.

    Args:
        sources: writers of the prompts, which share a budget.
        again: drop unreadable last answers; `in_file` as for `KeepingWriter.forget`.
        whole: write nothing before every request is finished.
    """
    failed: dict[str, str] = {}
    seen: dict[str, Ask] = {}

    def stored(ask: Ask) -> Kept | Unread | None:
        seen[ask.prompt] = ask
        reply = ask.source.get(ask.prompt)
        if reply is None:
            return Unread(failed[ask.prompt]) if ask.prompt in failed else None
        return Unread(f"the model {reply.refusal}") if reply.refused else reply

    def play(get: GetAnswer) -> tuple[dict[ItemRequest, Listed | Unread], list[PromptSet[str]]]:
        """Return the results of finished requests, and the prompts of the current steps of all others."""
        results = {request: played(steps(request), get) for request in plan.requests}
        waiting = [ask for result in results.values() if isinstance(result, list) for ask in result]
        done = {request: result for request, result in results.items() if not isinstance(result, list)}
        return done, prompt_sets(waiting)

    def prompt_sets(asks: Iterable[Ask]) -> list[PromptSet[str]]:
        prompts = [(ask.source, ask.prompt) for ask in asks]
        return [
            PromptSet(each, {text: text for source, text in prompts if source is each}) for each in sources
        ]

    first = play(stored)[1]
    unread = [
        ask
        for ask in [*seen.values()]
        if again
        and not ask.retry
        and isinstance(stored_reply := stored(ask), Kept)
        and isinstance(ask.read(stored_reply), Unread)
    ]
    if unread:
        for ask in unread:
            ask.source.forget([ask.prompt], in_file=in_file)
        first = play(stored)[1]
    reused = sum(isinstance(stored(ask), Kept) for ask in [*seen.values()])

    def further(result: AskingResult[str]) -> Sequence[PromptSet[str]]:
        failed.update(result.unwritten)
        failed.update(
            (text, "the model wrote nothing") for text, ask in [*seen.items()] if stored(ask) is None
        )
        sets = play(stored)[1]
        return sets if any(each.prompts for each in sets) else ()

    def write(result: AskingResult[str]) -> Generated:
        failed.update(result.unwritten)
        new, failures, dropped = _new_items(plan, prompt, sources[0].writer, play(stored)[0])
        n_items = sum(map(len, new.values()))
        content, replaced = plan.content, 0
        if n_items and not (result.why and whole):
            content, replaced = merged(plan, new)
            check_unchanged(plan.output, plan.content)
        # Failures include prompts without an answer.
        return replace(result, unwritten=(), reused=reused).made(
            Generated,
            output=plan.output,
            # Keep a symbolic link.
            written=content != plan.content and replace_file(Path(os.path.realpath(plan.output)), content),
            queries=len({request.query_id for request, items in new.items() if items}),
            items=n_items,
            replaced=replaced,
            dropped=dropped,
            failures=tuple(failures),
            n_cut=sum(ask.cut for ask in seen.values()),
        )

    def supposed() -> Sequence[PromptSet[str]]:
        """Return the prompts of all steps for estimates; assume maximum length of missing answers."""
        every: list[Ask] = []

        def get(ask: Ask) -> Kept:
            every.append(ask)
            reply = ask.source.get(ask.prompt)
            return Kept(ask.longest, time="") if reply is None or reply.refused else reply

        play(get)
        return prompt_sets(every)

    tries = 1 + any(ask.retry for ask in seen.values())
    return Job(first, write, further, supposed, tries=tries, n_forgotten=len(unread))


def _new_items(
    plan: BankPlan, prompt: ItemPrompt, writer: Writer, done: Mapping[ItemRequest, Listed | Unread]
) -> tuple[dict[ItemRequest, list[Item]], list[tuple[ItemRequest, str]], Counter[str]]:
    """Return the items of each request, and reasons for missing items and for left-out texts."""
    existing_texts = {query_id: {*texts} for query_id, texts in plan.existing_texts.items()}
    new: dict[ItemRequest, list[Item]] = {}
    failures: list[tuple[ItemRequest, str]] = []
    dropped: Counter[str] = Counter()
    for request, listed in done.items():
        if isinstance(listed, Unread):
            failures.append((request, listed.reason))
            continue
        texts = existing_texts.setdefault(request.query_id, set())
        items, left_out = new.setdefault(request, []), Counter[str]()
        for raw, importance in listed.items:
            text = tidy(raw)
            if not words(text):
                left_out["empty"] += 1
            elif copies(text, request.query_text):
                left_out["copies of the query"] += 1
            elif folded(text) in texts:
                left_out["duplicates"] += 1
            elif len(items) == prompt.number:
                left_out["more than asked for"] += 1
            else:
                texts.add(folded(text))
                item_id = made_id(request.query_id, text)
                item = Item(request.query_id, item_id, text, prompt.kind, (), request.facet_id)
                origin = Origin(prompt.name, writer.model, writer.seed, listed.time, text, importance)
                items.append(item._replace(importance=importance, origin=origin))
        dropped += left_out
        problem = listed.problem
        if not items:
            why = ", ".join(f"{number:,} {why}" for why, number in left_out.items()) or "empty"
            problem = problem or f"every item of its answer was left out: {why}"
        elif listed.cut and (prompt.number is None or len(items) < prompt.number):
            problem = f"its answer ends early, after {len(items)} items: raise `max_new_tokens`"
        if problem:
            failures.append((request, problem))
    return new, failures, dropped


def merged(plan: BankPlan, new: Mapping[ItemRequest, Sequence[Item]]) -> tuple[bytes, int]:
    """Return the file with new items, and the number of replaced items; other lines keep their bytes.

    New items take the position of the first replaced item of their query, else the end.
    """
    lines = [*lines_of(plan.content), b""]
    if len(lines) > 1 and not lines[-2].endswith(b"\n"):
        lines[-2] += b"\n"
    n_replaced = 0
    line_of_query: dict[str, int] = {}
    for request, items in new.items():
        replaced = plan.replaced_lines.get((request.query_id, request.facet_id), ()) if items else ()
        n_replaced += len(replaced)
        for index in replaced:
            lines[index] = b""
            line_of_query.setdefault(request.query_id, index)
        rows = b"".join(row_line(item_row(item, request.query_text)) for item in items)
        lines[line_of_query.get(request.query_id, -1)] += rows
    return b"".join(lines), n_replaced
