"""The page's background work in a thread of the test."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from trecexam.extensions.page import reader
from trecexam.extensions.page.child import Process, Work
from trecexam.extensions.page.live import LiveTrack


def live_track(root: Path) -> LiveTrack:
    """A live track whose reader is a thread."""
    return LiveTrack(root, link=Thread(reader.work, root))


class Thread(Process):
    """Work of the page in a thread in place of a process."""

    def __init__(self, work: Work, root: Path) -> None:
        self._work = work
        self._root = root
        self._to: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._from: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._ending = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._work.__name__)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work(self._root, self._asked, self._from.put)
        finally:
            self._from.put(None)

    def _asked(self, seconds: float) -> Any:
        try:
            message = self._to.get(timeout=seconds)
        except queue.Empty:
            return None
        if message is None:
            raise EOFError
        return message

    def stop(self) -> None:
        self._ending = True
        self._to.put(None)
        self._thread.join()

    def send(self, message: Any) -> None:
        self._to.put(message)

    def receive(self) -> Any:
        message = self._from.get()
        if message is None and not self._ending:
            raise EOFError
        return message

    def ended(self) -> str:
        return "ended"
