"""Asking a writer prompt by prompt, and keeping each answer as it comes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from trecexam.graders.base import Usage
from trecexam.graders.writing import Unwritten, Writer
from trecexam.stages.bank_making.answers import Kept, KeptAnswers
from trecexam.stages.grading import LAST_ANSWERS


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
