"""Cuts a queue of prompts into batches of similar length within a token budget; uses no model.

Prompts are taken in windows, tokenised one window ahead in a second thread, sorted by length and cut
where `prompts x longest prompt` would pass the budget. What does not fit into memory is halved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

Cell_ = TypeVar("Cell_")
Result = TypeVar("Result")

#: Prompts in the first window, and in all later ones: the first is short so that the model starts soon.
FIRST_WINDOW, WINDOW = 512, 16_384


class OutOfMemoryError(Exception):
    """A batch did not fit into the device's memory."""


class Sized(Protocol):
    """A tokenised prompt with its length and group."""

    @property
    def length(self) -> int: ...

    @property
    def group(self) -> int: ...


Job = TypeVar("Job", bound=Sized)


class Plan(NamedTuple):
    """Batches of job indices.

    Attributes:
        batches: the places of each batch's jobs.
        left: places that better wait for further jobs, if some come: with these they fill a batch.
    """

    batches: list[list[int]]
    left: list[int]


def plan(jobs: Sequence[Sized], max_tokens: int) -> Plan:
    """Cuts jobs into batches.

    Longest first (what does not fit shows at once), members of a group side by side, and in each batch
    `jobs x longest job <= max_tokens`, except that a batch has at least one job.

    Returns:
        For each batch the places of its jobs in `jobs`; every place is in exactly one batch, and none
        is left.
    """
    longest: dict[int, int] = {}
    for job in jobs:
        longest[job.group] = max(longest.get(job.group, 0), job.length)
    order = sorted(range(len(jobs)), key=lambda i: (-longest[jobs[i].group], jobs[i].group, i))
    batches: list[list[int]] = []
    widest = 0
    for job_index in order:
        widest = max(widest, jobs[job_index].length)
        if batches and batches[-1] and (len(batches[-1]) + 1) * widest <= max_tokens:
            batches[-1].append(job_index)
        else:
            batches.append([job_index])
            widest = jobs[job_index].length
    return Plan(batches, [])


def windows(items: Iterable[Cell_], first: int = FIRST_WINDOW, later: int = WINDOW) -> Iterator[list[Cell_]]:
    """Lists of items: the first of length `first`, others of length `later`; the last may be shorter."""
    rest = iter(items)
    size = first
    while window := list(islice(rest, size)):
        yield window
        size = later


@dataclass(frozen=True)
class _Running(Generic[Job, Result]):
    """A batch on the device. `alone`: no other batch was running when it started."""

    batch: list[Job]
    results: Callable[[], Sequence[Result]]
    alone: bool


class Batcher(Generic[Cell_, Job, Result]):
    """Runs a queue through a model.

    Args:
        prepare: a window of cells -> their tokenised prompts; called in a second thread.
        launch: starts a batch and returns a call that waits for its results, in the batch's order.
            Either may raise `OutOfMemoryError`.
        max_tokens: the budget of one batch, in tokens with padding.
        plan: cuts jobs into batches within a budget.
    """

    def __init__(
        self,
        prepare: Callable[[list[Cell_]], Sequence[Job]],
        launch: Callable[[Sequence[Job]], Callable[[], Sequence[Result]]],
        max_tokens: int,
        plan: Callable[[Sequence[Job], int], Plan] = plan,
    ) -> None:
        self.prepare = prepare
        self.launch = launch
        self.max_tokens = max_tokens
        self.plan = plan
        self._one_at_a_time = False

    def run(
        self, cells: Iterable[Cell_], first: int = FIRST_WINDOW, later: int = WINDOW
    ) -> Generator[list[tuple[Job, Result]], None, None]:
        """Yields results batch by batch, as they arrive.

        While one batch is stored by the caller, the next is already running on the device.

        Raises:
            OutOfMemoryError: a single prompt does not fit.
        """
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="trecexam-tokenise") as pool:
            ahead = windows(cells, first, later)
            window = next(ahead, None)
            prepared = None if window is None else pool.submit(self.prepare, window)
            left: list[Job] = []
            while prepared is not None:
                jobs, prepared = [*left, *prepared.result()], self._next(pool, ahead)
                work, left = self._planned(jobs)
                if prepared is None:
                    work += self._cut(left)
                yield from self._window(work)

    def _next(self, pool: ThreadPoolExecutor, ahead: Iterator[list[Cell_]]) -> Future[Sequence[Job]] | None:
        window = next(ahead, None)
        return None if window is None else pool.submit(self.prepare, window)

    def _window(self, work: deque[list[Job]]) -> Generator[list[tuple[Job, Result]], None, None]:
        waiting: _Running[Job, Result] | None = None
        while work or waiting:
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
                batches = [batch for batch, _ in failed]
                work, left = self._planned([job for batch in (*batches, *work) for job in batch])
                work += self._cut(left)
            waiting = running

    def _planned(self, jobs: Sequence[Job]) -> tuple[deque[list[Job]], list[Job]]:
        """Batches, and jobs that wait for more of similar length."""
        batches, left = self.plan(jobs, self.max_tokens)
        return deque([jobs[job_index] for job_index in job_indices] for job_indices in batches), [
            jobs[job_index] for job_index in left
        ]

    def _cut(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Batches of jobs that waited."""
        return (
            [jobs[job_index] for job_index in job_indices]
            for job_indices in plan(jobs, self.max_tokens).batches
        )

    def _lower(self, failed: Sequence[tuple[list[Job], bool]]) -> None:
        """Lowers the budget to half of the smallest batch that did not fit.

        Args:
            failed: batches, each with whether it had the device for itself.
        """
        for batch, alone in failed:
            longest = max(job.length for job in batch)
            if len(batch) > 1:
                self.max_tokens = max(1, min(self.max_tokens, len(batch) * longest // 2))
            elif alone:
                raise OutOfMemoryError(f"a single prompt of {longest} tokens does not fit")
            else:
                # It may have failed for the sake of the batch that was on the device with it.
                self._one_at_a_time = True
