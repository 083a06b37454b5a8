"""Asking a writer prompt by prompt, and keeping each answer as it comes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from trecexam.errors import TrecexamError
from trecexam.graders.base import LAST_ANSWERS, UngradedError, Usage
from trecexam.graders.writing import Unwritten, Writer
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers


class Asked(NamedTuple):
    """What came of asking.

    Attributes:
        new: prompts that were answered now; `reused` those that had been before.
        unwritten: prompts that the model wrote nothing to, with the reason.
        why: why it ended early, "" where it did not.
    """

    new: int
    reused: int
    unwritten: Mapping[str, str]
    why: str


def unanswered(prompts: Iterable[str], answers: KeptAnswers) -> list[str]:
    """The prompts that have no answer yet, each once."""
    return [text for text in dict.fromkeys(prompts) if answers.get(text) is None]


def ask_all(
    writer: Writer,
    prompts: Collection[str],
    answers: KeptAnswers,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    save: Callable[[], object] | None = None,
) -> Asked:
    """Asks about those that have no answer yet, until all have one or it is to stop.

    Args:
        progress, stop: as for `ask`.
        save: called before an error goes on: what was paid for gets into its file, whatever ended it.

    Raises:
        GraderError: the model cannot be asked at all; what it had answered is kept.
    """
    known = set(prompts)
    missing = unanswered(prompts, answers)
    unwritten: dict[str, str] = {}
    why = ""
    try:
        for _ in ask(writer, missing, answers, unwritten, progress, stop):
            pass
    except UngradedError as error:
        why = error.reason
    except TrecexamError:
        if save is not None:
            save()
        raise
    if not why and stop is not None and stop():
        why = "stopped"
    new = sum(answers.get(text) is not None for text in missing)
    return Asked(new, len(known) - len(missing), unwritten, why)


def ask(
    writer: Writer,
    prompts: Sequence[str],
    answers: KeptAnswers,
    unwritten: dict[str, str],
    progress: Callable[[int, int], None] | None,
    stop: Callable[[], bool] | None,
    before: Usage | None = None,
) -> Iterator[None]:
    """Asks until all is answered or it is to stop; a step for each batch.

    Args:
        unwritten: gets the prompts that the model wrote nothing to, with the reason.
        progress: is told how many of how many prompts are answered.
        stop: asked again and again; True ends it early. Requests that are on their way to a server get
            `LAST_ANSWERS` seconds.
        before: what counts for the budget as used already; None for what this writer used.
    """
    writer.start_from(answers.used if before is None else before)
    done, counted = 0, Usage()
    if progress is not None:
        progress(0, len(prompts))
    if not prompts:
        return
    stopped = stop or (lambda: False)
    ends = float("inf")
    try:
        for batch in writer.write(takewhile(lambda _: not stopped(), prompts)):
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            kept = []
            for text, found in batch:
                if isinstance(found, Unwritten):
                    unwritten[text] = found.reason
                else:
                    kept.append((text, Kept(found.text, found.cut, now, found.tokens_in, found.tokens_out)))
            answers.add(kept, writer.used.less(counted))
            counted = writer.used
            done += len(batch)
            if progress is not None and batch:
                progress(done, len(prompts))
            if stopped():
                # What is on its way to a server is paid for, and would be asked again.
                ends = min(ends, time.monotonic() + (LAST_ANSWERS if writer.paid else 0))
            if time.monotonic() >= ends:
                return
            yield
    finally:
        answers.add((), writer.used.less(counted))
