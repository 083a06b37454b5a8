"""Work on a real local cluster whose workers are killed, lost and restored."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")

from ray_cluster import Doubling, Word, until

from trecexam.errors import GraderError
from trecexam.extensions.cluster.pool import Pool
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError

pytestmark = pytest.mark.ray


def run(cluster: Any, recipe: Doubling, numbers: int, **settings: Any) -> dict[int, Any]:
    """The result of each number; fails if one has two results."""
    section = RaySection(address=cluster.address, **{"wait": 60.0, **settings})
    pool: Pool[int, int] = Pool(section, recipe, "double")
    found: dict[int, Any] = {}
    for batch in pool.run([number] for number in range(numbers)):
        for number, result in batch:
            assert number not in found
            found[number] = result
    return found


def doubled(numbers: int) -> dict[int, int]:
    return {number: 2 * number for number in range(numbers)}


def test_both_workers_are_used_and_each_item_has_one_result(cluster: Any, tmp_path: Path) -> None:
    assert run(cluster, Doubling(tmp_path, together=2), 600) == doubled(600)
    assert len(list(tmp_path.glob("at-work-*"))) == 2


def test_items_of_a_killed_worker_are_done_by_others_exactly_once(cluster: Any, tmp_path: Path) -> None:
    killed = []

    def kill() -> None:
        until(lambda: list(tmp_path.glob("at-work-*")))
        killed.append(int(next(tmp_path.glob("at-work-*")).name.removeprefix("at-work-")))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    found = run(cluster, Doubling(tmp_path, pause=0.3), 600)
    thread.join()
    assert killed
    assert found == doubled(600)


def test_finished_items_are_not_kept_in_memory(cluster: Any, tmp_path: Path) -> None:
    section = RaySection(address=cluster.address, wait=30.0, batch_seconds=0.02)
    pool: Pool[Word, str] = Pool(section, Doubling(tmp_path, pause=0.05), "double")
    seen: list[weakref.ref[Word]] = []
    held = 0
    for batch in pool.run([Word(number)] for number in range(600)):
        seen += [weakref.ref(word) for word, _ in batch]
        del batch
        held = sum(ref() is not None for ref in seen)
    assert len(seen) == 600
    assert held < 300


def test_workers_that_die_during_setup_are_not_restarted_forever(cluster: Any, tmp_path: Path) -> None:
    recipe = Doubling(tmp_path, unready=True)
    with pytest.raises(
        UngradedError, match="ended one after the other while they loaded the model; the last on"
    ):
        run(cluster, recipe, 5, workers=1)
    assert len(recipe.made()) == 3


def test_an_exception_in_a_worker_is_a_one_line_error_with_the_traceback_attached(
    cluster: Any, tmp_path: Path
) -> None:
    with pytest.raises(GraderError, match=r"a worker on \S+: ValueError: cannot double 5") as caught:
        run(cluster, Doubling(tmp_path, raises=5), 20)
    assert not isinstance(caught.value, UngradedError)
    assert "\n" not in str(caught.value)
    assert "in double" in str(caught.value.__cause__)


def test_output_of_ray_does_not_reach_the_terminal(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(cluster, Doubling(tmp_path, ends=1, once=True), 5)
    assert capfd.readouterr() == ("", "")


def test_a_token_here_but_none_on_the_cluster_is_reported(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    with pytest.raises(GraderError, match="set RAY_AUTH_MODE=disabled here"):
        run(cluster, Doubling(tmp_path), 3)


def test_auto_finds_the_local_cluster(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    section = RaySection(address="auto", wait=60.0)
    pool: Pool[int, int] = Pool(section, Doubling(tmp_path), "double")
    assert dict(itertools.chain.from_iterable(pool.run([[1], [2]]))) == {1: 2, 2: 4}
