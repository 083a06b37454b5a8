"""Fifty people rate on the page concurrently for a minute, on loopback, with a kill in a second run.

    python tests/benchmarks/rating_load.py [--people 50] [--seconds 60] [--pause 2]

Each has a login and a connection, and loads the page after a rating before the next one. Half-way through a
second run of a third of the time, the server is killed (SIGKILL); accepted ratings must be stored. Then as
many assessors judge for as long on their blind page, by a plan that gives every passage to all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from rating_load import (  # noqa: E402
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
    parser.add_argument("--pause", type=float, default=2.0, help="Between two ratings of a person.")
    given = parser.parse_args()
    cells, work = cells_of(QUERIES), given.seconds / 3 + 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        track = graded_track(folder / "track", queries=QUERIES)
        users, tokens = team_of(folder, given.people)
        with served_apart(track, "--users", str(users)) as (_, url):
            whole = asyncio.run(rate(url, tokens, cells, given.seconds, given.pause))
        gone = [len(lost(track, whole))]
        with served_apart(track, "--users", str(users)) as (child, url):
            timer = threading.Timer(work / 2, child.kill)
            timer.start()
            killed = asyncio.run(rate(url, tokens, cells, work, given.pause, "again"))
            timer.join()
        gone.append(len(lost(track, killed)))
        (folder / "assessors").mkdir()
        users, tokens = team_of(folder / "assessors", given.people, "assessor")
        plan_for_all(track, tokens, cells, STEPS)
        with served_apart(track, "--users", str(users)) as (_, url):
            assessed = asyncio.run(assess(url, tokens, given.seconds, given.pause, STEPS, "blind"))
        gone.append(len(lost(track, assessed)))
        sound = is_sound(track)
    print("| | number | median | p95 | p99 | max |\n|---|---:|---:|---:|---:|---:|")
    print(line("rating", whole.rating))
    print(line("next page", whole.next_page))
    print(
        line("judgment of an assessor", assessed.rating),
        line("her next passage", assessed.next_page),
        sep="\n",
    )
    taken = zip(("whole round", "before the kill", "assessors"), (whole, killed, assessed), gone, strict=True)
    for name, load, n_lost in taken:
        print(f"- {name}: taken {len(load.taken):,}; lost {n_lost}; connections that failed {load.failed}.")
    print(f"- SQLite's integrity check of the store: {'ok' if sound else 'NOT ok'}.")


def line(what: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    values = [
        1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95, 0.99, 1)
    ]
    return f"| {what} | {len(ordered):,} | " + " | ".join(f"{value:.0f}" for value in values) + " |"


if __name__ == "__main__":
    main()
