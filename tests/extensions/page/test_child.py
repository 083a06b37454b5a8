from __future__ import annotations

from pathlib import Path

import pytest
from child_work import echo

from trecexam.extensions.page import child


@pytest.mark.parametrize("kind", [child.Process, child.Thread])
def test_messages_go_both_ways_until_the_process_is_stopped(kind: type[child.Link], tmp_path: Path) -> None:
    link = kind(echo, tmp_path)  # type: ignore[call-arg]
    link.start()
    link.send({"a": 1})
    assert [link.receive(), link.receive()] == [str(tmp_path), {"a": 1}]
    link.stop()
    assert link.receive() in ("bye", None)


@pytest.mark.parametrize("kind", [child.Process, child.Thread])
def test_an_unexpected_end_is_reported(kind: type[child.Link], tmp_path: Path) -> None:
    link = kind(echo, tmp_path)  # type: ignore[call-arg]
    link.start()
    link.send("end")
    assert link.receive() == str(tmp_path)
    with pytest.raises(EOFError):
        link.receive()
    assert link.ended().startswith("ended")
    link.send("nobody hears this")
    link.stop()


def test_a_killed_process_reports_the_signal(tmp_path: Path) -> None:
    link = child.Process(echo, tmp_path)
    link.start()
    link.send("die")
    link.receive()
    with pytest.raises(EOFError):
        link.receive()
    assert link.ended() == "was ended by signal 9"
    link.stop()
