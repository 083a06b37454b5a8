"""Putting prompts to writers: prompts without an answer are sent, and each answer is kept as it comes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile, zip_longest
from typing import Any, Generic, TypeVar

from trecexam.errors import TrecexamError
from trecexam.graders.base import Estimate, Stopwatch, UngradedError
from trecexam.graders.meter import Spent, Usage
from trecexam.graders.replies import read_reply
from trecexam.graders.sampling import MeasuredTime, measured
from trecexam.graders.writing.base import Fitted, Unwritten, Writer
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept

#: Is told how many of how many prompts are answered.
ShowProgress = Callable[[int, int], None]
#: Asked again and again; True ends asking early, with what there is, see `Stopwatch`.
Stop = Callable[[], bool]
#: Gives what graders used of a purse; it is told what tokens cost where no grader knows.
SpentByGraders = Callable[[str, Callable[[Usage], float | None]], Spent]
Key = TypeVar("Key")
Made = TypeVar("Made")


@dataclass(frozen=True)
class PromptSet(Generic[Key]):
    """The prompts of one writer.

    Attributes:
        prompts: what a prompt is about -> prompt; keys with the same prompt share its answer.
        cut: the keys whose text had to be cut to fit the model.
    """

    source: KeepingWriter
    prompts: Mapping[Key, str]
    cut: frozenset[Key] = frozenset()

    @classmethod
    def of_fitted(cls, source: KeepingWriter, fitted: Mapping[Key, Fitted]) -> PromptSet[Key]:
        """The prompts of texts that were fitted to the model."""
        prompts = {key: each.prompt for key, each in fitted.items()}
        return cls(source, prompts, frozenset(key for key, each in fitted.items() if each.cut))

    def unanswered(self) -> list[str]:
        """The prompts that have no answer yet, each once, in their order."""
        return [prompt for prompt in dict.fromkeys(self.prompts.values()) if self.source.get(prompt) is None]

    def refusal(self, prompt: str) -> str:
        """Return why the model refused to answer a prompt; "" where it did not."""
        stored = self.source.get(prompt)
        return stored.text if stored is not None and stored.refused else ""

    def answered(self) -> Iterator[tuple[Key, Kept]]:
        """What was written, in the order of the prompts."""
        for key, prompt in self.prompts.items():
            stored = self.source.get(prompt)
            if stored is not None and not stored.refused:
                yield key, stored


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

    def after(self, before: AskingResult[Key] | None) -> AskingResult[Key]:
        """Both rounds together; writers count on from round to round."""
        if before is None:
            return self
        return replace(
            self,
            asked=before.asked + self.asked,
            reused=before.reused + self.reused,
            unwritten=(*before.unwritten, *self.unwritten),
        )


#: Gives the next prompts and receives their answers; at its end what was made of all. Errors of asking are
#: raised in it, so that it can write what was paid for.
Rounds = Generator[Sequence[PromptSet[Any]], AskingResult[Any], Made]


@dataclass(frozen=True)
class Job(Generic[Made]):
    """Something that models are requested. It is done once.

    Attributes:
        every_prompt: gives what would be asked in all rounds, for an estimate; None for that of the first.
        tries: how often a prompt is sent at most, as its answer may be one that cannot be read.
        n_forgotten: stored answers that were dropped, as they cannot be read.
    """

    rounds: Rounds[Made]
    every_prompt: Callable[[], Sequence[PromptSet[Any]]] | None = None
    tries: int = 1
    n_forgotten: int = 0

    def estimate(self, *, timed: bool = False) -> Estimate:
        """What `ask` would take; prompts that were answered before take nothing. Asks nobody.

        Args:
            timed: has a model in this process answer up to 85 of the prompts, to see how long all would take;
                what it writes is not kept.

        Raises:
            GraderError: `timed`, and the model cannot be run.
        """
        prompt_sets = next(self.rounds) if self.every_prompt is None else self.every_prompt()
        estimated = estimate(prompt_sets, timed=timed)
        if estimated.tokens_out_at_most is None:
            return estimated
        cost, calls = estimated.cost_at_most, estimated.calls_at_most
        return estimated._replace(
            tokens_out_at_most=self.tries * estimated.tokens_out_at_most,
            cost_at_most=None if cost is None else self.tries * cost,
            calls_at_most=None if calls is None else self.tries * calls,
        )

    def ask(
        self,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
        spent_by_graders: SpentByGraders = lambda *_: Spent(),
    ) -> Made:
        """Asks round after round; gives what was made of the answers.

        Raises:
            GraderError: the model cannot be asked at all; what it had answered is kept.
        """
        done = 0

        def show(now: int, of: int) -> None:
            if progress is not None:
                progress(done + now, done + of)

        try:
            prompt_sets = next(self.rounds)
            while True:
                try:
                    result = ask_all(prompt_sets, show, stop, spent_by_graders)
                except TrecexamError as error:
                    self.rounds.throw(error)
                    raise
                done += result.asked
                prompt_sets = self.rounds.send(result)
        except StopIteration as end:
            made: Made = end.value
            return made


def estimate(prompt_sets: Sequence[PromptSet[Key]], *, timed: bool = False) -> Estimate:
    """Return what asking would take, as `Job.estimate`."""
    for each in prompt_sets:
        if each.source.writer.meter is not None:
            each.source.writer.meter.before = _used_before(prompt_sets)
    summed = reduce(Estimate.plus, (each.source.writer.estimate(each.unanswered()) for each in prompt_sets))
    return summed._replace(time=_measured(prompt_sets)) if timed else summed


def _measured(prompt_sets: Sequence[PromptSet[Key]]) -> MeasuredTime | None:
    todo = [(each.source.writer, prompts) for each in prompt_sets if (prompts := each.unanswered())]
    if not todo or not all(writer.is_here for writer, _ in todo):
        return None
    writer = todo[0][0]
    in_turn = zip_longest(*(prompts for who, prompts in todo if who is writer))
    prompts = [prompt for of_each in in_turn for prompt in of_each if prompt is not None]
    return measured(lambda part: [*writer.write(part)], prompts, sum(len(each) for _, each in todo))


def ask_all(
    prompt_sets: Sequence[PromptSet[Key]],
    progress: ShowProgress | None = None,
    stop: Stop | None = None,
    spent_by_graders: SpentByGraders = lambda *_: Spent(),
) -> AskingResult[Key]:
    """Ask each writer about its prompts that have no answer yet, until all have one or it is to stop.

    Each answer is on disk before its writer continues. Killed at any moment, only the prompts on their way to
    a server are sent again: at most `concurrency`; of a model in this process, the batch in hand.

    Args:
        prompt_sets: their writers share a purse, and prices; at least one.
        spent_by_graders: counts for budgets beside what all writers of that purse used.

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
            show(0)
            if prompts:
                _tell_spent(each.source.writer, prompt_sets, spent_by_graders)
                _ask(each, prompts, unwritten, show, stopped)
            done += len(prompts)
    except UngradedError as error:
        why = error.reason
    if not why and stopped():
        why = "stopped"
    writers = list(dict.fromkeys(each.source.writer for each in prompt_sets))
    used = reduce(Usage.plus, map(_used, writers))
    return AskingResult(
        asked=total - sum(len(each.unanswered()) for each in prompt_sets),
        reused=sum(len({*each.prompts.values()}) for each in prompt_sets) - total,
        unwritten=tuple(
            (key, f"the model {reason}")
            for each, unwritten in zip(prompt_sets, reasons, strict=True)
            for key, prompt in each.prompts.items()
            if (reason := unwritten.get(prompt) or each.refusal(prompt))
        ),
        used=used,
        cost=None if writers[0].meter is None else writers[0].meter.cost(used),
        why=why,
    )


