"""Work beside the page in a separate process, with messages in both directions.

In the page's own process, seconds of Python would be seconds in which nobody is answered. What works is a
function `work(root, receive, say)`: `receive(seconds)` waits so long for a message, gives None where there is
none, and raises EOFError where there will be no more; `say(message)` sends one back.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Receive = Callable[[float], Any]
Say = Callable[[Any], None]
Work = Callable[[Path, Receive, Say], None]
#: Seconds that a process has to end once it is killed.
LEAVING = 5.0


class Process:
    """Work in a separate process; `work` must be importable by name.

    Args:
        nice: how much others go before it, 0..19.
    """

    _ours: Connection

    def __init__(self, work: Work, root: Path, *, nice: int = 0) -> None:
        self._name = work.__module__, work.__qualname__
        self._root = root
        self._nice = nice
        self._ending = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the work, unless it was stopped."""
        if self._ending:
            return
        if self._process is not None:
            self._ours.close()
            self._process.wait(LEAVING)
        self._ours, theirs = multiprocessing.Pipe()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from trecexam.extensions.page.child import main; "
            f"main({self._name!r}, {str(self._root)!r}, {theirs.fileno()}, {self._nice})"
        )
        # In its own session, so that Ctrl-C is for the page alone.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()

    def stop(self) -> None:
        """Stops the work; `receive` returns None from then on."""
        self._ending = True
        if self._process is not None:
            self._process.kill()
            self._process.wait(LEAVING)

    def send(self, message: Any) -> None:
        """Sends a message; it is lost if the worker ended."""
        with contextlib.suppress(OSError):
            self._ours.send(message)

    def receive(self) -> Any:
        """The next message; None after `stop`.

        Raises:
            EOFError: it ended by itself.
        """
        try:
            return self._ours.recv()
        except (EOFError, OSError):
            if self._ending:
                self._ours.close()
                return None
            raise EOFError from None


def main(name: tuple[str, str], root: str, fd: int, nice: int) -> None:
    """Entry point of the process: runs the named work, connected through this file descriptor."""
    connection = Connection(fd)

    def receive(seconds: float) -> Any:
        return connection.recv() if connection.poll(seconds) else None

    os.nice(nice)
    # What libraries print must not end up where the page's address is read.
    sys.stdout = sys.stderr
    work = getattr(import_module(name[0]), name[1])
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        # Who asked is gone.
        work(Path(root), receive, connection.send)
