"""Grades changes while the page is open, unless `trecexam watch` is running.

It is the same daemon, in its own process, and holds the track's lock; where another process holds it,
this one says so, and looks again later or on request.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from trecexam.daemon import Daemon
from trecexam.errors import LockedError, TrecexamError
from trecexam.extensions.page import child
from trecexam.files.track_lock import holder
from trecexam.line.grading import Progress

#: Seconds until it is tried again where another process grades, or where grading failed; and that the batch
#: in hand has when it is to end: what is not stored by then is graded another time.
AGAIN, RETRY, LEAVING = 15.0, 60.0, 20.0


@dataclass(frozen=True)
class GradingState:
    """The state of grading.

    Attributes:
        done, total: cells of this update; both 0 where nothing is being graded.
        since: when it began (seconds since 1970); None where nothing is being graded.
        failure: why grading cannot go on, or ended early; "" where all is well.
        busy: who grades in place of this one, in a line; "" where nobody does.
    """

    done: int = 0
    total: int = 0
    since: float | None = None
    failure: str = ""
    busy: str = ""


class Line(NamedTuple):
    """From the process: a line for the log."""

    text: str


class GradingEnded(NamedTuple):
    """From the process: grading ended; with the reason why it stopped, or ""."""

    reason: str


class Busy(NamedTuple):
    """From the process: another process has locked the track."""

    reason: str


class Regrader(child.Beside):
    """Keeps the grades of a track complete in the background. Use it as a context manager.

    Args:
        log: takes a line for each thing worth saying.
        make: the link to who grades, for tests.
        again, retry: seconds, see above.
    """

    def __init__(
        self,
        root: Path,
        *,
        log: Callable[[str], None],
        make: Callable[[], child.Link] | None = None,
        again: float = AGAIN,
        retry: float = RETRY,
    ) -> None:
        self._log = log
        self._make = make or (lambda: child.Process(grade, root))
        self._again, self._retry = again, retry
        self._link: child.Link | None = None
        self._thread = threading.Thread(target=self._run, name="regrader", daemon=True)
        self._ending = False
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._now = GradingState()

    def start(self) -> None:
        self._thread.start()

    @property
    def now(self) -> GradingState:
        """What is being graded now."""
        return self._now

    def ask(self) -> None:
        """Looks at the track now, because something changed."""
        self._asked.set()
        with self._lock:
            if self._link is not None:
                self._link.send(child.Look())

    def stop(self, patience: float = LEAVING) -> None:
        """Stops after the current batch, or after this many seconds."""
        with self._lock:
            self._ending = True
            link = self._link
        self._asked.set()
        if link is not None:
            link.stop(patience)
        self._thread.join(patience)

    def _run(self) -> None:
        while not self._ending:
            self._asked.clear()
            try:
                wait = self._work()
            except Exception as error:
                # What nobody thought of must neither be lost nor end it for good.
                traceback.print_exc()
                self._fail(f"this should not happen, please report it: {type(error).__name__}: {error}")
                wait = self._retry
            if not self._ending:
                self._asked.wait(wait)

    def _work(self) -> float:
        """Runs one process to its end; returns the seconds until the next one."""
        with self._lock:
            if self._ending:
                return 0.0
            link = self._link = self._make()
            link.start()
        try:
            while True:
                try:
                    message = link.receive()
                except EOFError:
                    break
                if message is None:
                    return 0.0
                self._take(message)
        finally:
            with self._lock:
                self._link = None
        how = link.ended()
        link.stop()
        if self._now.busy:
            return self._again
        if not self._now.failure:
            self._fail(f"the process that grades {how}")
        return self._retry

    def _take(self, message: Any) -> None:
        if isinstance(message, Line):
            self._log(message.text)
        elif isinstance(message, Progress):
            since = time.time() if self._now.since is None else self._now.since
            self._now = replace(self._now, done=message.graded, total=message.cells, since=since, busy="")
        elif isinstance(message, Busy):
            if message.reason != self._now.busy:
                self._log(message.reason)
            self._now = GradingState(busy=message.reason)
        elif message.reason:
            self._fail(message.reason)
        else:
            self._now = GradingState()

    def _fail(self, reason: str) -> None:
        if reason != self._now.failure:
            self._log(f"grading: {reason}")
        self._now = GradingState(failure=reason)


def grade(root: Path, receive: child.Receive, say: child.Say) -> None:
    """The process: a daemon that reports its progress until `receive` raises an EOFError."""
    daemon = Daemon(
        root,
        log=lambda line: say(Line(line)),
        progress=say,
        look_ended=lambda why: say(GradingEnded(why)),
    )

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                if receive(3600.0) is not None:
                    daemon.look()
        daemon.stop()

    threading.Thread(target=listen, name="listener", daemon=True).start()
    try:
        daemon.run()
    except LockedError as error:
        pid = holder(root / ".trecexam" / "lock")
        running = f"trecexam watch (process {pid}) grades this track; the page shows its results"
        say(Busy(str(error) if pid is None else running))
    except TrecexamError as error:
        say(GradingEnded(str(error)))
    except (BrokenPipeError, ConnectionResetError):
        # The page is gone.
        pass
    except Exception as error:
        traceback.print_exc()
        say(GradingEnded(f"this should not happen, please report it: {type(error).__name__}: {error}"))
