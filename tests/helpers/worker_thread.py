"""The page's background work in a thread of the test."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from trecexam.extensions.page import reader
from trecexam.extensions.page.child import Process
from trecexam.extensions.page.live import LiveTrack


def live_track(root: Path) -> LiveTrack:
    """A live track whose reader is a thread."""
    return LiveTrack(root, link=Thread(root))


class Thread(Process):
    """Work of the page in a thread in place of a process."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._to: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._from: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="reader")
        self._thread.start()

    def _run(self) -> None:
        try:
            reader.work(self._root, self._asked, self._from.put)
        finally:
            self._from.put(None)

    def _asked(self) -> Any:
        message = self._to.get()
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
