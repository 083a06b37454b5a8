"""Updates a track with a slow, deterministic grader; the fault tests kill it at random moments.

python tests/faults/child.py TRACK SECONDS_PER_BATCH [own]

With `own`, the grader is the one of the track's settings, a language model, slowed down in each batch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / "helpers"),
    str(Path(__file__).resolve().parents[2]),
]

from support import HashGrader  # noqa: E402

import trecexam  # noqa: E402
from trecexam.graders import Answer, Cell  # noqa: E402
from trecexam.line.measures import check_measures  # noqa: E402


class SlowGrader(HashGrader):
    def _done(self, batch: list[tuple[Cell, Answer]]) -> Sequence[tuple[Cell, Answer]]:  # type: ignore[override]
        time.sleep(float(sys.argv[2]))
        return super()._done(batch)


def slowed() -> Any:
    """The track's own grader, which waits while a batch is on the device."""
    from trecexam.graders import create
    from trecexam.track import TrackFolder

    folder = TrackFolder.open(sys.argv[1])
    grader: Any = create(folder.config.grader, folder.root)
    score = grader.backend.score

    def slow(jobs: Any, answers: Any) -> Any:
        result = score(jobs, answers)

        def wait() -> Any:
            time.sleep(float(sys.argv[2]))
            return result()

        return wait

    grader.backend.score = slow
    # The model is loaded before the clock starts.
    _ = grader.backend.scorer
    return grader


if __name__ == "__main__":
    chosen = slowed() if sys.argv[3:] == ["own"] else SlowGrader(batch=6)
    with trecexam.open_track(sys.argv[1], grader=chosen) as track:
        # What an update imports is imported before the clock starts.
        check_measures(track._loader.config, track.folder.config_path)
        print("ready", flush=True)
        track.update()
    print("done", flush=True)
