"""Fifty people rate on the page concurrently for a minute, on loopback, with a kill in a second run.

    python tests/benchmarks/rating_load.py [--people 50] [--seconds 60] [--pause 2] [--out FILE.md]

Each has a login and a connection, and loads the page after a rating before the next one. Half-way through a
second run of a third of the time, the server is killed (SIGKILL); accepted ratings must be stored. Then as
many assessors judge for as long on their blind page, by a plan that gives every passage to all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from rating_load import (  # noqa: E402
    Load,
    assess,
    cells_of,
    is_sound,
    lost,
    plan_for_all,
    rate,
    served_apart,
    team_of,
)
from support import graded_track  # noqa: E402

QUERIES = 30
#: Of the scale on which assessors judge.
STEPS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--pause", type=float, default=2.0, help="between two ratings of a person, on average"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        track = graded_track(Path(folder) / "track", queries=QUERIES)
        users, tokens = team_of(Path(folder), given.people)
        with served_apart(track, "--users", str(users)) as (_, url):
            whole = asyncio.run(rate(url, tokens, cells_of(QUERIES), given.seconds, given.pause))
        gone = lost(track, whole)
        with served_apart(track, "--users", str(users)) as (child, url):
            timer = threading.Timer(given.seconds / 6 + 5, child.kill)
            timer.start()
            killed = asyncio.run(
                rate(url, tokens, cells_of(QUERIES), given.seconds / 3 + 5, given.pause, "again")
            )
            timer.join()
        (Path(folder) / "assessors").mkdir()
        users, tokens = team_of(Path(folder) / "assessors", given.people, "assessor")
        gone_then = lost(track, killed)
        plan_for_all(track, tokens, cells_of(QUERIES), STEPS)
        with served_apart(track, "--users", str(users)) as (_, url):
            assessed = asyncio.run(assess(url, tokens, given.seconds, given.pause, STEPS))
        gone_assessed = lost(track, assessed)
        text = report(
            given, whole, gone, killed, gone_then, assessed, gone_assessed, is_sound=is_sound(track)
        )
    print(text)
    if given.out:
        given.out.write_text(text)


def report(
    given: argparse.Namespace,
    whole: Load,
    gone: list[str],
    killed: Load,
    gone_then: list[str],
    assessed: Load,
    gone_assessed: list[str],
    *,
    is_sound: bool,
) -> str:
    what = f"{given.people} people, each a rating about every {given.pause:g} s and the next page, for"
    killed_line = f"taken before {len(killed.taken):,}, lost {len(gone_then)}"
    lines = [
        "# Many people who rate at once",
        "",
        f"{what} {given.seconds:g} s; {os.cpu_count()} cores, Python {platform.python_version()}.",
        "Made by `python tests/benchmarks/rating_load.py`; milliseconds from the request to the last byte,",
        "client and server on the same cores.",
        "",
        "| | number | median | p95 | p99 | max |",
        "|---|---:|---:|---:|---:|---:|",
        line("rating", whole.rating),
        line("next page", whole.next_page),
        line("judgment of an assessor", assessed.rating),
        line("her next passage", assessed.next_page),
        "",
        f"- Ratings taken: {len(whole.taken):,}; lost: {len(gone)}; connections that failed: {whole.failed}.",
        f"- Judgments of assessors taken: {len(assessed.taken):,}; lost: {len(gone_assessed)}; "
        f"connections that failed: {assessed.failed}.",
        f"- Killed (SIGKILL) in the middle of a second run: {killed_line}.",
        f"- SQLite's integrity check of the store afterwards: {'ok' if is_sound else 'NOT ok'}.",
        f"- Load of the machine at the end (1 minute), other work included: {os.getloadavg()[0]:.1f}.",
        "",
    ]
    return "\n".join(lines)


def line(what: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    values = [
        1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95, 0.99, 1)
    ]
    return f"| {what} | {len(ordered):,} | " + " | ".join(f"{value:.0f}" for value in values) + " |"


if __name__ == "__main__":
    main()
