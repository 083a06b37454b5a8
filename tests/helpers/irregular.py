"""Replaces one input of a track with each kind of irregular file, and updates."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from trecexam.cli.main import run
from trecexam.results.plots import canvas
from trecexam.results.plots.canvas import Drawing


def bind(path: Path) -> None:
    os.chdir(path.parent)  # the address of a socket has 107 characters at most
    socket.socket(socket.AF_UNIX).bind(path.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to("not-there"),
}


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def update_with_each_kind(root: Path, name: str) -> int:
    """Prints a line of JSON before and after each kind, so that the last line shows where it hangs."""
    canvas._drawn = lambda plot: Drawing(b"<svg/>")  # type: ignore[assignment]
    content = (root / name).read_bytes()
    for kind, make in KINDS.items():
        say(begins=kind)
        (root / name).unlink()
        make(root / name)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = run(["watch", str(root), "--once"])
        rejected = root / "out" / "rejected.tsv"
        say(kind=kind, status=status, said=said.getvalue(), rejected=rejected.read_text())
        if (root / name).is_dir():
            shutil.rmtree(root / name)
        else:
            (root / name).unlink()
        (root / name).write_bytes(content)
    return 0
