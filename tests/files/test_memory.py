from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.errors import TrecexamError
from trecexam.files.memory import recall, remember


def test_what_is_remembered_is_recalled(tmp_path: Path) -> None:
    path = tmp_path / "state" / "memory.json"
    assert recall(path) == {}
    remember(path, {"a": [1, None], "ü": "x"})
    assert path.read_bytes() == b'{"a": [1, null], "\\u00fc": "x"}'
    assert recall(path) == {"a": [1, None], "ü": "x"}


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b'"a"', b"\xff"])
def test_of_a_memory_that_cannot_be_read_nothing_is_recalled(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(content)
    assert recall(path) == {}


def test_a_memory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrecexamError, match="cannot be written"):
        remember(tmp_path / "file" / "memory.json", {})
