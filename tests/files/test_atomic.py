"""Atomic replacement of files, and irregular files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from trecexam.files import atomic


def test_writing_to_a_pipe_keeps_the_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    contents: list[bytes] = []
    reader = threading.Thread(target=lambda: contents.append(pipe.read_bytes()), daemon=True)
    reader.start()
    atomic.replace(pipe, b"q1 0 d1 1\n")
    reader.join(10)
    assert contents == [b"q1 0 d1 1\n"]
    assert pipe.is_fifo()
