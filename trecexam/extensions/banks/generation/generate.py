"""`trecexam bank generate`: requests of items from a model, step by step, added to a bank file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from converters.fields import made_id
from converters.records import Item, Origin
from trecexam.bank.model import copies, folded, words
from trecexam.errors import GraderError, TrecexamError, quoted
from trecexam.extensions.banks.editing import item_row, row_line
from trecexam.extensions.banks.generation.nuggetizing import (
    PASSAGES,
    STAGES,
    nugget_passages,
    nuggetize,
    system_of,
)
from trecexam.extensions.banks.generation.plan import BankPlan, plan_bank
from trecexam.extensions.banks.generation.prompts import (
    NUGGETIZER,
    Ask,
    GetAnswer,
    ItemPrompt,
    ItemRequest,
    Listed,
    Steps,
    named,
    played,
    single_step,
)
from trecexam.extensions.banks.generation.reading import missing_for_reading, tidy
from trecexam.files.atomic import replace as replace_file
from trecexam.folder import TrackFolder
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import AskingResult, Job, KeepingWriter, Kept, PromptSet
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import create_writer, keeping_writers
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


def bank_job(
    folders: Sequence[TrackFolder],
    prompt: str | None = None,
    *,
    query_ids: Sequence[str] = (),
    passages: int | None = None,
    again: bool = False,
    forget_in_file: bool = False,
    whole: bool = False,
    output: Path | str | None = None,
    writer: Writer | None = None,
) -> Job[Generated]:
    """Return the job of writing items for each query without items, like `bank generate`.

    Args:
        folders: folders of graders; the first with this prompt as `write_bank` is used, else the first.
        forget_in_file: with `again`, drop unreadable answers in the file, too, for other processes.
        whole: write nothing before every query is finished.
    """
    if prompt is None:
        prompt = (folders[0].write_bank if len(folders) == 1 else None) or "questions"
    if missing := missing_for_reading():
        raise GraderError(f"answers cannot be read: {missing}")
    if passages is not None and prompt != NUGGETIZER:
        raise TrecexamError(
            f"prompt {prompt} does not read passages: leave out `passages`, which is for {NUGGETIZER}"
        )
    item_prompt = named(prompt, folders[0].root)
    folder = next((folder for folder in folders if folder.write_bank == prompt), folders[0])
    target = folder.root / f"bank.{item_prompt.kind}s.jsonl" if output is None else Path(output)
    if output is None and folder.write_bank == prompt:
        target = folder.bank_to_write() or target
    plan = plan_bank(folder, item_prompt, query_ids=query_ids, target=target, again=again)
    grader = f" --grader {quoted(folder.grader or '')}" if folder.is_one_of_several else ""
    option = "" if prompt == (folder.write_bank or "questions") else f" --prompt {quoted(prompt)}"
    asks_again = f"`trecexam bank generate {quoted(folder.root)}{grader}{option} --again` asks again"
    # A given writer cannot receive the stages' system messages.
    systems = [system_of(stage) for stage in STAGES] if prompt == NUGGETIZER else [""]
    writers = [writer] if writer else [create_writer(folder.config, folder.root, each) for each in systems]
    sources = keeping_writers(folder, *writers)
    texts: Mapping[str, Sequence[str]] = {}
    if prompt == NUGGETIZER:
        texts = nugget_passages(
            folder, [each.query_id for each in plan.requests], PASSAGES if passages is None else passages
        )

    def steps(request: ItemRequest) -> Steps:
        if prompt == NUGGETIZER:
            return nuggetize(request, texts[request.query_id], sources, asks_again)
        return single_step(request, item_prompt, sources[0], asks_again)

    return _items_job(plan, item_prompt, sources, steps, again=again, in_file=forget_in_file, whole=whole)


def _items_job(
    plan: BankPlan,
    prompt: ItemPrompt,
    sources: Sequence[KeepingWriter],
    steps: Callable[[ItemRequest], Steps],
    *,
    again: bool,
    in_file: bool,
    whole: bool,
) -> Job[Generated]:
    """Return the job of all steps of all requests; the writers of the prompts share a budget."""
    failed: dict[str, str] = {}
    seen: dict[str, Ask] = {}

    def stored(ask: Ask) -> Kept | Unread | None:
        seen[ask.prompt] = ask
        reply = ask.source.get(ask.prompt)
        if reply is None:
            return Unread(failed[ask.prompt]) if ask.prompt in failed else None
        return Unread(f"the model {reply.refusal}") if reply.refused else reply

    def play(get: GetAnswer) -> dict[ItemRequest, Listed]:
        """Return the results of finished requests; `seen` has the prompts of all steps so far."""
        seen.clear()
        results = {request: played(steps(request), get) for request in plan.requests}
        return {request: listed for request, listed in results.items() if listed is not None}

    def prompt_sets() -> list[PromptSet[str]]:
        asks = [ask for ask in seen.values() if ask.prompt not in failed]
        return [
            PromptSet(each, {ask.prompt: ask.prompt for ask in asks if ask.source is each})
            for each in sources
        ]

    play(stored)
    replies = [(ask, reply) for ask in [*seen.values()] if isinstance(reply := stored(ask), Kept)]
    unread = [ask for ask, reply in replies if again and isinstance(ask.read(reply), Unread)]
    for ask in unread:
        ask.source.forget([ask.prompt], in_file=in_file)
    play(stored)
    reused = sum(isinstance(stored(ask), Kept) for ask in [*seen.values()])

    def further(result: AskingResult[str]) -> Sequence[PromptSet[str]]:
        silent = [text for text, ask in seen.items() if ask.source.get(text) is None]
        failed.update({**dict.fromkeys(silent, "the model wrote nothing"), **dict(result.unwritten)})
        play(stored)
        sets = prompt_sets()
        return sets if any(each.unanswered() for each in sets) else ()

    def write(result: AskingResult[str]) -> Generated:
        failed.update(result.unwritten)
        done = play(stored)
        new, failures, dropped = _new_items(plan, prompt, sources[0].writer, done)
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
        play(lambda ask: reply if isinstance(reply := stored(ask), Kept) else Kept(ask.longest, ""))
        return prompt_sets()

    return Job(prompt_sets(), write, further, supposed, n_forgotten=len(unread))


def _new_items(
    plan: BankPlan, prompt: ItemPrompt, writer: Writer, done: Mapping[ItemRequest, Listed]
) -> tuple[dict[ItemRequest, list[Item]], list[tuple[ItemRequest, str]], Counter[str]]:
    """Return the items of each request, and reasons for missing items and for left-out texts."""
    existing_texts = {query_id: {*texts} for query_id, texts in plan.existing_texts.items()}
    new: dict[ItemRequest, list[Item]] = {}
    failures: list[tuple[ItemRequest, str]] = []
    dropped: Counter[str] = Counter()
    for request, listed in done.items():
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
    """Return the file with new items at its end, and the number of replaced items.

    Other lines keep their bytes.
    """
    filled = [(request.query_id, request.facet_id) for request, items in new.items() if items]
    replaced = {index for facet in filled for index in plan.replaced_lines.get(facet, ())}
    lines = [line for index, line in enumerate(lines_of(plan.content)) if index not in replaced]
    if lines and not lines[-1].endswith(b"\n"):
        lines.append(b"\n")
    lines += (
        row_line(item_row(item, request.query_text)) for request, items in new.items() for item in items
    )
    return b"".join(lines), len(replaced)
