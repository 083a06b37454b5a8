"""Updates that are killed at random moments during slow grading, or stopped by Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import HashGrader

import trecexam
from trecexam.folder import TrackFolder
from trecexam.graders import Answer, Cell, create
from trecexam.inputs.measures import check_measures
from trecexam.track import selection


class SlowGrader(HashGrader):
    """Waits in each batch for `seconds`."""

    seconds = 0.0

    def _done(self, batch: list[tuple[Cell, Answer]]) -> Sequence[tuple[Cell, Answer]]:  # type: ignore[override]
        time.sleep(self.seconds)
        return super()._done(batch)


def slowed(root: Path, seconds: float) -> Any:
    """The track's own grader, a language model, which waits while a batch is on the device."""
    folder = TrackFolder.open(root)
    grader: Any = create(folder.config.grader, folder.root)
    score = grader.backend.score

    def slow(*arguments: Any) -> Any:
        result = score(*arguments)

        def wait() -> Any:
            time.sleep(seconds)
            return result()

        return wait

    grader.backend.score = slow
    # The model is loaded before the clock starts.
    _ = grader.backend.scorer
    return grader


def update_slowly(root: Path, *, own: bool) -> int:
    """Prints "ready" when all is loaded, and "done" at the end; returns 0.

    Args:
        own: uses the grader of the track's settings, which waits for 0.05 s per batch.
    """
    grader = slowed(root, 0.05) if own else SlowGrader(batch=6)
    if isinstance(grader, SlowGrader):
        grader.seconds = 0.01
    with trecexam.open_track(root, grader=grader) as track:
        # The imports of an update are done before the clock starts.
        check_measures(selection(track).loader().config, track.folder.config_path)
        print("ready", flush=True)
        track.update()
    print("done", flush=True)
    return 0


def interrupted_update(root: Path, stage: str) -> int:
    """The exit status of `watch --once` that gets SIGINT, as by Ctrl-C, when this stage begins."""
    from trecexam.cli.main import run
    from trecexam.outputs.outputs import Outputs

    write = Outputs.write

    def interrupted(*args: Any, complete: bool) -> Any:
        *before, doing = args

        def telling(begun: str) -> None:
            doing(begun)
            if begun == stage:
                os.kill(os.getpid(), signal.SIGINT)

        return write(*before, telling, complete=complete)

    Outputs.write = interrupted  # type: ignore[method-assign]
    return run(["watch", "--once", str(root)])
