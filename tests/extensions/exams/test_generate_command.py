"""`trecexam exam generate` as a user runs it, with working and failing servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exams import CHOICES, STEM

pytest.importorskip("httpx2")

from scripted_server import Exchange, serving

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.exams.exam_file import read_exam

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


def test_without_a_readable_answer_no_exam_is_written(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda exchange: exchange.say("I cannot do that.")) as server:
        root = track(server.url)
        for _ in range(2):
            assert generate(root) == 1
            assert not (root / "exam.jsonl").exists()
            assert not (root / "exam.generation.json").exists()
            *_, answers, end = capsys.readouterr().err.splitlines()
            assert answers == "no question in 3 answers: no four candidates"
            assert end == (
                f"no answer could be read as a question; {root}/exam.jsonl was not written: look at the "
                f"answers in {root}/exam.unread.jsonl, then name another model in [generator] or raise its "
                "max_new_tokens"
            )
        assert len((root / "exam.unread.jsonl").read_bytes().splitlines()) == 3


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


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"docid": "d1", "text": "a"}\n{"docid": "d1", "text": "b"}', ":2: passage 'd1' occurs twice"),
        ('{"docid": "d1"}', ":1: passage 'd1' has no text"),
        ('{"docid": "d1", "text": "a", "topic": 3}', ":1: \"topic\" of passage 'd1' is not text"),
        ('{"docid": "d\\t1", "text": "a"}', ":1: id 'd\\t1': no tabs"),
        ("", "the file is empty"),
    ],
)
def test_unusable_passages_are_reported(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str], line: str, reason: str
) -> None:
    root = track("http://127.0.0.1:9/v1")
    (root / "passages.jsonl").write_text(line)
    assert generate(root) == 2
    assert reason in capsys.readouterr().err


def test_short_stems_and_cut_answers_are_reported(track: Callable[..., Path]) -> None:
    def short(exchange: Exchange) -> None:
        cut = PASSAGES[1]["text"] in exchange.prompt
        text = written("d1")
        if PASSAGES[2]["text"] in exchange.prompt:
            text = text.replace(STEM.replace("house", "d1"), "What is it?")
        exchange.say(text.partition("Correct")[0] if cut else text, finish="length" if cut else "stop")

    with serving(short) as server:
        root = track(server.url)
        with trecexam.open_track(root) as opened:
            assert opened.exam.generate("pumps").questions
    assert [each.doc_id for each in read_exam(root / "exam.jsonl")] == ["d1"]
    noted = json.loads((root / "exam.generation.json").read_bytes())
    assert noted["badly_parsed"] == {
        "question too short": 1,
        "ends early: raise `max_new_tokens`": 1,
    }


def test_a_compressed_output_file_is_rejected(
    track: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = track("http://127.0.0.1:9/v1")
    assert generate(root, "-o", str(root / "exam.jsonl.gz")) == 2
    assert "is compressed" in capsys.readouterr().err


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
