"""Kept files: a read gives what was written or nothing, and never blocks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.files.kept import (
    HEAD,
    LARGEST,
    read_kept,
    read_object,
    read_regular,
    recall,
    remember,
    sealed,
    unsealed,
    write_kept,
)


def test_a_stored_value_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "state" / "memory.json"
    assert recall(path) == {}
    remember(path, {"a": [1, None], "ü": "x"})
    assert path.read_bytes().endswith(b'\n{"a": [1, null], "\\u00fc": "x"}')
    assert recall(path) == {"a": [1, None], "ü": "x"}


@given(st.binary(max_size=300), st.data())
def test_no_flipped_bit_and_no_lost_or_added_byte_gives_another_payload(
    payload: bytes, data: st.DataObject
) -> None:
    whole = sealed("a", payload, 3)
    assert unsealed("a", memoryview(whole), 3) == payload
    assert unsealed("a", memoryview(whole + b"more"), 3) == payload
    assert unsealed("b", memoryview(whole), 3) is None
    assert unsealed("a", memoryview(whole), 4) is None
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    assert unsealed("a", memoryview(flipped), 3) is None
    assert unsealed("a", memoryview(whole)[: bit // 8], 3) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"{",
        b"\xff",
        b'{"a": 1}',
        b"[" * 200_000,
        sealed("other.json", b"{}"),
        sealed("memory.json", b"{}") + b" ",
        # A valid head does not make the rest safe.
        sealed("memory.json", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        sealed("memory.json", b"\xff"),
    ],
)
def test_a_damaged_file_gives_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(content)
    assert recall(path) == {}
    assert read_object(path) == ({"a": 1} if content == b'{"a": 1}' else {})


def test_a_track_file_is_read_whole_unless_it_is_irregular_or_too_large(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [{}]}')
    assert read_regular(path) == b'{"a": [{}]}'
    assert read_object(path) == {"a": [{}]}
    os.truncate(path, HEAD + LARGEST + 1)
    with pytest.raises(OSError, match="larger than"):
        read_regular(path)
    assert (read_object(path), read_kept(path)) == ({}, None)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [fifo, zeros, dangling, folder])
def test_an_irregular_file_is_replaced_without_blocking(tmp_path: Path, make: object) -> None:
    path = tmp_path / "a"
    make(path)  # type: ignore[operator]
    assert (read_kept(path), recall(path), read_object(path)) == (None, {}, {})
    with pytest.raises(OSError, match=r"pipe or a device|No such file|Is a directory"):
        read_regular(path)
    write_kept(path, b"payload")
    assert read_kept(path) == b"payload"
    assert path.is_file()
    assert not path.is_symlink()
