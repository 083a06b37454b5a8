"""What is remembered in files, and words of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.files.memory import recall, remember
from trecexam.tables.text import shorten_list


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


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"n{number}" for number in range(1005)]
    assert shorten_list(names[:2], 2) == "'n0', 'n1'"
    assert shorten_list(names, 2) == "'n0', 'n1' and 1,003 more"
    assert shorten_list(names, 2, quote="", dots=True) == "n0, n1, ..."
    assert shorten_list({"a": 1}.keys(), 2, dots=True) == "'a'"
    assert shorten_list([]) == ""


def test_a_name_that_is_not_known_has_a_guess_where_one_is_near() -> None:
    assert did_you_mean("recal", ("recall", "precision")) == "did you mean 'recall'?"
    assert did_you_mean("recal", {"recall"}, before="; ") == "; did you mean 'recall'?"
    assert did_you_mean("zzz", ("recall",), "known: recall", before="; ") == "known: recall"
