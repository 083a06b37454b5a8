from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import converters
from converters.errors import ConversionError
from trecexam.files.stamps import Rejected


@given(st.text(), st.text(min_size=1).filter(lambda text: "/" not in text and "\0" not in text))
def test_an_error_is_one_line_without_terminal_control_characters(reason: str, name: str) -> None:
    error = ConversionError(name, 3, reason)
    for text in (str(error), error.reason, str(Rejected(name, 3, reason, "line"))):
        assert not any(sign in text for sign in "\n\r\x00\x1b\x7f\x9b\u202e\u2028\u2066")
        text.encode()
    assert ConversionError(*error.args).reason == error.reason
    assert error.path == name


def test_an_escape_character_in_an_id_is_not_printed_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.run"
    path.write_bytes(b"q1 Q0 d\x1b[31m 1 1.0 a\nq1 Q0 d\x1b[31m 2 0.5 a\n")
    with pytest.raises(ConversionError) as caught:
        converters.read(path, "run")
    assert "\\x1b[31m" in str(caught.value)
    assert "\\x1b[2J.run" in str(caught.value)
    assert "\x1b" not in str(caught.value)
