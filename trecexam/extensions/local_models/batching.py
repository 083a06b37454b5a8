"""Plans batches of prompts and runs them; uses no model.

Prompts are taken in windows. A thread tokenises the next window while the model computes. A window is sorted
by length and cut into batches of at most a budget of tokens, padding included. A batch that does not fit into
memory halves the budget.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from trecexam.errors import GraderError

Prompt = TypeVar("Prompt")
#: A tokenised prompt with its `length`.
Job = TypeVar("Job", bound=Any)
Result = TypeVar("Result")

#: A batch ends where its padding would pass this share of its tokens, once it has `FILLED` of the budget.
PADDING, FILLED = 0.08, 1 / 8


class OutOfMemoryError(GraderError):
    """A batch did not fit into the device's memory."""


@dataclass
class Budget:
    """Tokens of a batch. `lowered`: memory ran out, so there are fewer than at the start."""

    tokens: int
    lowered: bool = False

    def halve(self) -> None:
        """Halve the tokens."""
        self.tokens, self.lowered = max(1, self.tokens // 2), True


def plan(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut rows into batches of similar length, longest first, so that a lack of memory shows at once.

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


class _Running(NamedTuple):
    """A batch on the device. `alone`: no other batch was running when it started."""

    batch: list[Any]
    results: Callable[[], Sequence[Any]]
    alone: bool


class Batcher(Generic[Prompt, Job, Result]):
    """Runs prompts through a model.

    Args:
        prepare: tokenises a window of prompts; called in a second thread.
        launch: starts a batch and returns a call that waits for its results, in the batch's order.
            Either may raise `OutOfMemoryError`.
        budget: of a batch, in tokens with padding.
        plan: cuts jobs into batches within a number of tokens; at 1 token each job is alone.
    """

    def __init__(
        self,
        prepare: Callable[[list[Prompt]], Sequence[Job]],
        launch: Callable[[Sequence[Job]], Callable[[], Sequence[Result]]],
        budget: Budget,
        plan: Callable[[Sequence[Job], int], list[list[int]]],
    ) -> None:
        self.prepare = prepare
        self.launch = launch
        self.budget = budget
        self.plan = plan
        self._one_at_a_time = False

    def run(
        self, prompts: Iterable[Prompt], first: int, later: int
    ) -> Generator[list[tuple[Job, Result]], None, None]:
        """Yield results batch by batch; while the caller stores a batch, the next one runs on the device.

        Args:
            first: prompts of the first window.
            later: prompts of all other windows.

        Raises:
            OutOfMemoryError: a single prompt does not fit.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="trecexam-tokenise") as pool:
            rest = iter(prompts)

            def tokenised(size: int) -> Future[Sequence[Job]] | None:
                window = list(islice(rest, size))
                return pool.submit(self.prepare, window) if window else None

            prepared = tokenised(first)
            work: deque[list[Job]] = deque()
            waiting: _Running | None = None
            while work or waiting or prepared:
                # An error of tokenising waits until the batch that runs is stored.
                ready = prepared and prepared.done() and not prepared.exception()
                if not work and prepared and (waiting is None or ready):
                    jobs, prepared = prepared.result(), tokenised(later)
                    work = self._planned(jobs)
                running, failed = None, []
                if work and not (waiting and self._one_at_a_time):
                    batch = work.popleft()
                    try:
                        running = _Running(batch, self.launch(batch), alone=waiting is None)
                    except OutOfMemoryError:
                        failed.append((batch, waiting is None))
                if waiting is not None:
                    try:
                        results = list(zip(waiting.batch, waiting.results(), strict=True))
                    except OutOfMemoryError:
                        failed.append((waiting.batch, waiting.alone and running is None and not failed))
                    else:
                        yield results
                if failed:
                    self._lower(failed)
                    work = self._planned([job for batch in (*(b for b, _ in failed), *work) for job in batch])
                waiting = running

    def _planned(self, jobs: Sequence[Job]) -> deque[list[Job]]:
        batches = self.plan(jobs, self.budget.tokens)
        return deque([jobs[index] for index in indices] for indices in batches)

    def _lower(self, failed: Sequence[tuple[list[Job], bool]]) -> None:
        """Halve the budget until it cuts each batch that did not fit.

        Args:
            failed: batches, each with whether it had the device for itself.
        """
        for batch, alone in failed:
            if len(batch) > 1:
                while len(self.plan(batch, self.budget.tokens)) == 1:
                    self.budget.halve()
            elif alone:
                raise OutOfMemoryError(
                    f"a single prompt of {batch[0].length} tokens does not fit into memory: set a smaller "
                    "`max_length` or `max_new_tokens` in [grader], or another `device`"
                )
            else:
                # The batch that was on the device with it may have left too little memory.
                self._one_at_a_time = True
