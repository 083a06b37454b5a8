from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from converters import ConversionError
from trecexam.extensions.exams.response_matrix import read_components, read_groups, read_matrix


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_table_has_ones_zeros_and_empty_cells(tmp_path: Path) -> None:
    found = read_matrix(
        written(tmp_path / "m.tsv", "examinee\tq 1\tq2\r\nbm25\t1\t\r\n\r\ndense\t0\t1.0\r\n")
    )
    assert found.examinees == ("bm25", "dense")
    assert found.items == ("q 1", "q2")
    assert found.values[0, 0] == 1
    assert np.isnan(found.values[0, 1])
    assert found.values[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("examinee\tq1\ns\t2\n", 2, "examinee 's', question 'q1': '2' is neither 0, 1 nor empty"),
        ("examinee\tq1\ns\t1\ns\t0\n", 3, "examinee 's' occurs twice"),
        ("examinee\tq1\tq1\ns\t1\t0\n", 1, "names question 'q1' twice"),
        ("examinee\tq1\ns\t1\t0\n", 2, "has 3 columns, the header line has 2"),
        ("system\tq1\ns\t1\n", 1, "the first column is 'system'"),
        ("examinee\ns\n", 1, "no question"),
        ("examinee\tq1\t\ns\t1\t0\n", 1, "column 3 has no question id"),
        ("examinee\tq1\n\t1\n", 2, "no examinee in the first column"),
        ("examinee\tq1\n", None, "the file has only a header line"),
    ],
)
def test_an_unreadable_table_is_rejected_with_its_line(
    tmp_path: Path, text: str, line: int | None, reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason) as error:
        read_matrix(written(tmp_path / "m.tsv", text))
    assert error.value.line == line


def test_json_lines_have_one_response_each(tmp_path: Path) -> None:
    rows = [
        {"examinee": "s1", "question_id": "q1", "acc": 1},
        {"examinee": "s1", "question_id": "q2", "acc": False},
        {"examinee": "s2", "question_id": "q2", "correct": 1.0},
        {"examinee": "s2", "question_id": "q1", "acc": None},
    ]
    found = read_matrix(written(tmp_path / "m.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert (found.examinees, found.items) == (("s1", "s2"), ("q1", "q2"))
    assert found.values[0].tolist() == [1, 0]
    assert np.isnan(found.values[1, 0])
    assert found.values[1, 1] == 1


def test_a_folder_has_one_file_per_examinee_as_in_the_released_code(tmp_path: Path) -> None:
    questions = ["What is sous vide?", "Where is CDG airport?"]
    for name, accs in (("flan", [1.0, 0.0]), ("closed", [0, 1])):
        rows = [
            {"doc": {"question": q, "doc_id": "same"}, "acc": acc}
            for q, acc in zip(questions, accs, strict=True)
        ]
        written(tmp_path / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = read_matrix(tmp_path)
    assert found.examinees == ("closed", "flan")
    assert found.items == ("1", "2")
    assert found.texts["2"] == "Where is CDG airport?"
    assert found.values.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"question_id": "q1", "acc": 1}], 'no "examinee" in it'),
        ([{"examinee": "s", "question_id": "q1"}], 'no "acc" in it'),
        ([{"examinee": "s", "question_id": "q1", "acc": 2}], "'2' is neither 0, 1 nor null"),
        ([{"examinee": "s", "question_id": "q1", "acc": 1}] * 2, "already responded to question 'q1'"),
        (
            [
                {"examinee": "s", "doc": {"question": "one?"}, "question_id": "q1", "acc": 1},
                {"examinee": "t", "doc": {"question": "two?"}, "question_id": "q1", "acc": 1},
            ],
            "another text than before",
        ),
    ],
)
def test_unreadable_json_lines_are_rejected(tmp_path: Path, rows: list, reason: str) -> None:  # type: ignore[type-arg]
    path = written(tmp_path / "m.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ConversionError, match=reason) as error:
        read_matrix(path)
    assert error.value.line == len(rows)


def test_components_and_groups_are_tables_of_labels(tmp_path: Path) -> None:
    found = read_components(written(tmp_path / "c.tsv", "examinee\tllm\ticl\ns\tflan\t0\n"))
    assert (found.names, found.rows) == (("llm", "icl"), {"s": ("flan", "0")})
    groups = read_groups(written(tmp_path / "g.tsv", "item\tbloom\nq1\tapplying|creating\nq2\t\n"))
    assert groups.rows == {"q1": ("applying|creating",), "q2": ("",)}
