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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")
pytest.importorskip("transformers")

from ray_cluster import HashRecipe, PlacedRecipe, actors, add_machine, until
from support import HashGrader, make_small_track
from tiny_models import save_llama, save_t5

import trecexam
from trecexam import daemon as daemons
from trecexam.daemon import Daemon

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
    monkeypatch.setattr("trecexam.extensions.cluster.grader.recipe_of", lambda *_: HashRecipe())


def test_the_manifest_describes_the_environment_of_the_workers(
    cluster: Any, track: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.graders._places", lambda: {"hash": "ray_cluster:PLACED"})
    monkeypatch.setattr("trecexam.extensions.cluster.grader.recipe_of", lambda *_: PlacedRecipe())
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
    root = track('name = "hash"', cluster.address, wait=3.0)
    lines: list[str] = []
    daemon = Daemon(root, log=lines.append)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        until(lambda: any("ended early" in line for line in lines))
        # More retries give no new information.
        time.sleep(4)
        said = [line for line in lines if "ended early" in line]
        add_machine(cluster)
        until(lambda: any("cells graded" in line for line in lines))
    finally:
        daemon.stop()
        thread.join(20)
        add_machine(cluster)
    assert len(said) == 1
    assert f"Ray cluster '{cluster.address}': no worker could be placed within 3 s" in said[0]
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        counts = opened.grading.counts()
    assert (counts.missing, counts.ok) == (0, counts.cells)


def test_ctrl_c_stops_promptly_and_leaves_no_worker(
    cluster: Any, track: Callable[..., Path], tmp_path: Path
) -> None:
    save_t5(tmp_path / "track" / "tiny")
    root = track('name = "seq2seq"\nmodel = "tiny"\ndevice = "cpu"', cluster.address)
    process = subprocess.Popen(
        [sys.executable, "-m", "trecexam", "watch", str(root)], stderr=subprocess.PIPE, text=True
    )
    until(lambda: bool(actors()))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
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
