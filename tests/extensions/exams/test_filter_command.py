"""`trecexam exam filter` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exams import CHOICES, STEM, question, write_exam

from converters import ConversionError
from trecexam.cli.main import run
from trecexam.extensions.exams.exam_file import read_exam, read_sources


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    return write_exam(
        tmp_path / "exam.jsonl",
        [
            question(0, raw="as it \u00fc was"),
            question(1, STEM.replace("a heat", "the heat")),
            question(2, "According to the documentation, what is needed to defrost the coil?"),
            question(3, "How would you demonstrate that the coil of a pump is frozen?", CHOICES, 3),
        ],
    )


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_kept_and_removed_questions_are_written_with_reasons(
    exam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = exam.parent / "filtered"
    assert run(["exam", "filter", str(exam), "-o", str(out)]) == 0
    kept, dropped = lines(out / "kept.jsonl"), lines(out / "dropped.jsonl")
    assert sorted(path.name for path in out.iterdir()) == [
        "dropped.jsonl", "groups.tsv", "kept.jsonl", "queries.tsv",
    ]  # fmt: skip
    assert [row["question_id"] for row in kept] == ["x0", "x1", "x3"]
    assert kept[0]["raw"] == "as it \u00fc was"
    reason = "refers to the text that it was made from: 'documentation'"
    assert [(row["question_id"], row["reason"]) for row in dropped] == [("x2", reason)]
    assert (out / "groups.tsv").read_text().splitlines() == [
        "item\tbloom\tquestion_type", "x0\t\twhat", "x1\t\twhat", "x3\tApplying\thow",
    ]  # fmt: skip
    queries = (out / "queries.tsv").read_text().splitlines()
    assert queries[0] == f"x0\t{STEM}"
    assert len(queries) == 3
    said = capsys.readouterr()
    assert said.out.splitlines() == ["question_id\treason", f"x2\t{reason}"]
    assert "4 questions: 1 dropped, 3 kept" in said.err
    # The kept questions are an exam again, and none is removed a second time.
    exam.write_bytes((out / "kept.jsonl").read_bytes())
    assert run(["exam", "filter", str(exam), "-o", str(out / "again")]) == 0
    assert lines(out / "again" / "kept.jsonl") == kept


def test_an_exam_with_no_question_left_gives_status_1(exam: Path) -> None:
    write_exam(exam, [question(0, "What does the documentation say of the coil of a heat pump?")])
    assert run(["exam", "filter", str(exam), "-o", str(exam.parent / "filtered")]) == 1
    assert (exam.parent / "filtered" / "kept.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"choices": ["a", "b", "c"]}, "\"choices\" of question 'x0' are not 4 texts"),
        ({"choices": ["a", "b", "c", 4]}, '"choices" of question'),
        ({"choices": None}, '"choices" of question'),
        ({"correct": 4}, "the index of the right candidate, 0..3, not 4"),
        ({"correct": "B"}, "0..3, not 'B'"),
        ({"correct": True}, "0..3, not True"),
        ({"question_id": None}, 'no "question_id" in it'),
        ({"question_id": "a\tb"}, "id 'a\\tb': no tabs"),
        ({"question_id": "a\n"}, "no tabs, line ends"),
        ({"question_id": " a"}, "or blanks around it"),
        ({"question": None}, "has no text"),
        ({"documentation": 3}, '"documentation" of question'),
        ({"topic": ["a"]}, '"topic" of question'),
    ],
)
def test_a_line_that_is_not_a_question_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], reason: str
) -> None:
    path = tmp_path / "exam.jsonl"
    path.write_text("\n" + json.dumps({**question().row(), **change}) + "\n")
    assert run(["exam", "filter", str(path), "-o", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"trecexam: {path}:2: ")
    assert reason in err
    assert not (tmp_path / "out").exists()


def test_a_duplicate_question_id_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_exam(tmp_path / "exam.jsonl", [question(), question()])
    assert run(["exam", "filter", str(path), "-o", str(tmp_path / "out")]) == 2
    assert f"{path}:2: question id 'x0' occurs twice (first on line 1)" in capsys.readouterr().err


def test_the_input_exam_is_never_overwritten(exam: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = exam.rename(exam.with_name("kept.jsonl"))
    before = path.read_bytes()
    assert run(["exam", "filter", str(path), "-o", str(path.parent)]) == 2
    assert "is an input of this command; name another folder" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_an_error_is_one_line_however_long_the_id_is(tmp_path: Path) -> None:
    long = "x" * 100_000
    path = tmp_path / "rows.jsonl"
    for read, row, reason in (
        (read_exam, {"question_id": long, "choices": ["a"]}, r'"choices" of question .* are not 4 texts'),
        (read_sources, {"docid": long, "text": 3}, "passage 'xxx"),
    ):
        path.write_text(json.dumps(row) + "\n")
        with pytest.raises(ConversionError, match=reason) as error:
            list(read(path))
        assert len(str(error.value)) < 1000
