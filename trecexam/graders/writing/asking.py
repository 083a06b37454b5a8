"""One pipeline for all that a model writes: plan the prompts, ask, read the replies, write the own file."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from itertools import takewhile
from typing import Any, Generic, NamedTuple, TypeVar

from trecexam.errors import TrecexamError
from trecexam.graders.base import Estimate, Stopwatch, UngradedError
from trecexam.graders.meter import MeasuredTime, Spent, Usage, measured
from trecexam.graders.replies import Unread, Unwritten, cut_at
from trecexam.graders.writing.base import Fitted, Writer
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept, SpentByGraders

ShowProgress = Callable[[int, int], None]
#: True ends asking early, with what there is, see `Stopwatch`.
Stop = Callable[[], bool]
Key = TypeVar("Key")
Record = TypeVar("Record")
Made = TypeVar("Made")


@dataclass(frozen=True)
class PromptSet(Generic[Key]):
    """The prompts of one writer, by what each is about. Keys with the same prompt share its answer.

    `cut` are the keys whose text had to be cut to fit the model.
    """

    source: KeepingWriter
    prompts: Mapping[Key, str]
    cut: frozenset[Key] = frozenset()

    @classmethod
    def of_fitted(cls, source: KeepingWriter, fitted: Mapping[Key, Fitted]) -> PromptSet[Key]:
        """Return the prompts of texts that were fitted to the model."""
        prompts = {key: each.prompt for key, each in fitted.items()}
        return cls(source, prompts, frozenset(key for key, each in fitted.items() if each.cut))

    def unanswered(self) -> list[str]:
        """Return the prompts that have no answer yet, each once, in their order."""
        return [prompt for prompt in dict.fromkeys(self.prompts.values()) if self.source.get(prompt) is None]

    def answered(self) -> Iterator[tuple[Key, Kept]]:
        """Yield what was written, in the order of the prompts."""
        for key, prompt in self.prompts.items():
            stored = self.source.get(prompt)
            if stored is not None and not stored.refused:
                yield key, stored


class Reply(NamedTuple, Generic[Key, Record]):
    """A stored answer to the prompt of a key: the record that was read in it, or why there is none."""

    key: Key
    writer: Writer
    kept: Kept
    record: Record | Unread

    def origin(self, prompt: str, **more: Any) -> dict[str, Any]:
        """Return what a record's line says of where it comes from; `prompt` is the prompt's name."""
        named = {"prompt": prompt, "model": self.writer.model, "seed": self.writer.seed}
        return {**named, "time": self.kept.time, **more}


def read_replies(
    prompt_sets: Iterable[PromptSet[Key]], read: Callable[[Key, Kept], Record | Unread]
) -> Iterator[Reply[Key, Record]]:
    """Yield the replies of each writer, in the order of the prompts, as `read` reads them."""
    for each in prompt_sets:
        for key, kept in each.answered():
            yield Reply(key, each.source.writer, kept, read(key, kept))


def unread_reasons(replies: Iterable[Reply[Any, Any]]) -> dict[str, int]:
    """Return why answers have no record, and how many, the most frequent reason first."""
    return dict(
        Counter(each.record.reason for each in replies if isinstance(each.record, Unread)).most_common()
    )


@dataclass(frozen=True, kw_only=True)
class AskingResult(Generic[Key]):
    """What came of asking; a job's own result is a subclass with fields of its own.

    Attributes:
        asked: prompts that were answered now; `reused` those that had been before.
        unwritten: (key, why) of prompts that the model wrote nothing to; why begins with "the model".
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    asked: int = 0
    reused: int = 0
    unwritten: tuple[tuple[Key, str], ...] = ()
    used: Usage = field(default_factory=Usage)
    cost: float | None = None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Return True where every prompt was answered; perhaps not every answer can be read."""
        return not self.unwritten and not self.why

    def made(self, kind: Callable[..., Made], **values: Any) -> Made:
        """Return a job's own result, with these values of its own."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(AskingResult)}, **values)


@dataclass(frozen=True)
class Job(Generic[Made]):
    """Something that models are to write. It is done once.

    Attributes:
        prompts: of the first round.
        write: reads the replies (`read_replies`) and writes the file. Where the model cannot be asked, what
            was paid for is written before the error is raised.
        further: gives the prompts of the next round, after each round; none where there is nothing to ask.
        supposed: gives what would be asked in all rounds, for an estimate; None where there is one round.
        tries: how often a prompt is sent at most, as its answer may be one that cannot be read.
        n_forgotten: stored answers that were dropped, as they cannot be read.
    """

    prompts: Sequence[PromptSet[Any]]
    write: Callable[[AskingResult[Any]], Made]
    further: Callable[[AskingResult[Any]], Sequence[PromptSet[Any]]] = lambda result: ()
    supposed: Callable[[], Sequence[PromptSet[Any]]] | None = None
    tries: int = 1
    n_forgotten: int = 0

    def estimate(self, *, timed: bool = False) -> Estimate:
        """Return what `ask` would take; prompts that were answered before take nothing. Asks nobody.

        Args:
            timed: has a model in this process answer up to 85 of the prompts, to see how long all would take;
                what it writes is not kept. Raises a GraderError where it cannot be run.
        """
        estimated = estimate(self.supposed() if self.supposed else self.prompts, timed=timed)
        names = ("tokens_out_at_most", "cost_at_most", "calls_at_most")
        most = {name: value for name in names if (value := getattr(estimated, name)) is not None}
        return estimated._replace(**{name: self.tries * value for name, value in most.items()})

    def ask(
        self,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
        spent_by_graders: SpentByGraders = lambda *_: Spent(),
    ) -> Made:
        """Do the job.

        Args:
            spent_by_graders: counts for budgets beside what all writers of that purse used.

        Raises:
            GraderError: the model cannot be asked at all; what it had answered is kept.
        """
        prompts, result = self.prompts, AskingResult[Any]()
        while True:
            try:
                result = _ask_all(prompts, result, progress, stop or (lambda: False), spent_by_graders)
            except TrecexamError as error:
                self.write(AskingResult(why=str(error)))
                raise
            prompts = () if result.why else self.further(result)
            if not prompts:
                return self.write(result)


