"""The reader as a separate process, with messages in both directions.

In the page's own process, reading a track would block requests for seconds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trecexam.extensions.page.reader import work

#: Seconds that a process has to end once it is killed.
LEAVING = 5.0
#: Requests have priority over background reading.
NICE = 5


class Process:
    """`reader.work` in a separate process."""

    _ours: Connection

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ending = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the work, unless it was stopped."""
        if self._ending:
            return
        if self._process is not None:
            self._ours.close()
            self._process.wait(LEAVING)
        self._ours, theirs = multiprocessing.Pipe()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from trecexam.extensions.page.child import main; main({str(self._root)!r}, {theirs.fileno()})"
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
        """Stop the work; `receive` returns None from then on."""
        self._ending = True
        if self._process is not None:
            self._process.kill()
            self._process.wait(LEAVING)

    def send(self, message: Any) -> None:
        """Send a message; it is lost if the worker ended."""
        with contextlib.suppress(OSError):
            self._ours.send(message)

    def receive(self) -> Any:
        """Return the next message; None after `stop`.

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


def main(root: str, fd: int) -> None:
    """Run the reader, connected through this file descriptor: the entry point of the process."""
    connection = Connection(fd)
    os.nice(NICE)
    # Prints of libraries must not mix with the page's address on stdout.
    sys.stdout = sys.stderr
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        # The requester is gone.
        work(Path(root), connection.recv, connection.send)
