from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.batching import Batcher, Budget, OutOfMemoryError, plan

Prompt = Job[int]


def prompts(*lengths: int) -> list[Prompt]:
    return [Job(place, [0] * length) for place, length in enumerate(lengths)]


def tokens(batch: Sequence[Prompt]) -> int:
    return len(batch) * max(prompt.length for prompt in batch)


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(1, 200))
def test_every_prompt_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = plan(lengths, budget)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= budget


class Device:
    """A model with a token limit; records the batches it gets."""

    def __init__(self, room: float = float("inf"), *, late: bool = False, together: bool = False) -> None:
        self.room, self.late, self.together = room, late, together
        self.batches: list[list[Prompt]] = []
        self.on_device = 0
        self.calls = 0

    def launch(self, batch: Sequence[Prompt], max_tokens: int) -> Callable[[], list[int]]:
        self.calls += 1
        assert self.calls < 500, "it goes on for ever"
        used = self.on_device + tokens(batch) if self.together else tokens(batch)
        fits = used <= self.room
        if not fits and not self.late:
            raise OutOfMemoryError("no memory")
        self.on_device += tokens(batch)

        def result() -> list[int]:
            self.on_device -= tokens(batch)
            if not fits:
                raise OutOfMemoryError("no memory")
            self.batches.append(list(batch))
            return [prompt.request for prompt in batch]

        return result


def batcher_of(prepare: Any, launch: Any, budget: int) -> Batcher[Any, int]:
    return Batcher(
        lambda window: (prepare(window), []),
        launch,
        Budget(budget),
        lambda jobs, budget: plan([job.length for job in jobs], budget.tokens),
    )


def run(jobs: Sequence[Prompt], device: Device, budget: int) -> list[int]:
    batcher = batcher_of(lambda window: window, device.launch, budget)
    return sorted(reply for batch in batcher.run(jobs, 512, 512) for reply in batch)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("lengths", [(50,), (10, 50, 10), (50, 50)])
def test_a_prompt_that_does_not_fit_alone_is_an_error(lengths: tuple[int, ...], late: bool) -> None:
    with pytest.raises(OutOfMemoryError, match="a single prompt of 50 tokens does not fit"):
        run(prompts(*lengths), Device(40, late=late), 60)


@pytest.mark.parametrize("where", ["cells", "prepare", "launch", "result"])
def test_a_failure_anywhere_reaches_the_caller(where: str) -> None:
    def cells() -> Iterator[Prompt]:
        yield from prompts(10, 10)
        if where == "cells":
            raise ValueError("broke in cells")
        yield from prompts(10, 10, 10, 10)[2:]

    def prepare(window: list[Prompt]) -> list[Prompt]:
        if where == "prepare" and window[0].request == 2:
            raise ValueError("broke in prepare")
        return window

    def launch(batch: Sequence[Prompt], max_tokens: int) -> Callable[[], list[int]]:
        if where == "launch" and batch[0].request == 2:
            raise ValueError("broke in launch")

        def result() -> list[int]:
            if where == "result" and batch[0].request == 2:
                raise ValueError("broke in result")
            return [prompt.request for prompt in batch]

        return result

    done: list[int] = []
    batcher = batcher_of(prepare, launch, 10)
    with pytest.raises(ValueError, match=f"broke in {where}"):
        done.extend(reply for batch in batcher.run(cells(), 2, 2) for reply in batch)
    assert done == [] if where == "cells" else done[:2] == [0, 1]


def test_stopping_early_leaves_no_thread(no_thread_left: None) -> None:
    started = threading.active_count()
    batcher = batcher_of(lambda window: window, Device().launch, 10)
    batches = batcher.run(prompts(*[10] * 50), 5, 5)
    next(batches)
    batches.close()
    deadline = time.monotonic() + 60
    while threading.active_count() > started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == started
