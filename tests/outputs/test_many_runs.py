"""Hundreds of runs at once, and stopping between outputs."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from forked import start_forked
from scipy.stats import ttest_rel
from slow_update import interrupted_update
from support import HashGrader, graded_track, switch_report_on, update, write_run

import trecexam
from trecexam.features.leaderboard.differences import compare
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.scores.paired_tests import MOST_RUNS, holm

#: An update in a process: CPU seconds until the leaderboard is written and at the end, its peak in MiB.
MEASURED = """\
import re, sys, time
from pathlib import Path
import trecexam

at = {}
with trecexam.open_track(sys.argv[1]) as track:
    update = track.update(doing=lambda stage: at.setdefault(stage, time.process_time()))
stages = list(at)
after = stages[stages.index("out/leaderboard.tsv") + 1]
# Of this program alone: getrusage has the memory of the process that started it, too.
peak = re.search(r"VmHWM:[ \\t]*([0-9]+)", Path("/proc/self/status").read_text())
print(update.runs, at[after], time.process_time(), int(peak[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_hundreds_of_runs_give_a_leaderboard_in_little_time_and_memory(tmp_path: Path) -> None:
    root = graded_track(tmp_path / "track", queries=20, docs=40)
    drawn = random.Random(3)
    for number in range(500):
        docs = {q: drawn.sample([f"q{q}-d{d:02}" for d in range(40)], 20) for q in range(1, 21)}
        write_run(root / "runs" / f"flood{number}.run", {f"q{q}": docs[q] for q in docs})
    done = subprocess.run([sys.executable, "-c", MEASURED, root], capture_output=True, text=True, check=True)
    runs, leaderboard, end, peak = map(float, done.stdout.split())
    assert runs == 503
    assert leaderboard < 10
    assert end < 30
    assert peak < 600
    compared = {line.split("\t")[0] for line in (root / "out" / "groups.tsv").read_text().splitlines()[1:]}
    assert len(compared) == MOST_RUNS
    board = [line.split("\t")[0] for line in (root / "out" / "leaderboard.tsv").read_text().splitlines()[1:]]
    assert compared == set(board[:MOST_RUNS])
    assert f"the best {MOST_RUNS} of 503 runs" in (root / "out" / "report.html").read_text()
    correlation = json.loads((root / "out" / "correlation.json").read_text())
    assert f"no intervals: they are computed for at most {MOST_RUNS} runs" in correlation["notes"]
    (first, *_) = correlation["correlations"]
    assert first["kendall_tau"] is not None
    assert first["kendall_tau.low"] is None


def test_p_values_of_the_best_runs_are_corrected_over_all_pairs(tmp_path: Path) -> None:
    root = graded_track(tmp_path / "track", queries=9)
    drawn = random.Random(5)
    for number in range(5):
        docs = {f"q{q}": drawn.sample([f"q{q}-d{d:02}" for d in range(12)], 8) for q in range(1, 10)}
        write_run(root / "runs" / f"more{number}.run", docs)
    with trecexam.open_track(root) as track:
        track.update()
        (every,) = track.compare(["P(rel=4)@5"]).measures
        values = track.per_query(["P(rel=4)@5"])
    with OpenTrack(open_folder(root)) as loaders:
        loader = loaders.first
        matrix = rubric_values(loader.load(), ["P(rel=4)@5"])
    some = compare("P(rel=4)@5", matrix.runs, matrix.matrix("P(rel=4)@5"), most=3)
    by_query = {run: values[values.run == run].sort_values("query_id").value for run in every.runs}
    assert some.runs == every.runs
    assert set(some.groups) == set(every.runs[:3])
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert list(zip(some.first.tolist(), some.second.tolist(), strict=True)) == pairs
    p = [ttest_rel(by_query[every.runs[a]], by_query[every.runs[b]]).pvalue for a, b in pairs]
    np.testing.assert_allclose(some.tests.p, p)
    np.testing.assert_allclose(some.p_corrected, holm([*p, *[np.nan] * (8 * 7 // 2 - 3)])[:3])
    at = {
        pair: place
        for place, pair in enumerate(zip(every.first.tolist(), every.second.tolist(), strict=True))
    }
    assert (some.p_corrected >= every.p_corrected[[at[pair] for pair in pairs]] - 1e-12).all()


def outputs(root: Path) -> dict[str, bytes]:
    """All of out/ but the history, which has times."""
    paths = sorted(path for path in (root / "out").rglob("*") if path.name != "history.tsv")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.is_file()}


NEW_RUN = {"q1": ["q1-d03"], "q2": ["q2-d01"], "q3": ["q3-d02"]}


@pytest.fixture(scope="module")
def undisturbed_outputs(graded_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The outputs with the new run without a stop."""
    root = Path(shutil.copytree(graded_once, tmp_path_factory.mktemp("undisturbed") / "track"))
    write_run(root / "runs" / "new.run", NEW_RUN)
    with trecexam.open_track(root) as track:
        track.update()
    return outputs(root)


@pytest.mark.parametrize("stage", ["out/per_query.tsv", "out/agreement.tsv"])
def test_a_stop_while_outputs_are_written_ends_after_the_current_one(
    graded: Path, undisturbed_outputs: dict[str, bytes], stage: str
) -> None:
    root = graded
    switch_report_on(root)
    before = outputs(root)
    write_run(root / "runs" / "new.run", NEW_RUN)
    printed = root.with_name("printed")
    child = start_forked(interrupted_update, root, stage, folder=root, output=printed)
    child.join()
    assert child.exitcode == 130, printed.read_text()
    assert f"stopping: finishing {stage}; Ctrl-C again ends at once\n" in printed.read_text()
    assert "stopped before the end" in printed.read_text()
    stopped = outputs(root)
    assert b"new" in stopped["out/leaderboard.tsv"]
    # The manifest is written last, always for a whole update.
    assert stopped["out/manifest.json"] == before["out/manifest.json"]
    with trecexam.open_track(root) as track:
        assert track.update().complete
    after = outputs(root)
    assert after.keys() == undisturbed_outputs.keys()
    for name in ("leaderboard.tsv", "per_query.tsv", "correlation.tsv", "agreement.tsv", "rubric.qrels"):
        assert after[f"out/{name}"] == undisturbed_outputs[f"out/{name}"], name


def test_a_stop_while_inputs_are_read_grades_and_writes_nothing(small_track: Path) -> None:
    update(small_track)
    before = outputs(small_track)
    write_run(small_track / "runs" / "new.run", {"q1": ["q1-d11"], "q2": ["q2-d11"]})
    grader = HashGrader()
    with trecexam.open_track(small_track, grader=grader) as track:
        stages: list[str] = []
        stopped = track.update(stop=lambda: bool(stages), doing=stages.append)
        assert stages == ["reading the inputs"]
        assert (stopped.graded, stopped.complete, stopped.written) == (0, False, ())
        assert outputs(small_track) == before
        assert track.update().complete
    assert b"new" in outputs(small_track)["out/leaderboard.tsv"]
