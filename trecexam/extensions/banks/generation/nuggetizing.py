"""AutoNuggetizer: makes nuggets from passages step by step; prompts, and reading of answers.

Source: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer
Framework", arXiv:2411.09607, and nuggetizer's released code (castorini/nuggetizer, `Nuggetizer.create`) for
what the paper does not say: passages are numbered anew in each window, lists are written as Python writes
them, and of a list that is too long the first 30 nuggets count; sorted by importance, the first 20 are kept,
as in the paper (the code's own default is 30). Other than there, an answer that cannot be read is requested
once more, with a line that says so, and not up to 500 times at another temperature; and labels that are too
few or too many are requested again, where nuggetizer leaves out the nuggets that got none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

from trecexam.extensions.banks.generation.generate import Generated, Listed, write_items
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest, prompt_text
from trecexam.extensions.banks.generation.reading import python_list, read_items, tidy
from trecexam.graders.replies import ENDED_EARLY, Unread, fence_removed, whole_text
from trecexam.graders.writing.asking import AskingResult, Job, KeepingWriter, Kept, PromptSet
from trecexam.graders.writing.base import Writer
from trecexam.templates import filled

Stage = Literal["creator", "scorer"]
STAGES: tuple[Stage, ...] = ("creator", "scorer")
#: Passages per creation step, and nuggets per importance step.
WINDOW = 10
#: The maximum number of nuggets during creation.
MOST_CREATED = 30
IMPORTANCES = ("vital", "okay")
_LIST = re.compile(r"\[([^\[\]]*)\]")
#: A creation step's answer for estimates: a list of maximum length.
_LONGEST = [f"{n} of thirty nuggets, each of them with as many words as twelve" for n in range(MOST_CREATED)]


class NuggetPrompt(NamedTuple):
    """A prompt of a stage.

    `cut`: passages had to be cut to fit the model. `n_labels`: how many labels it asks for. `once_more`: an
    earlier answer could not be read.
    """

    stage: Stage
    text: str
    cut: bool = False
    n_labels: int = 0
    once_more: bool = False


class Answer(NamedTuple):
    """The nuggets or labels in an answer, or why there are none; and when it came."""

    read: list[str] | Unread
    time: str = ""


#: The steps of a query: each yields its prompts, and takes an answer for each.
Steps = Generator[Sequence[NuggetPrompt], Sequence[Answer], Listed]
#: Gives the stored answer to a prompt, or why there will be none; None where it is to be asked.
GetAnswer = Callable[[NuggetPrompt], Kept | Unread | None]


@cache
def system_of(stage: Stage) -> str:
    """The system prompt of a stage."""
    return prompt_text(f"nuggetizer-{stage}-system")


def nuggetize(
    request: ItemRequest, passages: Sequence[str], writer: Writer, *, has_system_message: bool = True
) -> Steps:
    """Return the nuggets of a query, vital ones first: listed from windows of its passages, then labelled.

    Args:
        passages: texts, in their order; at least one.
        has_system_message: the model is told each stage's system message; else it begins the prompt.
    """
    plain = writer.plain

    def render(stage: Stage, nuggets: Sequence[str], **values: str) -> str:
        values |= {"query": plain(request.query_text), "nuggets": str([plain(each) for each in nuggets])}
        text = filled(prompt_text(f"nuggetizer-{stage}"), values, jinja=False, name="nuggetizer")
        return text if has_system_message else f"{system_of(stage)}\n\n{text}"

    def created(context: str) -> str:
        sizes = {"nuggets_length": str(len(nuggets)), "creator_max_nuggets": str(MOST_CREATED)}
        return render("creator", nuggets, context=context, **sizes)

    nuggets: list[str] = []
    importances: list[str] = []
    unread: list[str] = []
    time = ""
    for start in range(0, len(passages), WINDOW):
        window = passages[start : start + WINDOW]
        numbered = "\n".join(f"[{number}] {text}" for number, text in enumerate(window, 1))
        ((listed, when),) = yield [NuggetPrompt("creator", *writer.fitted(created, numbered))]
        time = max(time, when)
        if isinstance(listed, Unread):
            unread.append(f"passages {start + 1} to {start + len(window)} changed no nugget: {listed.reason}")
        else:
            nuggets = listed
    windows = [nuggets[start : start + WINDOW] for start in range(0, len(nuggets), WINDOW)]
    answers = yield [
        NuggetPrompt("scorer", render("scorer", of, num_nuggets=str(len(of))), n_labels=len(of))
        for of in windows
    ]
    for window, (labels, when) in zip(windows, answers, strict=True):
        time = max(time, when)
        if isinstance(labels, Unread):
            first = len(importances) + 1
            reason = f"nuggets {first} to {first + len(window) - 1} got no importance: {labels.reason}"
            unread.append(reason)
            labels = [""] * len(window)
        importances += labels
    order = sorted(range(len(nuggets)), key=lambda at: importances[at] != "vital")
    texts, importances = [nuggets[at] for at in order], [importances[at] for at in order]
    return Listed(texts, importances, time, problem="; ".join(unread))


def played(steps: Steps, get: GetAnswer) -> Listed | list[NuggetPrompt]:
    """Return the nuggets of a query; or the prompts of its current step that are to be asked."""
    prompts = next(steps)
    while True:
        answers = [_answer(prompt, get) for prompt in prompts]
        waiting = [answer for answer in answers if isinstance(answer, NuggetPrompt)]
        if waiting:
            return waiting
        try:
            prompts = steps.send([answer for answer in answers if isinstance(answer, Answer)])
        except StopIteration as end:
            listed: Listed = end.value
            return listed


def _answer(prompt: NuggetPrompt, get: GetAnswer) -> Answer | NuggetPrompt:
    """Return the answer to a prompt, asked once more where it cannot be read; or the prompt to ask."""
    reason = Unread("")
    for each in (prompt, _once_more(prompt)):
        stored = get(each)
        if stored is None:
            return each
        if isinstance(stored, Unread):
            return Answer(stored)
        read = read_answer(stored, prompt)
        if not isinstance(read, Unread):
            return Answer(read, stored.time)
        reason = read
    return Answer(reason)


def read_answer(answer: Kept | Unread, prompt: NuggetPrompt) -> list[str] | Unread:
    """Return the nuggets or the labels in an answer, or why it cannot be read."""
    if isinstance(answer, Unread):
        return answer
    # An incomplete list would lose earlier nuggets.
    text = whole_text(answer.text, cut=answer.cut)
    if isinstance(text, Unread):
        return Unread(f"its answer {text.reason}" if text is ENDED_EARLY else "its answer is empty")
    return _read_nuggets(text) if prompt.stage == "creator" else _read_labels(text, prompt.n_labels)


def _once_more(prompt: NuggetPrompt) -> NuggetPrompt:
    task, _, asks = prompt.text.rpartition("\n")
    return prompt._replace(
        once_more=True,
        text=f"{task}\nAn earlier answer to this could not be read. Return nothing but the whole list, in "
        f'one line, in the form ["a", "b", ...], and no " within a or b.\n{asks}',
    )


def _read_nuggets(answer: str) -> list[str] | Unread:
    """The list; its first `MOST_CREATED` nuggets count."""
    nuggets = [text for each in read_items(answer, "nugget").texts if (text := tidy(each))]
    is_empty = python_list(fence_removed(answer)) is not None
    return nuggets[:MOST_CREATED] if nuggets or is_empty else Unread(_what_came(answer))


def _read_labels(answer: str, number: int) -> list[str] | Unread:
    """The label of each of so many nuggets."""
    bare = _LIST.findall(answer)
    for listed in (read_items(answer, "nugget").texts, (bare[-1] if bare else answer).split(",")):
        labels = [label.strip(" \n\"'*`.").lower() for label in listed]
        if len(labels) == number and set(labels) <= set(IMPORTANCES):
            return labels
    return Unread(f"{_what_came(answer)}, and not {number} times vital or okay")


def _what_came(answer: str) -> str:
    return f"its answer begins '{' '.join(answer.split())[:60]}'"


#: One writer for both stages if the model accepts no system messages.
Writers = Mapping[Stage, KeepingWriter]
Passages = Mapping[str, Sequence[str]]


def nuggets_job(
    plan: BankPlan, prompt: ItemPrompt, passages: Passages, writers: Writers, *, again: bool, in_file: bool
) -> Job[Generated]:
    """Return the job of all steps of all queries.

    Args:
        passages: query_id -> the passages that nuggets are made from.
        again: the last answers of steps that cannot be read are dropped; `in_file` as of
            `KeepingWriter.forget`.
    """
    writer = writers["creator"].writer
    failed: dict[str, str] = {}
    seen: dict[str, NuggetPrompt] = {}

    def stored(prompt: NuggetPrompt) -> Kept | Unread | None:
        seen[prompt.text] = prompt
        kept = writers[prompt.stage].get(prompt.text)
        if kept is None:
            return Unread(failed[prompt.text]) if prompt.text in failed else None
        return Unread(f"the model {kept.refusal}") if kept.refused else kept

    def play(get: GetAnswer) -> tuple[dict[ItemRequest, Listed | Unread], list[NuggetPrompt]]:
        """Return the nuggets of the queries that are through, and the prompts of the other ones' steps."""
        done: dict[ItemRequest, Listed | Unread] = {}
        waiting: list[NuggetPrompt] = []
        is_told = writers["creator"] is not writers["scorer"]
        for request in plan.requests:
            if texts := passages[request.query_id]:
                result = played(nuggetize(request, texts, writer, has_system_message=is_told), get)
                if isinstance(result, Listed):
                    done[request] = result
                else:
                    waiting += result
            else:
                done[request] = Unread("has no passage with a text: neither a relevant one nor a run's")
        return done, waiting

    waiting = play(stored)[1]
    unread = []
    if again:
        for each in seen.values():
            kept = stored(each)
            if each.once_more and isinstance(kept, Kept) and isinstance(read_answer(kept, each), Unread):
                unread.append(each)
                writers[each.stage].forget([each.text], in_file=in_file)
        waiting = play(stored)[1]
    reused = sum(isinstance(stored(prompt), Kept) for prompt in [*seen.values()])

    def further(result: AskingResult[str]) -> Sequence[PromptSet[str]]:
        failed.update(result.unwritten)
        failed.update((each.text, "the model wrote nothing") for each in waiting if stored(each) is None)
        waiting[:] = play(stored)[1]
        return _prompt_sets(waiting, writers) if waiting else ()

    def write(result: AskingResult[str]) -> Generated:
        failed.update(result.unwritten)
        done = play(stored)[0]
        for request, listed in done.items():
            if isinstance(listed, Listed) and listed.problem:
                done[request] = listed._replace(problem=f"{listed.problem}; {plan.asks_again}")
        n_cut = sum(prompt.cut for prompt in seen.values())
        # Steps without an answer are among the failures.
        result = replace(result, unwritten=(), reused=reused)
        return write_items(plan, prompt, writer, done, result, n_cut)

    def supposed() -> Sequence[PromptSet[str]]:
        """Return the prompts of all steps; a missing answer is supposed to be as long as it may be."""
        every: list[NuggetPrompt] = []

        def get(prompt: NuggetPrompt) -> Kept:
            every.append(prompt)
            kept = writers[prompt.stage].get(prompt.text)
            if kept is not None and not kept.refused:
                return kept
            return Kept(json.dumps(["vital"] * prompt.n_labels or _LONGEST), time="")

        play(get)
        return _prompt_sets(every, writers)

    return Job(_prompt_sets(waiting, writers), write, further, supposed, tries=2, n_forgotten=len(unread))


def _prompt_sets(prompts: Sequence[NuggetPrompt], writers: Writers) -> list[PromptSet[str]]:
    """Return the prompts of each writer; all writers share a budget."""
    stages = [STAGES] if writers["creator"] is writers["scorer"] else [(stage,) for stage in STAGES]
    return [
        PromptSet(writers[each[0]], {prompt.text: prompt.text for prompt in prompts if prompt.stage in each})
        for each in stages
    ]
