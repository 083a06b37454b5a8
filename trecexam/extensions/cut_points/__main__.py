"""Prints cut points for [grader] of a track: python -m trecexam.extensions.cut_points TRACK"""

from __future__ import annotations

import sys

import trecexam
from trecexam import TrecexamError

if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    try:
        with trecexam.open_track(sys.argv[1]) as track:
            print(*track.grading.cut_points().notes, sep="\n")
    except TrecexamError as error:
        raise SystemExit(f"cut_points: {error}") from None
