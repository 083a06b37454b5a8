"""Putting prompts to writers: what has no answer yet is asked, and each answer is kept as it comes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from typing import Generic, TypeVar

from trecexam.errors import TrecexamError
from trecexam.graders.base import LAST_ANSWERS, Estimate, UngradedError, Usage
from trecexam.graders.sampling import MeasuredTime, measured
from trecexam.graders.writing.base import Fitted, Unwritten, Writer
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers
from trecexam.graders.writing.local import LocalWriter

#: Is told how many of how many prompts are answered.
ShowProgress = Callable[[int, int], None]
#: Asked again and again; True ends asking early, with what there is. Requests that are on their way to a
#: server get `LAST_ANSWERS` seconds.
Stop = Callable[[], bool]
Key = TypeVar("Key")


@dataclass(frozen=True)
class PromptSet(Generic[Key]):
    """What one writer is asked, and where its answers are.

    Attributes:
        prompts: what a prompt is about -> prompt; keys with the same prompt share its answer.
        cut: the keys whose text had to be cut to fit the model.
    """

    writer: Writer
    answers: KeptAnswers
    prompts: Mapping[Key, str]
    cut: frozenset[Key] = frozenset()

    @classmethod
    def of_fitted(cls, writer: Writer, answers: KeptAnswers, fitted: Mapping[Key, Fitted]) -> PromptSet[Key]:
        """The prompts of texts that were fitted to the model."""
        prompts = {key: each.prompt for key, each in fitted.items()}
        return cls(writer, answers, prompts, frozenset(key for key, each in fitted.items() if each.cut))

    def unanswered(self) -> list[str]:
        """The prompts that have no answer yet, each once, in their order."""
        return [prompt for prompt in dict.fromkeys(self.prompts.values()) if self.answers.get(prompt) is None]

    def answered(self) -> Iterator[tuple[Key, Kept]]:
        """The answers there are, in the order of the prompts."""
        for key, prompt in self.prompts.items():
            kept = self.answers.get(prompt)
            if kept is not None:
                yield key, kept


@dataclass(frozen=True, kw_only=True)
class AskingResult(Generic[Key]):
    """What came of asking.

    Attributes:
        asked: prompts that were answered now; `reused` those that had been before.
        unwritten: (key, why) of prompts that the model wrote nothing to; why begins with "the model".
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    asked: int
    reused: int
    unwritten: tuple[tuple[Key, str], ...]
    used: Usage
    cost: float | None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether every prompt was answered; not whether every answer could be read."""
        return not self.unwritten and not self.why


def estimate(prompt_sets: Sequence[PromptSet[Key]], *, timed: bool = False) -> Estimate:
    """What asking would take; prompts that were answered before take nothing. Asks nobody.

    Args:
        timed: has models in this process answer up to 85 of the prompts, to see how long all would take; what
            they write is not kept.

    Raises:
        GraderError: `timed`, and the model cannot be run.
    """
    before = _used_before(prompt_sets)
    estimates = [each.writer.estimate(each.unanswered(), before) for each in prompt_sets]
    columns = zip(*estimates, strict=True)
    summed = Estimate._make(None if None in column else sum(column) for column in columns)
    return summed._replace(time=_measured(prompt_sets)) if timed else summed


def runs_here(writer: Writer) -> bool:
    """Whether it is a model in this process, which costs nothing but time."""
    return type(writer) is LocalWriter


def _measured(prompt_sets: Sequence[PromptSet[Key]]) -> MeasuredTime | None:
    todo = [(each.writer, prompts) for each in prompt_sets if (prompts := each.unanswered())]
    if not todo or not all(runs_here(writer) for writer, _ in todo):
        return None
    writer, prompts = todo[0]

    def write(part: Sequence[str]) -> None:
        for _ in writer.write(part):
            pass

    return measured(write, prompts, sum(len(each) for _, each in todo))


def ask_all(
    prompt_sets: Sequence[PromptSet[Key]],
    progress: ShowProgress | None = None,
    stop: Stop | None = None,
    save: Callable[[], object] | None = None,
) -> AskingResult[Key]:
    """Asks each writer about its prompts that have no answer yet, until all have one or it is to stop.

    Each answer is on disk before its writer goes on. Killed at any moment, only the prompts on their way to a
    server are asked again: at most `concurrency`.

    Args:
        prompt_sets: their writers share a budget, and prices; at least one.
        save: called before an error goes on: what was paid for gets into its file, whatever ended it.

    Raises:
        GraderError: the model cannot be asked at all; what it had answered is kept.
    """
    missing = [each.unanswered() for each in prompt_sets]
    total, done = sum(map(len, missing)), 0
    reasons: list[dict[str, str]] = [{} for _ in prompt_sets]
    stopped = stop or (lambda: False)
    why = ""

    def show(now: int) -> None:
        if progress is not None:
            progress(done + now, total)

    try:
        for each, prompts, unwritten in zip(prompt_sets, missing, reasons, strict=True):
            # What this writer took itself, in an earlier round, it counts on.
            each.writer.start_from(_used_before(prompt_sets).less(each.writer.used))
            show(0)
            if prompts:
                _ask(each, prompts, unwritten, show, stopped)
            done += len(prompts)
    except UngradedError as error:
        why = error.reason
    except TrecexamError:
        if save is not None:
            save()
        raise
    if not why and stopped():
        why = "stopped"
    used = reduce(Usage.plus, (each.writer.used for each in prompt_sets))
    return AskingResult(
        asked=total - sum(len(each.unanswered()) for each in prompt_sets),
        reused=sum(len({*each.prompts.values()}) for each in prompt_sets) - total,
        unwritten=tuple(
            (key, f"the model {unwritten[prompt]}")
            for each, unwritten in zip(prompt_sets, reasons, strict=True)
            for key, prompt in each.prompts.items()
            if prompt in unwritten
        ),
        used=used,
        cost=prompt_sets[0].writer.cost(used),
        why=why,
    )


def _used_before(prompt_sets: Sequence[PromptSet[Key]]) -> Usage:
    """What all the writers ever used, which counts for the budget."""
    return reduce(Usage.plus, (each.answers.used for each in prompt_sets))


def _ask(
    prompt_set: PromptSet[Key],
    prompts: Sequence[str],
    unwritten: dict[str, str],
    show: Callable[[int], None],
    stopped: Stop,
) -> None:
    """Asks until all is answered or it is to stop.

    Args:
        unwritten: gets the prompts that the model wrote nothing to, with the reason.
        show: is told how many prompts are answered.
    """
    writer, answers = prompt_set.writer, prompt_set.answers
    done, counted, ends = 0, writer.used, float("inf")
    try:
        for batch in writer.write(takewhile(lambda _: not stopped(), prompts)):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            kept = []
            for prompt, text in batch:
                if isinstance(text, Unwritten):
                    unwritten[prompt] = text.reason
                else:
                    kept.append((prompt, Kept(text.text, text.cut, now, text.tokens_in, text.tokens_out)))
            answers.add(kept, writer.used.less(counted))
            counted = writer.used
            done += len(batch)
            if batch:
                show(done)
            if stopped():
                # What is on its way to a server is paid for, and would be asked again.
                ends = min(ends, time.monotonic() + (LAST_ANSWERS if writer.paid else 0))
            if time.monotonic() >= ends:
                return
    finally:
        answers.add((), writer.used.less(counted))
