"""`trecexam exam filter` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exams import CHOICES, PASSAGE, STEM, question, write_exam

from trecexam.cli.main import run
from trecexam.extensions.exams import filter_exam
from trecexam.extensions.exams.exam_file import read_exam
from trecexam.extensions.exams.settings import ExamSection
from trecexam.graders.weights import offline_folder


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    return write_exam(
        tmp_path / "exam.jsonl",
        [
            question(0, raw="as it \u00fc was"),
            question(1, STEM.replace("a heat", "the heat")),
            question(2, "According to the documentation, what is needed to defrost the coil?"),
            question(3, "Why so?", ["no", "no", "yes", "why"]),
            question(4, "How would you demonstrate that the coil of a pump is frozen?", CHOICES, 3),
        ],
    )


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_kept_and_removed_questions_are_written_with_reasons(
    exam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = exam.parent / "filtered"
    track = of_track(exam, 'without = ["extra-candidate-jaccard"]')
    assert run(["exam", "filter", track, "-o", str(out)]) == 0
    kept, dropped = lines(out / "kept.jsonl"), lines(out / "dropped.jsonl")
    assert [row["question_id"] for row in kept] == ["x0", "x4"]
    assert kept[0]["raw"] == "as it \u00fc was"
    assert (kept[1]["bloom"], kept[1]["question_type"]) == (["Applying"], "how")
    assert [row["filters"] for row in dropped] == [
        ["duplicates"],
        ["self-contained"],
        ["length", "intra-candidate-jaccard"],
    ]
    assert str(dropped[0]["reason"]).startswith("duplicates: like 'x0'")
    stats = json.loads((out / "stats.json").read_bytes())
    assert (stats["questions"], stats["kept"], stats["dropped"]) == (5, 2, 3)
    assert stats["filters"]["length"] == {"dropped": 1, "alone": 0}
    assert stats["after"]["fixed_answer"] == {"letter": "A", "accuracy": 0.5}
    assert (out / "groups.tsv").read_text() == "item\tbloom\tquestion_type\nx0\t\twhat\nx4\tApplying\thow\n"
    queries = (out / "queries.tsv").read_text().splitlines()
    assert queries[0] == f"x0\t{STEM}"
    assert len(queries) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[1].split("\t") == ["self-contained", "1", "1", ""]
    assert "5 questions: 3 dropped, 2 kept" in said.err
    # The kept questions are an exam again, and none is removed a second time.
    exam.write_bytes((out / "kept.jsonl").read_bytes())
    assert run(["exam", "filter", track, "-o", str(out / "again")]) == 0
    assert lines(out / "again" / "kept.jsonl") == kept
    assert [each.rest["bloom"] for each in read_exam(out / "kept.jsonl")] == [[], ["Applying"]]


def of_track(exam: Path, text: str) -> str:
    """The track that has the exam, with these settings of [exam]."""
    (exam.parent / "trecexam.toml").write_text(f"[exam]\n{text}\n")
    return str(exam.parent)


def test_thresholds_are_read_from_the_track(exam: Path) -> None:
    text = (
        'without = ["duplicates", "extra-candidate-jaccard"]\nmin_question = 3\nintra_candidate_jaccard = 1'
    )
    out = exam.parent / "filtered"
    assert run(["exam", "filter", of_track(exam, text), "-o", str(out)]) == 0
    assert [row["question_id"] for row in lines(out / "dropped.jsonl")] == ["x2"]
    stats = json.loads((out / "stats.json").read_bytes())
    assert stats["settings"]["without"] == ["duplicates", "extra-candidate-jaccard"]
    assert stats["filters"]["intra-candidate-jaccard"]["threshold"] == 1


def test_a_topic_is_one_group(tmp_path: Path) -> None:
    other = "Why does frost settle on the coil of a pump when it is cold?"
    rows = [{**question(n, [STEM, other][n]).row(), "topic": ["a|b", ""][n]} for n in range(2)]
    path = tmp_path / "exam.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["exam", "filter", str(path), "-o", str(tmp_path / "out")]) == 0
    groups = [line.split("\t") for line in (tmp_path / "out" / "groups.tsv").read_text().splitlines()]
    assert groups == [
        ["item", "bloom", "question_type", "topic"],
        ["x0", "", "what", "a/b"],
        ["x1", "", "why", ""],
    ]


def test_candidates_are_compared_by_a_real_sentence_embedder(exam: Path) -> None:
    pytest.importorskip("sentence_transformers")
    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    sound = question(0, choices=["Heat", "Tap water", "Sunlight", "Noise"])
    twins = question(1, choices=["Warmth of the outdoor air", "The outdoor air's warmth", "Fish", "Bread"])
    wrong = question(2, choices=["Warm tea", "Bread", "Music", PASSAGE], correct=2)
    found = filter_exam(
        write_exam(exam, [sound, twins, wrong]),
        ExamSection.model_validate(
            {
                "embedding": "offline",
                "intra_candidate_embedding": 0.9,
                "without": ["length", "duplicates", "extra-candidate-jaccard", "intra-candidate-jaccard"],
            }
        ),
    )
    assert [list(found.filtered.reasons(place)) for place in range(3)] == [
        [],
        ["intra-candidate-embedding"],
        ["extra-candidate-embedding"],
    ]


def test_no_model_is_loaded_if_no_filter_needs_it(exam: Path) -> None:
    model = 'embedding = "nowhere/at-all-x/y"\n'
    off = ["extra-candidate-embedding", "intra-candidate-embedding"]
    for without, status in ((off, 0), (off[:1], 2)):
        track = of_track(exam, f"{model}without = {without}")
        assert run(["exam", "filter", track, "-o", str(exam.parent / "filtered")]) == status


def test_generation_metadata_is_reported_if_present(exam: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noted = {"generated": 9, "badly_parsed": {"no answer letter": 4}}
    exam.with_name("exam.generation.json").write_text(json.dumps(noted))
    assert run(["exam", "filter", str(exam), "-o", str(exam.parent / "filtered")]) == 0
    stats = json.loads((exam.parent / "filtered" / "stats.json").read_bytes())
    assert {key: stats[key] for key in noted} == noted
    assert "9 questions generated, 4 badly parsed" in capsys.readouterr().err


def test_an_exam_with_no_question_left_gives_status_1(exam: Path) -> None:
    track = of_track(exam, "min_question = 900")
    assert run(["exam", "filter", track, "-o", str(exam.parent / "filtered")]) == 1
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


def test_a_folder_without_a_track_is_a_one_line_error(exam: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["exam", "filter", str(exam.parent), "-o", str(exam.parent / "filtered")]) == 2
    assert "no trecexam.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("min_question = 9\nmax_question = 8", "min_question is 9 and max_question 8: no question"),
        ("min_choice = 9\nmax_choice = 8", "min_choice is 9 and max_choice 8"),
        ("duplicates = 2.0", "duplicates"),
        ('embedding = "nowhere/at-all-x/y"', "name a folder with a sentence-transformers model"),
        ('without = ["lenght"]', "without"),
    ],
)
def test_invalid_settings_are_a_one_line_error(
    exam: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    assert run(["exam", "filter", of_track(exam, text), "-o", str(exam.parent / "filtered")]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_duplicate_question_id_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_exam(tmp_path / "exam.jsonl", [question(), question()])
    assert run(["exam", "filter", str(path), "-o", str(tmp_path / "out")]) == 2
    assert f"{path}:2: question id 'x0' occurs twice (first on line 1)" in capsys.readouterr().err


def test_one_question_is_counted_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_exam(tmp_path / "exam.jsonl", [question()])
    run(["exam", "filter", str(path), "-o", str(tmp_path / "filtered")])
    assert any(line.startswith("1 question: ") for line in capsys.readouterr().err.splitlines())


def test_the_input_exam_is_never_overwritten(exam: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = exam.rename(exam.with_name("kept.jsonl"))
    before = path.read_bytes()
    assert run(["exam", "filter", str(path), "-o", str(path.parent)]) == 2
    assert "is an input of this command; name another folder" in capsys.readouterr().err
    assert path.read_bytes() == before
