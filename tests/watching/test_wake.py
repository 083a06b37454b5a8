"""Waking a waiting thread."""

from __future__ import annotations

import signal
import threading
import time

from trecexam.watching.events import Wake


def test_a_signal_at_any_moment_wakes_the_thread_and_never_hangs() -> None:
    wake, calls = Wake(), []
    before = signal.signal(signal.SIGALRM, lambda *_: (calls.append(1), wake.set()))
    # So often that some arrive during clearing, or at the start of a wait.
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    try:
        end = time.monotonic() + 60
        while len(calls) < 300 and time.monotonic() < end:
            wake.clear()
            wake.wait(0.001)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(calls) >= 300


def test_a_wake_up_set_before_the_wait_returns_at_once_and_a_cleared_one_does_not() -> None:
    wake = Wake()
    wake.set()
    wake.wait(60)
    wake.set()
    wake.clear()
    wake.wait(0.05)
    wake.wait(-1)
    happened: list[str] = []

    def wake_up() -> None:
        happened.append("set")
        wake.set()

    threading.Timer(0.05, wake_up).start()
    wake.wait(60)
    assert happened == ["set"]