def estimate(prompt_sets: Sequence[PromptSet[Any]], *, timed: bool = False) -> Estimate:
    """Return what asking would take, as `Job.estimate`."""
    _begin(prompt_sets, lambda *_: Spent())
    summed = reduce(Estimate.plus, (each.source.writer.estimate(each.unanswered()) for each in prompt_sets))
    return summed._replace(time=_measured(prompt_sets)) if timed else summed


def _measured(prompt_sets: Sequence[PromptSet[Any]]) -> MeasuredTime | None:
    todo = [(each.source.writer, prompts) for each in prompt_sets if (prompts := each.unanswered())]
    if not todo or not all(writer.is_here for writer, _ in todo):
        return None
    writer = todo[0][0]
    prompts = [prompt for who, of_writer in todo if who is writer for prompt in of_writer]
    return measured(lambda part: [*writer.write(part)], prompts, sum(len(each) for _, each in todo))


def _ask_all(
    prompt_sets: Sequence[PromptSet[Key]],
    so_far: AskingResult[Key],
    show: ShowProgress | None,
    stopped: Stop,
    spent_by_graders: SpentByGraders,
) -> AskingResult[Key]:
    """Ask each writer about its prompts that have no answer yet, until all have one or it is to stop.

    Each answer is on disk before its writer continues. Killed at any moment, only the prompts on their way to
    a server are sent again: at most `concurrency`; of a model in this process, the batch in hand.

    Args:
        prompt_sets: their writers share a purse, and prices; at least one.
        so_far: the result of the rounds before.
    """
    missing = [each.unanswered() for each in prompt_sets]
    total, done, why = sum(map(len, missing)), 0, ""
    file, writers = prompt_sets[0].source.file, {each.source.digest for each in prompt_sets}
    used_before = file.used(writers)
    #: (writer, prompt) -> why it has no text.
    reasons: dict[tuple[str, str], str] = {}

    def progress(batch: Collection[object]) -> None:
        nonlocal done
        done += len(batch)
        if show is not None:
            show(so_far.asked + done, so_far.asked + total)

    try:
        for each, prompts in zip(prompt_sets, missing, strict=True):
            progress(())
            if prompts:
                _begin(prompt_sets, spent_by_graders)
                _write(each.source, prompts, stopped, progress, reasons)
    except UngradedError as error:
        why = error.reason
    if not why and stopped():
        why = "stopped"
    unwritten: list[tuple[Key, str]] = []
    for each in prompt_sets:
        for key, prompt in each.prompts.items():
            stored = each.source.get(prompt)
            refused = stored.refusal if stored is not None and stored.refused else ""
            if reason := reasons.get((each.source.digest, prompt), refused):
                unwritten.append((key, f"the model {reason}"))
    meter = prompt_sets[0].source.writer.meter
    used = so_far.used.plus(file.used(writers).less(used_before))
    return AskingResult(
        asked=so_far.asked + total - sum(len(each.unanswered()) for each in prompt_sets),
        reused=so_far.reused + sum(len({*each.prompts.values()}) for each in prompt_sets) - total,
        unwritten=tuple(unwritten),
        used=used,
        cost=None if meter is None else meter.cost(used),
        why=why,
    )


def _begin(prompt_sets: Sequence[PromptSet[Any]], spent_by_graders: SpentByGraders) -> None:
    """Tell writers what was used before: by themselves, and by others that the same purse pays for."""
    writers = {each.source.digest for each in prompt_sets}
    for each in prompt_sets:
        each.source.begin(writers, spent_by_graders)


def _write(
    source: KeepingWriter,
    prompts: Sequence[str],
    stopped: Stop,
    progress: Callable[[Collection[object]], None],
    reasons: dict[tuple[str, str], str],
) -> None:
    """Keep a writer's answers as they come, and note why prompts have none."""
    writer = source.writer
    watch = Stopwatch(stopped, paid=writer.meter is not None)
    try:
        for batch in writer.write(takewhile(lambda _: not stopped(), prompts)):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            answers: list[tuple[str, Kept]] = []
            for prompt, text in batch:
                if isinstance(text, Unwritten):
                    reasons[source.digest, prompt] = text.reason
                    continue
                # A refusal is an answer.
                limit = None if text.refused else cut_at(text.text, writer.new_tokens, cut=text.cut)
                stored = Kept(text.text, now, text.tokens_in, text.tokens_out, text.refused, limit)
                answers.append((prompt, stored))
            # Requests that end meanwhile count with the next batch.
            source.add(answers)
            if batch:
                progress(batch)
            if watch.is_over():
                return
    finally:
        source.add(())
