from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outside import outside
from support import make_small_track

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.banks.checks import Checked, check_files

Capture = pytest.CaptureFixture[str]


def checked(folder: Path, *rows: dict[str, Any] | str) -> Checked:
    path = folder / "bank.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return check_files([path])


def question(text: str, number: int = 1, query_id: str = "q1", **more: Any) -> dict[str, Any]:
    return {"query_id": query_id, "question_id": f"{query_id}/{number}", "question": text, **more}


def problems_of(found: Checked) -> list[tuple[int | None, str, str]]:
    return [(row.line, row.item_id, row.problem) for row in found.problems]


def test_duplicates_are_reported_once_with_the_first_one(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        question("Why does it rain?"),
        question("Why does it rain?", 2),
        question(" why, does it  rain", 3),
        question("Why does it rain?", 1, "q2"),
        question("Why does it snow?", 4),
    )
    assert problems_of(found) == [
        (2, "q1/2", "duplicate of 'q1/1' on line 1"),
        (3, "q1/3", "duplicate of 'q1/1' on line 1"),
    ]


def test_a_duplicate_id_is_one_problem_even_across_files(tmp_path: Path) -> None:
    for name, rows in {
        "a": [question("a?"), question("b?", 2)],
        "b": [question("c?"), question("b?", 2), question("b?", 2, retired=True)],
    }.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_files([tmp_path / name for name in "ab"])
    first, second = (str(tmp_path / name) for name in "ab")
    assert [(row.file, row.line, row.problem) for row in found.problems] == [
        (second, 1, f"item id 'q1/1' occurs twice, first on {first}:1"),
        (second, 2, f"the same item occurs twice, first on {first}:2"),
        (second, 3, f"the same item occurs twice, first on {first}:2"),
    ]


def test_a_retired_item_is_neither_a_problem_nor_a_duplicate(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        question("1. a?", retired=True),
        question("b?", 2),
        question("b?", 3, retired=True),
        question("", 4, retired=True),
    )
    assert found.problems == ()


def test_each_kind_has_its_own_maximum_of_words(tmp_path: Path) -> None:
    rows = [
        question(" ".join(["word"] * 30)),
        question(" ".join(["w"] * 31), 2),
        {"query_id": "q1", "nugget": " ".join(["word"] * 20)},
        {"query_id": "q1", "nugget": " ".join(["w"] * 21)},
    ]
    assert [(row.line, row.problem) for row in checked(tmp_path, *rows).problems] == [
        (2, "31 words, and 30 are the most a question should have"),
        (4, "21 words, and 20 are the most a nugget should have"),
    ]


@pytest.mark.parametrize(
    ("query", "text", "copy"),
    [
        ("what are the three percenters?", "Who are the Three Percenters?", True),
        ("durable medical equipment", "Durable  medical equipment?", True),
        ("durable medical equipment", "What is durable medical equipment?", True),
        ("what is it", "What is it?", True),
        ("what is it", "Who was it?", True),
        ("durable medical equipment", "Who pays for durable medical equipment?", False),
        ("how does rain form", "Why does rain form?", False),
        ("what is", "what was the", False),
    ],
)
def test_a_question_that_repeats_the_query_is_a_copy(
    tmp_path: Path, query: str, text: str, copy: bool
) -> None:
    found = problems_of(checked(tmp_path, question(text, query_text=query)))
    assert found == [(1, "q1/1", "a copy of the query")] * copy


@pytest.mark.parametrize(
    ("name", "items", "problems"),
    [
        ("dl19/bank.questions.jsonl.gz", 210, {"a copy of the query": 1}),
        (
            "rag25/nuggets.jsonl.gz",
            1255,
            {"duplicate of": 1, "ends with": 1},
        ),
        (
            "car-y3/bank.genq.jsonl.gz",
            2000,
            {
                "a number before it": 61,
                "a bullet before it": 30,
                "the beginning of a list": 4,
                "brackets, quotes or commas": 51,
                "quotes around it": 1,
                "ends with": 3,
                "empty text": 16,
                "words": 8,
            },
        ),
    ],
)
def test_published_banks_have_exactly_these_problems(name: str, items: int, problems: dict[str, int]) -> None:
    found = check_files([outside(name)])
    assert found.items == items
    assert {part: sum(part in row.problem for row in found.problems) for part in problems} == problems
    assert len(found.problems) == sum(problems.values())


