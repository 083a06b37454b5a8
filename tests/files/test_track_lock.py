from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trecexam.errors import LockedError, TrecexamError
from trecexam.files.track_lock import holder, track_lock


def test_a_second_holder_is_rejected_with_the_pid_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / ".trecexam" / "lock"
    with track_lock(path):
        assert holder(path) == os.getpid()
        with pytest.raises(LockedError, match=rf"process {os.getpid()} is already grading"), track_lock(path):
            pass
    assert holder(path) is None
    with track_lock(path):
        pass


def test_a_full_disk_is_reported_and_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with (
            pytest.raises(TrecexamError, match="cannot be written: No space left"),
            track_lock(tmp_path / "lock"),
        ):
            pass
    with track_lock(tmp_path / "lock"):
        assert holder(tmp_path / "lock") == os.getpid()


def test_kill_9_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys, time, pathlib; from trecexam.files.track_lock import track_lock\n"
        "with track_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert holder(path) == child.pid
        child.send_signal(signal.SIGKILL)
        child.wait()
    with track_lock(path):
        assert holder(path) == os.getpid()
