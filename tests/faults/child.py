"""Updates a track with a slow, deterministic grader; the fault tests kill it at random moments.

python tests/faults/child.py TRACK SECONDS_PER_BATCH
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / "helpers"),
    str(Path(__file__).resolve().parents[2]),
]

from support import HashGrader  # noqa: E402

import trecexam  # noqa: E402
from trecexam.graders import Answer, Cell  # noqa: E402


class SlowGrader(HashGrader):
    def _done(self, batch: list[tuple[Cell, Answer]]) -> Sequence[tuple[Cell, Answer]]:  # type: ignore[override]
        time.sleep(float(sys.argv[2]))
        return super()._done(batch)


if __name__ == "__main__":
    with trecexam.open_track(sys.argv[1], grader=SlowGrader(batch=6)) as track:
        track._pipeline.check_measures()
        print("ready", flush=True)
        track.update()
    print("done", flush=True)