#: A problem of texts that go on.
ENDS = "ends with a comma, colon, semicolon or '='"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1. How does it rain?", "a number before it"),
        ("['1. How does it rain?']", "a number before it"),
        ("[3] How does it rain?", "a number before it"),
        ("Question 5: How does it rain?", "a number before it"),
        ("- How does it rain?", "a bullet before it"),
        ("question_set = [", "the beginning of a list"),
        ("Question: how does it rain?", "a label before it"),
        ("```json", "Markdown in it"),
        ('"How does it rain?",', "brackets, quotes or commas of a list around it"),
        ('How does it rain?"]}', "brackets, quotes or commas of a list around it"),
        ('{"questions": ["How', "brackets, quotes or commas of a list around it"),
        ('"How does it rain?"', "quotes around it"),
        ("\u201cHow does it rain?\u201d", "quotes around it"),
        ("Questions about rain:", ENDS),
        ("],", "empty text"),
    ],
)
def test_leftovers_of_a_model_answer_are_reported(tmp_path: Path, text: str, what: str) -> None:
    assert problems_of(checked(tmp_path, question(text))) == [(1, "q1/1", what)]


@pytest.mark.parametrize(
    "text",
    [
        "How does it rain?",
        "59% of US teens have been bullied",
        "1984 was written by Orwell",
        '"Inactivated" is a main type of vaccine.',
        'Which is better, "a" or "b"',
        "'Til death",
        "f(x) = x [see above]",
        "\\frac{a}{b} is a ratio",
        "What does the ** operator do?",
        "-40 is the same in both scales",
        "为什么下雨?",
        "other victims: roma",
    ],
)
def test_ordinary_items_are_not_reported(tmp_path: Path, text: str) -> None:
    assert problems_of(checked(tmp_path, question(text))) == []


def write(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"query_id": "q1", "question": text}) + "\n" for text in texts))
    return path


def test_a_clean_bank_exits_with_0_and_prints_only_the_header(tmp_path: Path, capsys: Capture) -> None:
    assert run(["bank", "check", str(write(tmp_path / "b.jsonl", "a?", "b?"))]) == 0
    out, err = capsys.readouterr()
    assert out == "file\tline\tquery_id\titem_id\tproblem\ttext\n"
    assert err == "2 items of 1 query: nothing to look at\n"


def test_problems_are_rows_and_exit_with_1(tmp_path: Path, capsys: Capture) -> None:
    bank = write(tmp_path / "b.jsonl", "a?", "1. b?", "A?")
    assert run(["bank", "check", str(bank)]) == 1
    out, err = capsys.readouterr()
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [(row[0], row[1], row[2], row[5]) for row in rows] == [
        (str(bank), "2", "q1", "1. b?"),
        (str(bank), "3", "q1", "A?"),
    ]
    assert err == "3 items of 1 query: 2 problems\n"
    assert run(["bank", "check", str(bank), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["problem"] for row in found["findings"]] == [row[4] for row in rows]


def test_in_a_track_queries_without_items_or_text_are_found_too(tmp_path: Path, capsys: Capture) -> None:
    root = make_small_track(tmp_path / "track")
    assert run(["bank", "check", str(root)]) == 0
    (root / "queries.tsv").write_text("q1\tquery number q1\nq7\tseven\n")
    write(root / "bank.more.jsonl", "query number q1", "fine?")
    (root / "bank.none.jsonl").write_text('{"query_id": "q9", "question": "nine?"}\n')
    capsys.readouterr()
    assert run(["bank", "check", str(root)]) == 1
    out = capsys.readouterr().out
    rows = [line.split("\t")[:5] for line in out.splitlines()[1:]]
    assert [[row[0], row[1], row[2], row[4]] for row in rows] == [
        ["bank.more.jsonl", "1", "q1", "a copy of the query"],
        ["bank.none.jsonl", "1", "q9", "the track has no text of this query"],
        ["queries.tsv", "", "q7", "a query without any items"],
    ]
    with trecexam.open_track(root) as track:
        assert len(track.bank.check().problems) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"q1\twhat?\n", "this is not a test bank but queries"),
        (b"q1 Q0 d1 1 2.0 r\n", "this is not a test bank but run"),
        (b"\xff\xfe\0", "b.jsonl"),
        (b"\x1f\x8b junk", "b.jsonl"),
    ],
)
def test_another_or_an_unreadable_file_is_a_one_line_error(
    tmp_path: Path, capsys: Capture, content: bytes, said: str
) -> None:
    (tmp_path / "b.jsonl").write_bytes(content)
    assert run(["bank", "check", str(tmp_path / "b.jsonl")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert said in err


def test_a_missing_path_or_a_folder_without_a_track_is_rejected(tmp_path: Path, capsys: Capture) -> None:
    assert run(["bank", "check", str(tmp_path / "nix.jsonl")]) == 2
    assert run(["bank", "check", str(tmp_path)]) == 2
    assert run(["bank", "check"]) == 2
    bank = write(tmp_path / "b.jsonl", "a?")
    assert run(["bank", "check", str(bank), str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("trecexam: ") for line in lines)
