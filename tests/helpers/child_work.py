"""What the child processes of tests do.

It is no test module: a package called `tests` in the environment (tira has one) would hide those.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from trecexam.extensions.page import child


def echo(root: Path, receive: child.Receive, say: child.Say) -> None:
    """Echoes messages, its root first, until there are no more; "die" kills it, "end" ends it."""
    say(str(root))
    try:
        while True:
            asked = receive(0.05)
            if asked == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if asked == "end":
                return
            if asked is not None:
                say(asked)
    except EOFError:
        say("bye")
