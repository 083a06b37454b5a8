"""The pipeline for all that a model writes: plan the prompts, ask, read the replies, write the own file.

Every answer is kept, so each prompt is sent once: in a file of lines of JSON that only grows. People may read
it; it is no bank: what is kept are answers, not items.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_regular
from trecexam.graders.base import Estimate, Stopwatch, UngradedError, identity_digest
from trecexam.graders.meter import Spent, Usage
from trecexam.graders.replies import Unread, Unwritten, cut_at
from trecexam.graders.writing.base import Fitted, Writer

#: Bytes of the digest of a line; characters that it adds to the line.
_CHECK = 8
_SEAL = len(', "check": ""}') + 2 * _CHECK
#: Returns what graders used of a purse; it is told what tokens cost where no grader knows.
SpentByGraders = Callable[[str, Callable[[Usage], float | None]], Spent]
ShowProgress = Callable[[int, int], None]
#: True ends asking early, with what there is, see `Stopwatch`.
Stop = Callable[[], bool]
Key = TypeVar("Key")
Record = TypeVar("Record")
Made = TypeVar("Made")


class Kept(NamedTuple):
    """An answer: what the model wrote, and when (ISO 8601, UTC).

    `tokens_in` and `tokens_out` are as a server counted them; None where nobody did. `refused`: the text is
    a refusal. `cut_at` is the most tokens that stopped it; None where nothing did.
    """

    text: str
    time: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    refused: bool = False
    cut_at: int | None = None

    @property
    def cut(self) -> bool:
        """True where the model was stopped before its end."""
        return self.cut_at is not None

    @property
    def refusal(self) -> str:
        """The words of a refusal, as follow "the model ..."."""
        return f"refused: {self.text[:200]}"


class AnswerFile:
    """The answers of all writers of a track.

    Args:
        purse: whose budget pays for the current prompts: a section of trecexam.toml.
    """

    def __init__(self, path: Path, purse: str = "generator") -> None:
        self.path = path
        self.purse = purse
        self.answers: dict[tuple[str, str], Kept] = {}
        #: (writer, purse) -> what was used.
        self._used: dict[tuple[str, str], Usage] = {}
        try:
            content = read_regular(path) if path.exists() else b""
        except OSError as error:
            raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
        # A kill can leave half a line, which the next one must not continue.
        self._torn = bool(content) and not content.endswith(b"\n")
        for line in content.split(b"\n"):
            # A line that was cut by a kill, or is damaged, does not count: its prompt is sent again.
            if line == _sealed(line[:-_SEAL]):
                self._take(orjson.loads(line))

    def _take(self, row: Mapping[str, Any]) -> None:
        if row.get("status") == "forgotten":
            self.answers.pop((row["writer"], row["prompt_sha256"]), None)
        elif {"used", "purse"} <= row.keys():
            key = row["writer"], row["purse"]
            self._used[key] = self._used.get(key, Usage()).plus(Usage(*row["used"]))
        elif {"answer", "status"} <= row.keys():
            tokens_in, tokens_out = row.get("tokens") or (None, None)
            refused = row["status"] == "refused"
            stored = Kept(row["answer"], row["time"], tokens_in, tokens_out, refused, row.get("cut_at"))
            self.answers[row["writer"], row["prompt_sha256"]] = stored

    def used(self, writers: Collection[str] | None = None) -> Usage:
        """Return what writers ever used; None for all writers."""
        return _sum(used for (who, _), used in self._used.items() if writers is None or who in writers)

    def spent(self, purse: str, without: Collection[str] = ()) -> Usage:
        """Return what was paid from a purse, but for these writers."""
        return _sum(used for (who, paid), used in self._used.items() if paid == purse and who not in without)

    def append(self, rows: Collection[Mapping[str, Any]], *, in_file: bool = True) -> None:
        """Add rows, and take what they say; `in_file` False: for this process alone."""
        for row in rows:
            self._take(row)
        if not rows or not in_file:
            return
        lines = b"".join(_sealed(json.dumps(row, ensure_ascii=False).encode()[:-1]) + b"\n" for row in rows)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(b"\n" * self._torn + lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TrecexamError(
                f"cannot be written: {error.strerror}; what was answered until now is kept", path=self.path
            ) from None
        self._torn = False


class KeepingWriter:
    """A writer with the file that keeps its answers, in which each is known by writer and prompt."""

    def __init__(self, writer: Writer, file: AnswerFile) -> None:
        self.writer = writer
        self.file = file
        self.digest = identity_digest(writer.identity).hex()
        self._counted = Usage()

    def begin(self, sharing: Collection[str], spent_by_graders: SpentByGraders) -> None:
        """Have the writer's meter count from here; `sharing` are all writers of the same work."""
        meter, file = self.writer.meter, self.file
        if meter is not None:
            others = meter.spent(file.spent(file.purse, sharing))
            meter.begin(file.used(sharing), others.plus(spent_by_graders(file.purse, meter.cost)))
            self._counted = Usage()

    def get(self, prompt: str) -> Kept | None:
        """Return the answer to a prompt; None where there is none, or one cut off at fewer tokens."""
        stored = self.file.answers.get((self.digest, _digest(prompt)))
        if stored is not None and stored.cut_at is not None and stored.cut_at < self.writer.new_tokens:
            return None
        return stored

    def add(self, answers: Iterable[tuple[str, Kept]]) -> None:
        """Keep answers, what was used since the last ones, and what a model in this process ran on."""
        environment, meter = self.writer.environment, self.writer.meter
        rows: list[dict[str, Any]] = []
        for prompt, stored in answers:
            counted = (stored.tokens_in, stored.tokens_out)
            row = {
                "writer": self.digest,
                "prompt_sha256": _digest(prompt),
                "prompt": prompt,
                "answer": stored.text,
                "status": "refused" if stored.refused else "cut" if stored.cut else "ok",
                "time": stored.time,
                "tokens": None if counted == (None, None) else counted,
                "cut_at": stored.cut_at,
                "environment": None if environment is None else dict(environment),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
        if meter is not None and meter.used != self._counted:
            used, self._counted = meter.used.less(self._counted), meter.used
            rows.append({"writer": self.digest, "purse": self.file.purse, "used": list(used)})
        self.file.append(rows)

    def forget(self, prompts: Collection[str], *, in_file: bool) -> None:
        """Drop answers, so that their prompts are sent again; `in_file`: by other processes, too."""
        row = {"writer": self.digest, "status": "forgotten"}
        self.file.append([{**row, "prompt_sha256": _digest(prompt)} for prompt in prompts], in_file=in_file)


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
    """The result of asking; a job's own result is a subclass with more fields.

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
        n_forgotten: stored answers that were dropped, as they cannot be read.
    """

    prompts: Sequence[PromptSet[Any]]
    write: Callable[[AskingResult[Any]], Made]
    further: Callable[[AskingResult[Any]], Sequence[PromptSet[Any]]] = lambda result: ()
    supposed: Callable[[], Sequence[PromptSet[Any]]] | None = None
    n_forgotten: int = 0

    def estimate(self) -> Estimate:
        """Return what `ask` would take; prompts that were answered before take nothing. Asks nobody."""
        return estimate(self.supposed() if self.supposed else self.prompts)

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


def estimate(prompt_sets: Sequence[PromptSet[Any]]) -> Estimate:
    """Return what asking would take, as `Job.estimate`."""
    _begin(prompt_sets, lambda *_: Spent())
    return reduce(Estimate.plus, (each.source.writer.estimate(each.unanswered()) for each in prompt_sets))


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


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, Usage())


def _sealed(start: bytes) -> bytes:
    """Return a line: an object without its closing brace, with the digest of that as its last field."""
    return start + b', "check": "' + hashlib.blake2b(start, digest_size=_CHECK).hexdigest().encode() + b'"}'


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()
