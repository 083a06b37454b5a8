"""A track whose cells are graded on a real local cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import Doubling, HashRecipe, PlacedRecipe, Word, actors, add_machine
from ray_cluster import cluster as started
from support import HashGrader, make_small_track, until
from tiny_models import save_llama, save_t5

import trecexam
from trecexam import daemon as daemons
from trecexam.config import GeneratorSection
from trecexam.config.track_config import config_class
from trecexam.daemon import Daemon
from trecexam.errors import GraderError
from trecexam.extensions.cluster import pool
from trecexam.extensions.cluster.remote import ClusterWriter
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.base import UngradedError
from trecexam.graders.writing.create import create_writer

pytest.importorskip("ray")
pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.ray
PROMPT = 'template = "{context} Is this in it: {question}"\nanswers = { "5" = 5, "1" = 1, "0" = 0 }\n'


@pytest.fixture
def track(tmp_path: Path) -> Callable[..., Path]:
    """Makes a small track with this grader, and runs it on this cluster."""

    def make(grader: str, address: str = "", wait: float = 60.0, nuggets: int = 0) -> Path:
        root = make_small_track(tmp_path / "track", queries=2, docs=10, items=3)
        if nuggets:
            bank = root / "bank.questions.jsonl"
            rows = [
                {"qid": json.loads(line)["query_id"], "nuggets": [{"text": f"n {n}"} for n in range(nuggets)]}
                for line in bank.read_text().splitlines()
            ]
            bank.unlink()
            (root / "bank.nuggets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (root / "mine.toml").write_text(PROMPT)
        ray = f'[ray]\naddress = "{address}"\nwait = {wait}\n' if address else ""
        (root / "trecexam.toml").write_text(
            f"[track]\ndepth = 6\n[grader]\n{grader}\n[watch]\npoll = 0.1\nsettle = 0\n{ray}"
        )
        return root

    return make


def graded(root: Path) -> list[dict[str, Any]]:
    with trecexam.open_track(root) as track:
        assert track.update().complete
        return list(track.grades())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lists"), [("seq2seq", False), ("causal", True)])
def test_the_grades_equal_those_of_a_local_run(
    cluster: Any,
    track: Callable[..., Path],
    tmp_path: Path,
    name: str,
    lists: bool,
) -> None:
    grader = f'name = "{name}"\ndevice = "cpu"\ndtype = "float32"\n'
    if name == "seq2seq":
        save_t5(tmp_path / "track" / "tiny")
        grader += 'model = "tiny"\nprompt = "mine.toml"\n'
    if name == "causal":
        save_llama(tmp_path / "track" / "tiny")
        grader += 'model = "tiny"\n'
    if lists:
        grader += 'prompt = "NuggetAssign"\n'
    root = track(grader, nuggets=3 if lists else 0)
    here = graded(root)
    assert here
    qrels = (root / "out" / "rubric.qrels").read_bytes()
    shutil.rmtree(root / ".trecexam")
    shutil.rmtree(root / "out")
    track(grader, cluster.address, nuggets=3 if lists else 0)
    for one, other in zip(graded(root), here, strict=True):
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-4)
        assert one == other
    assert (root / "out" / "rubric.qrels").read_bytes() == qrels


@pytest.fixture
def hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grader `hash`, here and in workers."""
    monkeypatch.setattr("trecexam.graders._places", lambda: {"hash": "ray_cluster:HASH"})
    monkeypatch.setattr("trecexam.extensions.cluster.remote.recipe_of", lambda *_: HashRecipe())


