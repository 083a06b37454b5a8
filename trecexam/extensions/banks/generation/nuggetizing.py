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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

from trecexam.extensions.banks.generation.generate import Generated, Listed, write_items
from trecexam.extensions.banks.generation.plan import BankPlan
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest, prompt_text
from trecexam.extensions.banks.generation.reading import python_list, read_items, tidy
from trecexam.graders.replies import ENDED_EARLY, Unread, fence_removed, whole_text
from trecexam.graders.writing.asking import AskingResult, Job, PromptSet
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept
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


#: Gives the model's answer to each prompt, or why it has none.
GetAnswers = Callable[[Sequence[NuggetPrompt]], Sequence[Kept | Unread]]
#: A stage and its slots' values -> a prompt.
Render = Callable[[Stage, Mapping[str, str]], str]


@cache
def system_of(stage: Stage) -> str:
    """The system prompt of a stage."""
    return prompt_text(f"nuggetizer-{stage}-system")


def nuggetize(
    request: ItemRequest,
    passages: Sequence[str],
    answers: GetAnswers,
    writer: Writer,
    *,
    has_system_message: bool = True,
) -> Listed:
    """Return the nuggets of a query, vital ones first: listed from windows of its passages, then labelled.

    Args:
        passages: texts, in their order; at least one.
        has_system_message: the model is told each stage's system message; else it begins the prompt.
    """
    plain = writer.plain
    query = plain(request.query_text)

    def render(stage: Stage, values: Mapping[str, str]) -> str:
        text = filled(prompt_text(f"nuggetizer-{stage}"), values, jinja=False, name="nuggetizer")
        return text if has_system_message else f"{system_of(stage)}\n\n{text}"

    nuggets: list[str] = []
    unread: list[str] = []
    time = ""
    for start in range(0, len(passages), WINDOW):
        window = passages[start : start + WINDOW]
        prompt = _creator_prompt(query, window, [plain(nugget) for nugget in nuggets], render, writer)
        (listed,), when = _read([prompt], answers)
        time = max(time, when)
        if isinstance(listed, Unread):
            unread.append(f"passages {start + 1} to {start + len(window)} changed no nugget: {listed.reason}")
        else:
            nuggets = listed
    windows = [nuggets[start : start + WINDOW] for start in range(0, len(nuggets), WINDOW)]
    prompts = []
    for window in windows:
        values = {"query": query, "nuggets": str([plain(nugget) for nugget in window])}
        text = render("scorer", {**values, "num_nuggets": str(len(window))})
        prompts.append(NuggetPrompt("scorer", text, n_labels=len(window)))
    labels, when = _read(prompts, answers)
    importances: list[str] = []
    for number, (window, of_window) in enumerate(zip(windows, labels, strict=True)):
        if isinstance(of_window, Unread):
            first = number * WINDOW + 1
            unread.append(
                f"nuggets {first} to {first + len(window) - 1} got no importance: {of_window.reason}"
            )
            of_window = [""] * len(window)
        importances += of_window
    order = sorted(range(len(nuggets)), key=lambda at: importances[at] != "vital")
    texts, importances = [nuggets[at] for at in order], [importances[at] for at in order]
    return Listed(texts, importances, max(time, when), problem="; ".join(unread))


def supposed_answer(prompt: NuggetPrompt) -> Kept:
    """An answer of maximum length, to estimate the following steps."""
    return Kept(json.dumps(["vital"] * prompt.n_labels or _LONGEST), time="")


def _read(prompts: Sequence[NuggetPrompt], answers: GetAnswers) -> tuple[list[list[str] | Unread], str]:
    """Read the answers; ask once more where one cannot be read. Also return the time of the last answer."""
    if not prompts:
        return [], ""
    found = list(answers(prompts))
    results = [read_answer(answer, prompt) for answer, prompt in zip(found, prompts, strict=True)]
    failed = [
        at for at, result in enumerate(results) if isinstance(result, Unread) and isinstance(found[at], Kept)
    ]
    again = answers([_once_more(prompts[at]) for at in failed]) if failed else ()
    for at, answer in zip(failed, again, strict=True):
        found[at], results[at] = answer, read_answer(answer, prompts[at])
    times = (
        answer.time
        for answer, result in zip(found, results, strict=True)
        if isinstance(answer, Kept) and not isinstance(result, Unread)
    )
    return results, max(times, default="")


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


def _creator_prompt(
    query: str, window: Sequence[str], nuggets: Sequence[str], render: Render, writer: Writer
) -> NuggetPrompt:
    values = {
        "query": query,
        "nuggets": str(nuggets),
        "nuggets_length": str(len(nuggets)),
        "creator_max_nuggets": str(MOST_CREATED),
    }
    numbered = "\n".join(f"[{number}] {text}" for number, text in enumerate(window, 1))
    return NuggetPrompt(
        "creator", *writer.fitted(lambda context: render("creator", {**values, "context": context}), numbered)
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
        again: the last answers of steps that cannot be read are dropped; `in_file` as of
            `KeepingWriter.forget`.
    """
    failed: dict[str, str] = {}
    seen: dict[str, NuggetPrompt] = {}

    def kept(prompt: NuggetPrompt) -> Kept | Unread | None:
        seen[prompt.text] = prompt
        stored = writers[prompt.stage].get(prompt.text)
        if stored is None:
            return Unread(failed[prompt.text]) if prompt.text in failed else None
        return Unread(f"the model {stored.refusal}") if stored.refused else stored

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
    waiting = lists(answers)[1]
    reused = sum(isinstance(kept(prompt), Kept) for prompt in [*seen.values()])

    def further(result: AskingResult[str]) -> Sequence[PromptSet[str]]:
        failed.update(result.unwritten)
        failed.update((each.text, "the model wrote nothing") for each in waiting if kept(each) is None)
        waiting[:] = lists(answers)[1]
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

    return Job(_prompt_sets(waiting, writers), write, further, supposed, tries=2, n_forgotten=n_forgotten)


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
