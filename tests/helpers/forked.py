"""Commands in processes of their own that do not import the program again: children of one that has."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path

#: What most commands import, and the process that they are forked from imports once.
PRELOADED = [
    "trecexam.cli.main", "trecexam.api", "trecexam.outputs.update", "trecexam.outputs.features",
    "trecexam.scores.measures", "scipy.stats", "matplotlib.figure", "pyarrow",
]  # fmt: skip
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)


def run_forked(arguments: Sequence[str], folder: Path, output: Path) -> int:
    """`trecexam ARGUMENTS` in `folder`, what it prints in the file `output`; its exit status."""
    child = _CONTEXT.Process(target=_run, args=(list(arguments), folder, output))
    child.start()
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def _run(arguments: list[str], folder: Path, output: Path) -> None:
    os.chdir(folder)
    os.environ["COLUMNS"] = "100"
    with output.open("wb") as file, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.argv = ["trecexam", *arguments]
        from trecexam.cli.main import run

        status = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
