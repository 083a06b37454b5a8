"""A track's current state, read in the background and swapped as a whole, so that readers never wait."""

from __future__ import annotations

import itertools
import pickle
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar

from trecexam.errors import TrecexamError
from trecexam.extensions.page.child import Process
from trecexam.extensions.page.gather import query_view
from trecexam.extensions.page.reader import Call, Loaded, Look, Returned, Trouble, Work
from trecexam.extensions.page.view import QueryView, View

T = TypeVar("T")

#: Seconds to wait for the reader's answer, and for its end.
PATIENCE, LEAVING = 60.0, 5.0
#: Seconds until a reader that ended is started again.
RESTART = 1.0
#: Number of cached queries.
KEPT = 100


class LiveTrack:
    """The state of a track, kept current in the background. Use it as a context manager.

    Attributes:
        view: the last state; None before the first one. Immutable and replaced as a whole: use one for a
            page.
        version: grows with every new state.
        trouble: reason why the track cannot be read now, or ""; the last state stays valid.
        work: progress of grading; None if unknown yet.

    Args:
        link: the reader; None for a new process.
    """

    def __init__(self, root: Path, *, link: Process | None = None) -> None:
        self.root = root
        self.view: View | None = None
        self.version = 0
        self.trouble = ""
        self.work: Work | None = None
        self._link = link or Process(root)
        self._listener = threading.Thread(target=self._listen, name="live track", daemon=True)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[Returned]] = {}
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        # Whoever asks about a state that is gone is given what the track is now.
        self._query = lru_cache(KEPT)(
            lambda version, grader, query_id: self.call(grader, query_view, query_id)
        )

    def __enter__(self) -> Self:
        self._link.start()
        self._listener.start()
        return self

    def __exit__(self, *exc: object) -> None:
        # It reads only: nothing can be lost.
        self._link.stop()
        self._listener.join(LEAVING)

    def reload(self, wait: float = PATIENCE) -> bool:
        """Read the track again after a write; return whether that ended in time.

        Args:
            wait: seconds; 0 asks only.
        """
        if wait:
            return self._answer(Look, wait) is not None
        with self._sending:
            self._link.send(Look(0))
        return False

    def query(self, view: View, query_id: str) -> QueryView | None:
        """Return a query of a view."""
        state: QueryView | None = self._query(view.version, view.grader_name, query_id)
        return state

    def call(self, grader: str, function: Callable[..., T], *args: Any) -> T:
        """Call `function(track, *args)` in the reader, with this grader's view of the track.

        The call waits for the reader's current work. Arguments and results are pickled; the function must be
        importable, and must not change the track.

        Raises:
            TrecexamError: the track is not read yet, or the reader does not answer.
            Exception: what the function raised.
        """
        returned = self._answer(lambda number: Call(number, function, args, grader), PATIENCE)
        if returned is None:
            raise TrecexamError("the track is being read; try again in a minute", path=self.root)
        value = pickle.loads(returned.value)
        if returned.failed:
            raise value
        result: T = value
        return result

    def _answer(self, request: Callable[[int], Call | Look], wait: float) -> Returned | None:
        """Return the reader's answer to a request; None if there is none in time."""
        number, answer = next(self._numbers), queue.SimpleQueue[Returned]()
        self._waiting[number] = answer
        try:
            with self._sending:
                self._link.send(request(number))
            return answer.get(timeout=wait)
        except queue.Empty:
            return None
        finally:
            del self._waiting[number]

    def wait_for(self, ready: Callable[[LiveTrack], bool], seconds: float = PATIENCE) -> bool:
        """Wait until a condition holds; return whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: ready(self), seconds)

    def _listen(self) -> None:
        # Send nothing here: two full pipes would cause a deadlock.
        while True:
            try:
                message = self._link.receive()
            except EOFError:
                self._restart()
                continue
            if message is None:
                return
            if isinstance(message, Returned):
                answer = self._waiting.get(message.number)
                if answer is not None:
                    answer.put(message)
            else:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()

    def _restart(self) -> None:
        """Start the reader again after an unexpected end, and fail waiting requests at once."""
        reason = "the process that reads the track ended, and is started again"
        with self._changed:
            self._take(Trouble(reason))
            self._changed.notify_all()
        ended = pickle.dumps(TrecexamError(f"{reason}: try again in a moment", path=self.root))
        for number, answer in list(self._waiting.items()):
            answer.put(Returned(number, ended, True))
        time.sleep(RESTART)
        self._link.start()

    def _take(self, message: Loaded | Trouble | Work) -> None:
        if isinstance(message, Loaded):
            self.version += 1
            views = [
                replace(view, version=self.version, ask=self.query) for view in pickle.loads(message.views)
            ]
            self.view = replace(views[0], other_views={view.grader_name: view for view in views[1:]})
        elif isinstance(message, Trouble):
            self.trouble = message.reason
        else:
            self.work = message
