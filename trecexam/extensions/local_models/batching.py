"""Planning and running of batches of prompts, independent of a model.

Prompts are processed in windows. A thread tokenises the next window while the model computes. A window is
sorted by length and cut into batches of at most a budget of tokens, padding included. A batch that does not
fit into memory halves the budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from trecexam.errors import GraderError
from trecexam.extensions.local_models.backend import Job, Request

Reply = TypeVar("Reply")

#: A batch with `FILLED` of the budget ends before its padding exceeds this share of its tokens.
PADDING, FILLED = 0.08, 1 / 8


class OutOfMemoryError(GraderError):
    """A batch did not fit into the device's memory."""


@dataclass
class Budget:
    """Tokens of a batch, padding included.

    Attributes:
        new_tokens: maximum new tokens per prompt; they count.
        beams: number of beams; a prompt counts once per beam.
        lowered: True if memory ran out and reduced the budget.
    """

    tokens: int
    new_tokens: int = 0
    beams: int = 1
    lowered: bool = False


def plan(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut rows into batches of similar length, longest first, to detect a lack of memory at once.

    Args:
        max_tokens: limit of rows x longest row; a single row may be longer.

    Returns:
        The indices of each batch's rows.
    """
    batches: list[list[int]] = []
    longest = total = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        length = lengths[index]
        padded = (len(batches[-1]) + 1) * longest if batches else 0
        wasteful = padded >= FILLED * max_tokens and total + length < (1 - PADDING) * padded
        if not batches or padded > max_tokens or wasteful:
            batches.append([])
            longest, total = length, 0
        batches[-1].append(index)
        total += length
    return batches


class _Running(NamedTuple, Generic[Request, Reply]):
    """A batch on the device. `alone`: no other batch was running when it started."""

    batch: list[Job[Request]]
    replies: Callable[[], Sequence[Reply]]
    alone: bool


class Batcher(Generic[Request, Reply]):
    """Runner of requests through a model.

    Args:
        prepare: returns the prompts of a window of requests, and replies to requests without a prompt; called
            in a second thread.
        launch: starts a batch within a number of tokens and returns a call that waits for its replies.
            Either may raise `OutOfMemoryError`.
        plan: cuts jobs into batches within a budget; with 1 token each job is alone.
    """

    def __init__(
        self,
        prepare: Callable[[list[Request]], tuple[list[Job[Request]], list[Reply]]],
        launch: Callable[[Sequence[Job[Request]], int], Callable[[], Sequence[Reply]]],
        budget: Budget,
        plan: Callable[[Sequence[Job[Request]], Budget], list[list[int]]],
    ) -> None:
        self.prepare = prepare
        self.launch = launch
        self.budget = budget
        self.plan = plan
        self._one_at_a_time = False

    def run(
        self, requests: Iterable[Request], first: int, later: int
    ) -> Generator[Sequence[Reply], None, None]:
        """Yield replies batch by batch; the next batch runs while the caller stores replies.

        Args:
            first: requests of the first window.
            later: requests of all other windows.

        Raises:
            OutOfMemoryError: a single prompt does not fit.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="trecexam-tokenise") as pool:
            rest = iter(requests)

            def tokenised(size: int) -> Future[tuple[list[Job[Request]], list[Reply]]] | None:
                window = list(islice(rest, size))
                return pool.submit(self.prepare, window) if window else None

            prepared = tokenised(first)
            work: deque[list[Job[Request]]] = deque()
            waiting: _Running[Request, Reply] | None = None
            while work or waiting or prepared:
                # Raise an error of tokenising after the running batch is stored.
                ready = prepared and prepared.done() and not prepared.exception()
                if not work and prepared and (waiting is None or ready):
                    (jobs, unable), prepared = prepared.result(), tokenised(later)
                    work = self._planned(jobs)
                    if unable:
                        yield unable
                running = None
                if work and not (waiting and self._one_at_a_time):
                    running = self._started(work.popleft(), alone=waiting is None)
                if waiting is not None:
                    try:
                        replies = waiting.replies()
                    except OutOfMemoryError:
                        self._lower(waiting.batch, alone=waiting.alone and running is None)
                        work = self._planned([job for batch in (waiting.batch, *work) for job in batch])
                    else:
                        yield replies
                waiting = running

    def _planned(self, jobs: Sequence[Job[Request]]) -> deque[list[Job[Request]]]:
        batches = self.plan(jobs, self.budget)
        return deque([jobs[index] for index in indices] for indices in batches)

    def _started(self, batch: list[Job[Request]], *, alone: bool) -> _Running[Request, Reply]:
        try:
            return _Running(batch, self.launch(batch, self.budget.tokens), alone)
        except OutOfMemoryError as error:
            reason = error.reason

        def fail() -> Sequence[Reply]:
            raise OutOfMemoryError(reason)

        return _Running(batch, fail, alone)

    def _lower(self, batch: list[Job[Request]], *, alone: bool) -> None:
        """Halve the budget until it splits a batch that did not fit.

        Args:
            alone: no other batch was on the device.
        """
        if len(batch) > 1:
            while len(self.plan(batch, self.budget)) == 1:
                self.budget.tokens //= 2
                self.budget.lowered = True
        elif alone:
            raise OutOfMemoryError(
                f"a single prompt of {batch[0].length} tokens does not fit into memory: set a smaller "
                "`max_length` or `max_new_tokens` in [grader], or another `device`"
            )
        else:
            # A second batch on the device may have left too little memory.
            self._one_at_a_time = True
