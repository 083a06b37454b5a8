"""`trecexam bank generate --prompt nuggetizer`: asks models in rounds, each query at its own step.

A query's prompts depend on earlier answers. All answers are kept, so each round goes through all steps again,
up to the first prompt without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trecexam.extensions.banks.generation.generate import Generated, Listed, write_items
from trecexam.extensions.banks.generation.nuggetizing import (
    STAGES,
    GetAnswers,
    NuggetPrompt,
    Stage,
    nuggetize,
    read_answer,
    supposed_answer,
)
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import AskingResult, Job, PromptSet
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept

#: One writer for both stages if the model accepts no system messages.
Writers = Mapping[Stage, KeepingWriter]
Passages = Mapping[str, Sequence[str]]


class _WaitingError(Exception):
    """A step has prompts without an answer."""

    def __init__(self, prompts: Sequence[NuggetPrompt]) -> None:
        self.prompts = prompts


def nuggets_job(
    plan: BankPlan, prompt: ItemPrompt, passages: Passages, writers: Writers, *, again: bool, in_file: bool
) -> Job[Generated]:
    """Return the job of all steps of all queries.

    Args:
        passages: query_id -> the passages that nuggets are made from.
        again: the last answers of steps that cannot be read are dropped; `in_file` as of `AnswerFile.forget`.
    """
    failed: dict[str, str] = {}
    seen: dict[str, NuggetPrompt] = {}

    def kept(prompt: NuggetPrompt) -> Kept | Unread | None:
        seen[prompt.text] = prompt
        stored = writers[prompt.stage].get(prompt.text)
        if stored is None:
            return Unread(failed[prompt.text]) if prompt.text in failed else None
        return Unread(f"the model {stored.text}") if stored.refused else stored

    def answers(prompts: Sequence[NuggetPrompt]) -> list[Kept | Unread]:
        found = [answer for answer in map(kept, prompts) if answer is not None]
        if len(found) < len(prompts):
            raise _WaitingError(prompts)
        return found

    def lists(answers: GetAnswers) -> tuple[dict[ItemRequest, Listed], list[NuggetPrompt]]:
        """Return the nuggets of the queries that are through, and the prompts of the other ones' steps."""
        done: dict[ItemRequest, Listed] = {}
        waiting: list[NuggetPrompt] = []
        for request in plan.requests:
            texts = passages[request.query_id]
            try:
                if texts:
                    is_told = writers["creator"] is not writers["scorer"]
                    writer = writers["creator"].writer
                    done[request] = nuggetize(request, texts, answers, writer, has_system_message=is_told)
            except _WaitingError as error:
                waiting += error.prompts
        return done, waiting

    n_forgotten = _forget_unread(writers, answers, lists, in_file=in_file) if again else 0
    first = lists(answers)[1]
    reused = sum(isinstance(kept(prompt), Kept) for prompt in [*seen.values()])

    def further(result: AskingResult[str]) -> Sequence[PromptSet[str]]:
        failed.update(result.unwritten)
        waiting = lists(answers)[1]
        return _prompt_sets(waiting, writers) if waiting else ()

    def write(result: AskingResult[str]) -> Generated:
        failed.update(result.unwritten)
        done = lists(answers)[0]
        for request in plan.requests:
            if not passages[request.query_id]:
                why = "has no passage with a text: neither a relevant one nor a run's"
                done[request] = Listed(problem=why)
            elif request in done and done[request].problem:
                done[request] = done[request]._replace(problem=f"{done[request].problem}; {plan.asks_again}")
        n_cut = sum(prompt.cut for prompt in seen.values())
        # Steps without an answer are among the failures.
        result = replace(result, unwritten=(), reused=reused)
        return write_items(plan, prompt, writers["creator"].writer, done, result, n_cut)

    def supposed() -> Sequence[PromptSet[str]]:
        """Return the prompts of all steps; a missing answer is supposed to be as long as it may be.

        Prompts that are sent once more, since an answer could not be read, are not among them.
        """
        every: list[NuggetPrompt] = []

        def answers(prompts: Sequence[NuggetPrompt]) -> list[Kept | Unread]:
            every.extend(prompts)
            stored = [(prompt, writers[prompt.stage].get(prompt.text)) for prompt in prompts]
            return [
                supposed_answer(prompt) if answer is None or answer.refused else answer
                for prompt, answer in stored
            ]

        lists(answers)
        return _prompt_sets(every, writers)

    return Job(_prompt_sets(first, writers), write, further, supposed, tries=2, n_forgotten=n_forgotten)


def _forget_unread(
    writers: Writers, answers: GetAnswers, lists: Callable[[GetAnswers], object], *, in_file: bool
) -> int:
    """Drop the last answer of each step whose answers cannot be read; return how many."""
    unread: list[NuggetPrompt] = []

    def noted(prompts: Sequence[NuggetPrompt]) -> Sequence[Kept | Unread]:
        found = answers(prompts)
        for prompt, answer in zip(prompts, found, strict=True):
            if prompt.once_more and isinstance(answer, Kept):
                unread.extend([prompt] * isinstance(read_answer(answer, prompt), Unread))
        return found

    lists(noted)
    for prompt in unread:
        writers[prompt.stage].forget([prompt.text], in_file=in_file)
    return len(unread)


def _prompt_sets(prompts: Sequence[NuggetPrompt], writers: Writers) -> list[PromptSet[str]]:
    """Return the prompts of each writer; all writers share a budget."""
    stages = [STAGES] if writers["creator"] is writers["scorer"] else [(stage,) for stage in STAGES]
    return [
        PromptSet(writers[each[0]], {prompt.text: prompt.text for prompt in prompts if prompt.stage in each})
        for each in stages
    ]