def _used(writer: Writer) -> Usage:
    return Usage() if writer.meter is None else writer.meter.used


def _used_before(prompt_sets: Sequence[PromptSet[Key]]) -> Usage:
    """Return what these writers ever used."""
    used = {each.source.digest: each.source.used for each in prompt_sets}
    return reduce(Usage.plus, used.values(), Usage())


def _tell_spent(
    writer: Writer, prompt_sets: Sequence[PromptSet[Key]], spent_by_graders: SpentByGraders
) -> None:
    """Tell a writer what its purse paid before."""
    meter, file = writer.meter, prompt_sets[0].source.file
    if meter is None:
        return
    # What this writer took itself, in an earlier round, it counts on.
    meter.before = _used_before(prompt_sets).less(meter.used)
    others = file.spent(file.purse, {each.source.digest for each in prompt_sets})
    meter.beside = meter.spent(others).plus(spent_by_graders(file.purse, meter.cost))


def _ask(
    prompt_set: PromptSet[Key],
    prompts: Sequence[str],
    unwritten: dict[str, str],
    show: Callable[[int], None],
    stopped: Stop,
) -> None:
    """Ask until all is answered or it is to stop.

    Args:
        unwritten: gets the prompts that have no answer and why, but for refusals, which are answers.
        show: is told how many prompts are answered.
    """
    source, writer = prompt_set.source, prompt_set.source.writer
    done, counted, watch = 0, _used(writer), Stopwatch(stopped, paid=writer.meter is not None)
    try:
        for batch in writer.write(takewhile(lambda _: not stopped(), prompts)):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            new_answers = []
            for prompt, text in batch:
                if not isinstance(text, Unwritten):
                    cut = read_reply(text.text, cut=text.cut).ends_early
                    cut_at = writer.new_tokens if cut else None
                    stored = Kept(text.text, cut, now, text.tokens_in, text.tokens_out, cut_at=cut_at)
                    new_answers.append((prompt, stored))
                elif text.refused:
                    new_answers.append((prompt, Kept(text.reason, cut=False, time=now, refused=True)))
                else:
                    unwritten[prompt] = text.reason
            # Requests that end meanwhile count with the next batch.
            used = _used(writer)
            source.add(new_answers, used.less(counted))
            counted = used
            done += len(batch)
            if batch:
                show(done)
            if watch.is_over():
                return
    finally:
        source.add((), _used(writer).less(counted))