def test_the_manifest_describes_the_environment_of_the_workers(
    cluster: Any, track: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.graders._places", lambda: {"hash": "ray_cluster:PLACED"})
    monkeypatch.setattr("trecexam.extensions.cluster.remote.recipe_of", lambda *_: PlacedRecipe())
    root = track('name = "hash"', cluster.address)
    cells = len(graded(root))
    environments = json.loads((root / "out" / "manifest.json").read_bytes())["environments"]
    assert "unknown" not in environments
    workers = environments["graded_on"]
    assert 1 <= len(workers) <= 2
    assert str(os.getpid()) not in {worker["process"] for worker in workers}
    assert environments["mixed"] == (["process"] if len(workers) > 1 else [])
    assert sum(worker.get("answers", cells) for worker in workers) == cells


@pytest.mark.usefixtures("hashing")
def test_the_daemon_reports_missing_workers_and_resumes_when_one_appears(
    cluster: Any, track: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "RETRY", 0.1)
    machines = list(cluster.worker_nodes)
    while machines:
        cluster.remove_node(machines.pop())
    root = track('name = "hash"', cluster.address, wait=6.0)
    lines: list[str] = []
    daemon = Daemon(root, log=lines.append)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        until(lambda: any("ended early" in line for line in lines))
        # More retries give no new information.
        time.sleep(8)
        said = [line for line in lines if "ended early" in line]
        add_machine(cluster)
        until(lambda: any("cells graded" in line for line in lines))
    finally:
        daemon.stop()
        thread.join(20)
        add_machine(cluster)
    assert len(said) == 1
    assert f"Ray cluster '{cluster.address}': no worker could be placed within 6 s" in said[0]
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        counts = opened.grading.counts()
    assert (counts.missing, counts.ok) == (0, counts.cells)


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_ctrl_c_and_kill_stop_promptly_and_leave_no_worker(
    cluster: Any, track: Callable[..., Path], tmp_path: Path, end: signal.Signals, status: int
) -> None:
    save_t5(tmp_path / "track" / "tiny")
    root = track('name = "seq2seq"\nmodel = "tiny"\ndevice = "cpu"', cluster.address)
    process = subprocess.Popen(
        [sys.executable, "-m", "trecexam", "watch", str(root)], stderr=subprocess.PIPE, text=True
    )
    until(lambda: bool(actors()))
    process.send_signal(end)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in said
    assert "ray" not in said.replace("[ray]", "").lower()


def test_without_a_cluster_watch_once_is_a_one_line_error(track: Callable[..., Path], tmp_path: Path) -> None:
    save_t5(tmp_path / "track" / "tiny")
    root = track('name = "seq2seq"\nmodel = "tiny"\ndevice = "cpu"', "127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "trecexam", "watch", str(root), "--once"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "Ray cluster" in line]
    assert len(lines) == 1
    assert "ended early: Ray cluster '127.0.0.1:9': no answer from it (Connection refused)" in lines[0]
    assert "Traceback" not in done.stderr


# Work on a real local cluster whose workers are killed, lost and restored.


def run(cluster: Any, recipe: Doubling, numbers: int, **settings: Any) -> dict[int, Any]:
    """The result of each number; fails if one has two results."""
    section = RaySection(address=cluster.address, **{"wait": 60.0, **settings})
    found: dict[int, Any] = {}
    for batch, results in pool.run(section, recipe, ([number] for number in range(numbers))):
        assert found.keys().isdisjoint(batch)
        found |= zip(batch, results or (), strict=True)
    return found


def doubled(numbers: int) -> dict[int, int]:
    return {number: 2 * number for number in range(numbers)}


def test_both_workers_are_used_and_each_item_has_one_result(cluster: Any, tmp_path: Path) -> None:
    assert run(cluster, Doubling(tmp_path, together=2), 600) == doubled(600)
    assert len(list(tmp_path.glob("at-work-*"))) == 2


def test_items_of_a_killed_worker_are_done_by_others_exactly_once_and_nothing_is_printed(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(cluster, Doubling(tmp_path, ends=1), 600) == doubled(600)
    assert (tmp_path / "ended").exists()
    assert capfd.readouterr() == ("", "")


def test_finished_items_are_not_kept_in_memory(cluster: Any, tmp_path: Path) -> None:
    section = RaySection(address=cluster.address, wait=30.0, batch_seconds=0.02)
    words = ([Word(number)] for number in range(600))
    seen: list[weakref.ref[Word]] = []
    held = 0
    for batch, _ in pool.run(section, Doubling(tmp_path, pause=0.05), words):
        seen += map(weakref.ref, batch)
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
    assert "in double" in caught.value.__notes__[0]


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
    assert ([1, 2], [2, 4]) in list(pool.run(section, Doubling(tmp_path), [[1], [2]]))


# A model on cluster workers generates the same text as locally.


@pytest.mark.slow
def test_the_texts_equal_those_of_a_local_run(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "llama")
    prompts = [f"what of number {number}" for number in range(8)]
    settings: dict[str, Any] = {
        "generator": GeneratorSection(name="causal", model=str(folder), device="cpu", max_new_tokens=8)
    }
    here = create_writer(config_class()(**settings), tmp_path)
    expected = dict(pair for batch in here.write(prompts) for pair in batch)
    with started(1) as made:
        there = create_writer(config_class()(**settings, ray=RaySection(address=made.address)), tmp_path)
        assert isinstance(there, ClusterWriter)
        assert there.identity == here.identity
        assert dict(pair for batch in there.write(prompts) for pair in batch) == expected
