from __future__ import annotations

import json
from pathlib import Path

import pytest

from converters import ConversionError
from trecexam.extensions.exams.exam_file import read_exam, read_sources

LONG = "x" * 100_000


def put(path: Path, row: dict[str, object]) -> Path:
    path.write_text(json.dumps(row) + "\n")
    return path


def test_an_error_is_one_line_however_long_the_id_is(tmp_path: Path) -> None:
    question = put(
        tmp_path / "e.jsonl", {"question_id": LONG, "question": "?", "choices": ["a"], "correct": 0}
    )
    with pytest.raises(ConversionError, match=r'"choices" of question .* are not 4 texts') as error:
        list(read_exam(question))
    assert len(str(error.value)) < 1000
    source = put(tmp_path / "s.jsonl", {"docid": LONG, "text": 3})
    with pytest.raises(ConversionError, match="passage 'xxx") as error:
        list(read_sources(source))
    assert len(str(error.value)) < 1000
