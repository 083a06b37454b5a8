"""`trecexam exam generate --again` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exams import CHOICES, PASSAGE, STEM

pytest.importorskip("httpx2")
pytest.importorskip("tenacity")

from scripted_server import Exchange, serving

from trecexam.cli.main import run
from trecexam.extensions.exams.exam_file import read_exam

COPIED = "electric power for its compressor"
GOOD = "Smoke from a chimney"
STEMS = {
    "first": STEM,
    "second": "Whatever is carried indoors by such a machine on cold days in winter?",
    "third": "According to the documentation, which of these things needs a compressor?",
}


def answering(*answers: str) -> Callable[[Exchange], None]:
    """Generates exams with a copied candidate in questions two and three; then gives these answers."""
    todo = list(answers)

    def answer(exchange: Exchange) -> None:
        if "more wrong answers" in exchange.prompt:
            exchange.say(todo.pop(0))
            return
        about = next(name for name in ("first", "second", "third") if f"{name}." in exchange.prompt)
        choices = [CHOICES[0], CHOICES[1], CHOICES[2] if about == "first" else COPIED, CHOICES[3]]
        body = "\n".join(f"{x}) {choice}" for x, choice in zip("ABCD", choices, strict=True))
        exchange.say(f"Question: {STEMS[about]}\n{body}\n\nCorrect Answer: A")

    return answer


def made(tmp_path: Path, url: str, **settings: Any) -> Path:
    root = tmp_path / "track"
    root.mkdir()
    rows = [{"docid": name, "text": f"{PASSAGE} {name}."} for name in ("first", "second", "third")]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = {
        "name": "openai",
        "model": "tiny",
        "base_url": url,
        "key_env": "TEST_KEY",
        "concurrency": 1,
        **settings,
    }
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(f"[generator]\n{lines}")
    assert generate(root) == 0
    return root


def generate(root: Path, *more: str) -> int:
    return run(["exam", "generate", str(root), "--domain", "manuals of heat pumps", *more])


def n_kept(root: Path) -> int:
    out = root / "filtered"
    assert run(["exam", "filter", str(root), "-o", str(out)]) == 0
    return len((out / "kept.jsonl").read_text().splitlines())


def test_a_bad_wrong_candidate_is_replaced_and_the_question_passes_the_filters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answering(f"- {COPIED} of power\n- {GOOD}\n- Sand")) as server:
        root = made(tmp_path, server.url)
        before = {each.question_id: each for each in read_exam(root / "exam.jsonl")}
        assert n_kept(root) == 1
        assert generate(root, "--again") == 0
        assert len(server.bodies) == 4
        assert "1 question of 1 with bad wrong candidates rewritten (1 new answer), 1 bad for other" in (
            capsys.readouterr().err
        )
    after = {each.question_id: each for each in read_exam(root / "exam.jsonl")}
    assert list(after) == list(before)
    changed = [name for name in after if after[name] != before[name]]
    (name,) = changed
    old, new = before[name], after[name]
    assert old.doc_id == "second"
    assert new.choices == tuple(GOOD if choice == COPIED else choice for choice in old.choices)
    assert (new.correct, new.rest["raw"]) == (old.correct, old.rest["raw"])
    (note,) = new.rest["refilled"]
    assert note["was"] == {str(old.choices.index(COPIED)): COPIED}
    assert note["model"] == "tiny"
    assert json.loads((root / "exam.generation.json").read_bytes())["refilled"] == 1
    assert n_kept(root) == 2


def test_refilled_candidates_are_kept_when_the_exam_is_generated_again(tmp_path: Path) -> None:
    with serving(answering(f"- {GOOD}")) as server:
        root = made(tmp_path, server.url)
        assert generate(root, "--again") == 0
        files = [root / "exam.jsonl", root / "exam.generation.json"]
        before = [path.read_bytes() for path in files]
        assert generate(root, "--again") == 0
        assert generate(root) == 0
        assert [path.read_bytes() for path in files] == before
        # A deleted exam is made again from cached answers only, and refilled from them.
        (root / "exam.jsonl").unlink()
        assert generate(root) == 0
        assert not any("refilled" in each.rest for each in read_exam(root / "exam.jsonl"))
        assert generate(root, "--again") == 0
        assert files[0].read_bytes() == before[0]
        assert len(server.bodies) == 4


def test_unsuitable_candidates_are_requested_again_at_most_three_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(answering(f"- {COPIED} of", "no idea", f"- {COPIED} it", f"- {GOOD}")) as server:
        root = made(tmp_path, server.url)
        before = (root / "exam.jsonl").read_bytes()
        assert generate(root, "--again") == 0
        prompts = [body["messages"][-1]["content"] for body in server.bodies[3:]]
        assert f"- {COPIED}\n- {COPIED} of\n" in prompts[1]
        assert "0 questions of 1 with bad" in capsys.readouterr().err
    # The second answer was empty, so the third prompt equals the second and is not sent again.
    assert len(prompts) == 2
    assert (root / "exam.jsonl").read_bytes() == before


def test_tokens_of_later_rounds_are_counted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answering(f"- {COPIED} of", f"- {GOOD}")) as server:
        root = made(tmp_path, server.url)
        assert generate(root, "--again") == 0
        requests = len(server.bodies)
    lines = [json.loads(line) for line in (root / ".trecexam" / "generated.jsonl").read_text().splitlines()]
    assert sum(line["used"][0] for line in lines if "used" in line) == requests == 5
    assert "1 question of 1" in capsys.readouterr().err


def test_a_missing_or_edited_exam_is_not_refilled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answering()) as server:
        root = made(tmp_path, server.url)
        exam = root / "exam.jsonl"
        exam.write_bytes(exam.read_bytes().replace(b"Sound of the street", b"Noise of the street"))
        before = exam.read_bytes()
        assert generate(root, "--again") == 2
        assert "was edited" in capsys.readouterr().err
        assert exam.read_bytes() == before
        exam.unlink()
        assert generate(root, "--again") == 2
        assert "no exam here yet" in capsys.readouterr().err
        assert len(server.bodies) == 3


def test_an_estimate_of_refilling_sends_no_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answering()) as server:
        root = made(tmp_path, server.url)
        capsys.readouterr()
        assert generate(root, "--again", "--estimate") == 0
        assert len(server.bodies) == 3
    assert capsys.readouterr().out.splitlines()[1].startswith("1\t")
