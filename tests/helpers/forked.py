"""Separate processes forked from one that has already imported the program."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

#: Imports of most commands; the parent process of the forks imports them once.
PRELOADED = [
    "trecexam.cli.main", "trecexam.track", "trecexam.outputs.update",
    "trecexam.scores.measures", "scipy.stats", "matplotlib.figure", "pyarrow",
]  # fmt: skip
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)


def preload(*modules: str) -> None:
    """Imports these once, too; has no effect if a process has already been forked."""
    _CONTEXT.set_forkserver_preload([*PRELOADED, *modules])


def start_forked(
    target: Callable[..., int], *arguments: Any, folder: Path, output: Path, **options: Any
) -> BaseProcess:
    """Starts `target` in `folder` with its output in the file `output`; its value is the exit status."""
    # The parent of the forks may be older than a variable that a test sets.
    given = partial(target, *arguments, **options), folder, output, dict(os.environ)
    child = _CONTEXT.Process(target=_run, args=given)
    child.start()
    return child


def run_forked(arguments: Sequence[str], folder: Path, output: Path) -> int:
    """Runs `trecexam ARGUMENTS` in `folder` with its output in the file `output`; returns the exit status."""
    return _status(start_forked(trecexam, list(arguments), folder=folder, output=output))


def run_code_forked(code: str, folder: Path, output: Path) -> int:
    """`python -W error -c CODE` in `folder`, what it prints in the file `output`; its exit status."""
    return _status(start_forked(python, code, folder=folder, output=output))


def trecexam(arguments: list[str]) -> int:
    from trecexam.cli.main import run
    from trecexam.results.plots import canvas
    from trecexam.results.plots.canvas import Drawing

    if arguments[0] != "plot":
        # Drawing plots does not affect the status; tests with the mark `plots` check it.
        canvas._drawn = lambda plot: Drawing(b"<svg/>")  # type: ignore[assignment]
    sys.argv = ["trecexam", *arguments]
    return run(arguments)


def python(code: str) -> int:
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="ir_measures.util")
    # PyTerrier 1.1's, on pandas 3.1.
    warnings.filterwarnings("ignore", message="The inplace keyword")
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    return 0


def _status(child: BaseProcess) -> int:
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def _run(target: Callable[[], int], folder: Path, output: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.environ["COLUMNS"] = "100"
    with output.open("wb") as file, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        status = target()
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
