"""What commands print."""

from __future__ import annotations

import pytest

from trecexam.cli.main import run

Capsys = pytest.CaptureFixture[str]


def printed(capsys: Capsys, *words: object, status: int = 0) -> tuple[str, str]:
    """Run a command, and return its output and what it says on stderr."""
    capsys.readouterr()
    assert run([str(word) for word in words]) == status
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return shown.out, shown.err


def out(capsys: Capsys, *words: object, status: int = 0) -> str:
    return printed(capsys, *words, status=status)[0]


def err(capsys: Capsys, *words: object, status: int = 2) -> str:
    return printed(capsys, *words, status=status)[1]
