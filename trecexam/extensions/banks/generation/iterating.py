"""`trecexam bank generate --prompt nuggetizer`: calls models in rounds, with each query at its own step.

A query's prompts depend on earlier answers. All that was answered is kept, so that asking again
from the first step on calls no model until the step where it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from converters.records import Item, Origin
from trecexam.errors import TrecexamError
from trecexam.extensions.banks.generation.generate import Failure, Generated, NewItems, outcome, write
from trecexam.extensions.banks.generation.making import DroppedItems, items_of, known_texts
from trecexam.extensions.banks.generation.nuggetizing import (
    STAGES,
    NuggetPrompt,
    Nuggets,
    Stage,
    Steps,
    nuggetize,
    read_answer,
    supposed_answer,
)
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import Ask, AskingResult, PromptSet
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept

#: A query's step, and the index of a prompt in the step.
Key = tuple[ItemRequest, int]


class _Query(NamedTuple):
    """A query at a step, with the prompts whose answers it waits for."""

    steps: Steps
    prompts: Sequence[NuggetPrompt]


#: One writer for both stages if the model accepts no system messages.
Writers = Mapping[Stage, KeepingWriter]
Passages = Mapping[str, Sequence[str]]


def generate_nuggets(
    plan: BankPlan, prompt: ItemPrompt, passages: Passages, writers: Writers, ask: Ask
) -> Generated:
    """Runs all steps, and writes the nuggets of finished queries to the file at the end.

    Raises:
        TrecexamError: the file was changed meanwhile, or cannot be written.
    """
    done: dict[ItemRequest, Nuggets] = {}
    waiting = _begun(plan, passages, writers)
    result: AskingResult[Key] | None = None
    cut: set[str] = set()
    while result is None or (waiting and not result.why):
        cut |= {each.text for query in waiting.values() for each in query.prompts if each.cut}
        sets = _prompt_sets({request: query.prompts for request, query in waiting.items()}, writers)
        try:
            result = ask(sets)
        except TrecexamError:
            write(plan, _new_items(plan, prompt, writers, done).items, early=True)
            raise
        answers: dict[Key, Kept | Unread] = {key: cached for each in sets for key, cached in each.answered()}
        answers |= {key: Unread(why) for key, why in result.unwritten}
        waiting = _advanced(waiting, answers, done, ended=bool(result.why))
    new = _new_items(plan, prompt, writers, done)
    without = (request for request in plan.requests if not passages[request.query_id])
    why = "has no passage with a text: neither a relevant one nor a run's"
    failures = [*new.failures, *(Failure(request, why) for request in without)]
    # Steps without an answer are among the failures.
    result = replace(result, unwritten=())
    return outcome(plan, result, new._replace(failures=failures), len(cut))


def nugget_prompts(plan: BankPlan, passages: Passages, writers: Writers) -> list[PromptSet[Key]]:
    """The prompts to be sent, for an estimate; a missing answer is assumed to have the maximum length.

    Prompts that are sent once more, since an answer could not be read, are not among them.
    """
    every: dict[ItemRequest, Sequence[NuggetPrompt]] = {}
    for request, (steps, prompts) in _begun(plan, passages, writers).items():
        every[request] = ()
        with suppress(StopIteration):
            while True:
                every[request] = (*every[request], *prompts)
                cached_answers = (writers[each.stage].get(each.text) for each in prompts)
                prompts = steps.send(
                    [
                        supposed_answer(each) if answer is None or answer.refused else answer
                        for answer, each in zip(cached_answers, prompts, strict=True)
                    ]
                )
    return _prompt_sets(every, writers)


def forget_unread(plan: BankPlan, passages: Passages, writers: Writers, *, in_file: bool) -> int:
    """Drops the last answer of each step whose answers could not be read; returns how many.

    Args:
        in_file: as of `AnswerFile.forget`.
    """
    unread: list[NuggetPrompt] = []
    for steps, prompts in _begun(plan, passages, writers).values():
        with suppress(StopIteration):
            while True:
                stored = [writers[each.stage].get(each.text) for each in prompts]
                answers = [Unread(each.text) if each.refused else each for each in stored if each is not None]
                if len(answers) < len(prompts):
                    break
                unread += (
                    prompt
                    for answer, prompt in zip(answers, prompts, strict=True)
                    if prompt.once_more
                    and isinstance(answer, Kept)
                    and isinstance(read_answer(answer, prompt), Unread)
                )
                prompts = steps.send(answers)
    for prompt in unread:
        writers[prompt.stage].forget([prompt.text], in_file=in_file)
    return len(unread)


def _begun(plan: BankPlan, passages: Passages, writers: Writers) -> dict[ItemRequest, _Query]:
    """Every query that has passages, at its first step."""
    creator = writers["creator"]
    begun = {}
    for request in plan.requests:
        if passages[request.query_id]:
            has_system_message = creator is not writers["scorer"]
            plain, fitted = creator.writer.plain, creator.writer.fitted
            steps = nuggetize(
                request, passages[request.query_id], plain, fitted, has_system_message=has_system_message
            )
            begun[request] = _Query(steps, next(steps))
    return begun


def _prompt_sets(
    prompts: Mapping[ItemRequest, Sequence[NuggetPrompt]], writers: Writers
) -> list[PromptSet[Key]]:
    """The prompts of each writer, all writers with each other, as they share a budget."""
    stages = [STAGES] if writers["creator"] is writers["scorer"] else [(stage,) for stage in STAGES]
    return [
        PromptSet(
            writers[of_writer[0]],
            {
                (request, index): prompt.text
                for request, of_request in prompts.items()
                for index, prompt in enumerate(of_request)
                if prompt.stage in of_writer
            },
        )
        for of_writer in stages
    ]


def _advanced(
    waiting: Mapping[ItemRequest, _Query],
    answers: Mapping[Key, Kept | Unread],
    done: dict[ItemRequest, Nuggets],
    *,
    ended: bool,
) -> dict[ItemRequest, _Query]:
    """The queries at their next steps; finished ones are added to `done`.

    Args:
        ended: asking ended early: prompts without an answer are sent another time.
    """
    further = {}
    for request, query in waiting.items():
        keys = [(request, index) for index in range(len(query.prompts))]
        if ended and not answers.keys() >= set(keys):
            continue
        try:
            prompts = query.steps.send([answers.get(key, Unread("the model wrote nothing")) for key in keys])
            further[request] = query._replace(prompts=prompts)
        except StopIteration as end:
            done[request] = end.value
    return further


def _new_items(
    plan: BankPlan, prompt: ItemPrompt, writers: Writers, done: Mapping[ItemRequest, Nuggets]
) -> NewItems:
    writer = writers["creator"].writer
    new: dict[ItemRequest, Sequence[Item]] = {}
    failures: list[Failure] = []
    dropped = DroppedItems()
    for request in plan.requests:
        nuggets = done.get(request)
        if nuggets is None:
            continue
        texts_of_query = known_texts(plan.kept.get(request.query_id, ()))
        origin = Origin(prompt.name, writer.model, writer.seed, nuggets.time, "")
        new[request], left_out = items_of(
            request, nuggets.texts, prompt, origin, texts_of_query, nuggets.importances
        )
        dropped = dropped.plus(left_out)
        reasons = "; ".join((*nuggets.unread, plan.asks_again) if nuggets.unread else ())
        if not new[request]:
            failures.append(
                Failure(
                    request, reasons or f"every nugget of the list was left out ({str(left_out) or 'empty'})"
                )
            )
        elif reasons:
            failures.append(Failure(request, reasons, partly=True))
    return NewItems(new, failures, dropped)
