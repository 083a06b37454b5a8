"""Fifty concurrent raters on a page in a separate process, which is killed midway."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from loops import run_in_loop
from rating_load import assess, cells_of, is_sound, lost, plan_for_all, rate, served_apart, team_of

PEOPLE = 50


@pytest.mark.slow
def test_ratings_accepted_before_a_kill_are_kept_and_the_next_server_continues(track: Path) -> None:
    users, tokens = team_of(track.parent, PEOPLE)
    with served_apart(track, "--users", str(users)) as (child, url):
        file = track / "overrides.tsv"

        def kill_in_the_middle() -> None:
            end = time.monotonic() + 60
            while time.monotonic() < end and not (file.exists() and file.read_bytes().count(b"\n") > PEOPLE):
                time.sleep(0.01)
            child.kill()

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        first = run_in_loop(rate(url, tokens, cells_of(3), seconds=60, pause=0.3))
        killer.join()
    assert first.failed == PEOPLE
    assert len(first.taken) >= PEOPLE / 2
    assert lost(track, first) == []
    assert is_sound(track)
    with served_apart(track, "--users", str(users)) as (_, url):
        second = run_in_loop(
            rate(url, {"p0": tokens["p0"]}, cells_of(3)[-2:-1], seconds=1, pause=0.2, mark="again")
        )
    assert second.taken
    assert lost(track, second) == []


@pytest.mark.slow
def test_with_fifty_concurrent_assessors_a_kill_loses_no_judgment(track: Path) -> None:
    users, tokens = team_of(track.parent, PEOPLE, "assessor")
    plan_for_all(track, tokens, cells_of(3), steps=3)
    file = track / "judgments.tsv"
    with served_apart(track, "--users", str(users)) as (child, url):

        def kill_in_the_middle() -> None:
            end = time.monotonic() + 60
            while time.monotonic() < end and not (
                file.exists() and file.read_bytes().count(b"\n") > 3 * PEOPLE
            ):
                time.sleep(0.01)
            child.kill()

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        first = run_in_loop(assess(url, tokens, seconds=60, pause=0.5, steps=3))
        killer.join()
    assert first.failed == PEOPLE
    assert len(first.taken) >= 2 * PEOPLE
    assert lost(track, first) == []
    with served_apart(track, "--users", str(users)) as (_, url):
        second = run_in_loop(assess(url, tokens, seconds=3, pause=0.5, steps=3, mark="again"))
    assert len(second.taken) >= PEOPLE
    assert not second.failed
    assert lost(track, second) == lost(track, first) == []
    assert is_sound(track)
