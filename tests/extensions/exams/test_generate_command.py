"""`trecexam exam generate` as a user runs it, with working and failing servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exams import CHOICES, STEM, question, write_exam
from scripted_server import Exchange, serving

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.exams.exam_file import read_exam

pytest.importorskip("httpx2")


PASSAGES = [
    {"docid": "d1", "text": "Heat pumps move heat.", "title": "Pumps", "topic": "heat"},
    {"docid": "d2", "text": "Frost settles on coils {title}."},
    {"docid": "d3", "text": "Nobody asks about this."},
]


@pytest.fixture
def track(tmp_path: Path) -> Callable[..., Path]:
    """Makes a track with passages; settings go into [generator]."""

    def made(url: str, **settings: Any) -> Path:
        root = tmp_path / "track"
        root.mkdir(exist_ok=True)
        (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
        words = {"name": "openai", "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
        (root / "trecexam.toml").write_text(f"[generator]\n{lines}")
        return root

    return made


def written(about: str) -> str:
    stem = STEM.replace("house", about)
    body = "\n".join(f"{x}) {choice}" for x, choice in zip("ABCD", CHOICES, strict=True))
    return f"Question: {stem}\n{body}\n\nCorrect Answer: B\nExplanation: so."


def answer_with_question(exchange: Exchange) -> None:
    """Writes a question on the topic of the passage; none on the third one."""
    about = next((row["docid"] for row in PASSAGES if row["text"] in exchange.prompt), "")
    exchange.say("I cannot do that." if about == "d3" else written(about))


def generate(root: Path, *more: str) -> int:
    return run(["exam", "generate", str(root), "--domain", "manuals of heat pumps", *more])


def test_each_passage_gets_a_question_with_its_origin(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_with_question) as server:
        root = track(server.url, seed=3)
        assert generate(root) == 0
    questions = list(read_exam(root / "exam.jsonl"))
    assert [each.doc_id for each in questions] == ["d1", "d2"]
    first = questions[0]
    assert first.question == STEM.replace("house", "d1")
    assert first.choices[first.correct] == CHOICES[1]
    assert first.rest["raw"] == written("d1")
    assert first.choices == tuple(CHOICES[place] for place in first.rest["shuffle"]["order"])
    assert first.rest["shuffle"]["seed"] == 0
    assert (first.documentation, first.topic, first.rest["title"]) == (
        "Heat pumps move heat.",
        "heat",
        "Pumps",
    )
    origin = dict(first.rest["origin"])
    assert origin.pop("time").endswith("Z")
    assert origin == {"prompt": "mcq-generation", "model": "tiny", "seed": 3}
    # The braces of the published prompt and of a passage are unchanged.
    prompts = sorted(body["messages"][-1]["content"] for body in server.bodies)
    start = "### Human: Here is some documentation from manuals of heat pumps: "
    assert any(f"{start}Pumps\nHeat pumps move heat..\nFrom this" in prompt for prompt in prompts)
    assert any("coils {title}..\n" in prompt for prompt in prompts)
    assert all("Question: {question}\nA){candidate A}" in prompt for prompt in prompts)
    noted = json.loads((root / "exam.generation.json").read_bytes())
    assert (noted["generated"], noted["badly_parsed"]) == (3, {"no four candidates": 1})
    unread = json.loads((root / "exam.unread.jsonl").read_bytes())
    assert unread == {"doc_id": "d3", "reason": "no four candidates", "raw": "I cannot do that."}
    err = capsys.readouterr().err
    assert "no question in 1 answer: no four candidates" in err
    assert "2 questions (3 new answers)" in err


def test_an_exam_stays_if_no_answer_of_another_model_is_readable(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_with_question) as server:
        root = track(server.url)
        assert generate(root) == 0
    before = (root / "exam.jsonl").read_bytes()
    with serving(lambda exchange: exchange.say("I cannot do that.")) as server:
        track(server.url, model="other")
        for _ in range(2):
            assert generate(root) == 1
            assert f"{root}/exam.jsonl is unchanged" in capsys.readouterr().err
    assert (root / "exam.jsonl").read_bytes() == before


def test_a_second_run_sends_no_prompt_and_changes_no_byte(track: Callable[..., Path]) -> None:
    with serving(answer_with_question) as server:
        root = track(server.url)
        whole = (root / "passages.jsonl").read_bytes()
        (root / "passages.jsonl").write_bytes(whole.splitlines(keepends=True)[0])
        assert generate(root) == 0
        assert len(server.bodies) == 1
        (root / "passages.jsonl").write_bytes(whole)
        assert generate(root) == 0
        assert len(server.bodies) == 3
        before = (root / "exam.jsonl").read_bytes()
        assert generate(root) == 0
        (root / "exam.jsonl").unlink()
        assert generate(root) == 0
        assert len(server.bodies) == 3
    assert (root / "exam.jsonl").read_bytes() == before


def test_an_edited_exam_is_left_unchanged(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answer_with_question) as server:
        root = track(server.url)
        generate(root)
        path = root / "exam.jsonl"
        path.write_bytes(path.read_bytes().replace(b"Sound of the street", b"Noise of the street"))
        before = path.read_bytes()
        assert generate(root) == 2
        assert "was edited" in capsys.readouterr().err
        assert path.read_bytes() == before
        assert generate(root, "-o", str(root / "other.jsonl")) == 0
        assert (root / "other.generation.json").exists()
        assert len(server.bodies) == 3


def test_a_stopped_generation_resumes(track: Callable[..., Path]) -> None:
    with serving(answer_with_question) as server:
        root = track(server.url, concurrency=1)
        with trecexam.open_track(root) as opened:
            made = opened.exam.generate("pumps", stop=lambda: len(server.bodies) >= 1)
        assert made.why == "stopped"
        assert not made.complete
        asked_first = len(server.bodies)
        assert asked_first < 3
        with trecexam.open_track(root) as opened:
            made = opened.exam.generate("pumps")
        assert len(server.bodies) == 3
    assert made.complete
    assert made.reused == asked_first
    assert [question.doc_id for question in made.questions] == ["d1", "d2"]


# `trecexam exam filter` as a user runs it.


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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"choices": ["a", "b", "c"]}, "\"choices\" of question 'x0' are not 4 texts"),
        ({"correct": 4}, "the index of the right candidate, 0..3, not 4"),
        ({"correct": True}, "0..3, not True"),
        ({"question_id": None}, 'no "question_id" in it'),
        ({"question_id": "a\tb"}, "id 'a\\tb': no tabs"),
        ({"question": None}, "has no text"),
        ({"documentation": 3}, '"documentation" of question'),
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
