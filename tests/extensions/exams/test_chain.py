"""Exams from passages to the last fit: each command reads the output of the previous one."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("httpx2")

from scripted_server import Exchange, serving

from trecexam.cli.main import run

PARTS = ["compressor", "evaporator", "condenser", "thermostat", "buffer tank", "fan", "drier", "boiler"]
STEMS = [
    "How would an installer configure the {} of a pump that stands outside?",
    "Which reading helps to identify that the {} of some pump is broken now?",
    "What is it that makes people in cold countries oil their {} twice a year?",
    "Why would you design the {} of such a system with two separate circuits?",
]


def script(exchange: Exchange) -> None:
    """Writes a question on a passage, and answers better with a larger model and better retrieval."""
    prompt, chance = exchange.prompt, Random(exchange.prompt + exchange.body["model"])
    if "Candidates:" not in prompt:
        place = next(n for n, part in enumerate(PARTS) if f"the {part} " in prompt)
        body = "\n".join(f"{x}) {part} number {place}" for x, part in zip("ABCD", PARTS, strict=False))
        exchange.say(f"Question: {STEMS[place % 4].format(PARTS[place])}\n{body}\nAnswer: A")
        return
    right = [line[0] for line in prompt.splitlines() if ") compressor" in line][-1]
    able = {"small": 0.1, "middle": 0.4, "large": 0.6}[exchange.body["model"]] + 0.3 * ("Context:" in prompt)
    exchange.say(right if chance.random() < able else chance.choice("ABCD"))


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_an_exam_goes_from_passages_to_information_by_level_and_type(tmp_path: Path) -> None:
    root, taken, fitted = tmp_path / "track", tmp_path / "taken", tmp_path / "fitted"
    root.mkdir()
    passages = [{"docid": f"d{n}", "text": f"On the {part} of pumps."} for n, part in enumerate(PARTS)]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in passages))
    kept = tmp_path / "filtered" / "kept.jsonl"
    with serving(script) as server:
        settings = f'[generator]\nname = "openai"\nmodel = "writer"\nbase_url = "{server.url}"\n'
        (root / "trecexam.toml").write_text(settings)
        assert run(["exam", "generate", str(root), "--domain", "pumps"]) == 0
        assert run(["exam", "filter", str(root / "exam.jsonl"), "-o", str(kept.parent)]) == 0
        for model in ("small", "middle", "large"):
            score = ["exam", "score", str(kept), "-o", str(taken), "--model", model, "--base-url", server.url]
            score += ["--retriever", "closed-book", "--retriever", "oracle"]
            score += ["--examples", "0", "--examples", "1"]
            assert run(score) == 0
    files = ["--components", str(taken / "components.tsv"), "--groups", str(kept.parent / "groups.tsv")]
    assert run(["exam", "fit", str(taken / "matrix.tsv"), "-o", str(fitted), *files]) == 0
    items = [json.loads(line)["question_id"] for line in kept.read_text().splitlines()]
    assert len(items) == 8
    assert [row[0] for row in table(fitted / "items.tsv")[1:]] == items
    assert len(table(fitted / "examinees.tsv")) == 1 + 3 * 2 * 2
    components = [(row[0], row[1]) for row in table(fitted / "components.tsv")[1:]]
    assert set(components) == {
        *(("model", name) for name in ("small", "middle", "large")),
        *(("retriever", name) for name in ("closed-book", "oracle")),
        *(("examples", name) for name in ("0", "1")),
    }
    # Levels from the lowest, whatever their order in the exam.
    curves = table(fitted / "information.tsv")[0]
    assert [name for name in curves if name.startswith("bloom:")] == [
        "bloom:Remembering", "bloom:Applying", "bloom:Creating",
    ]  # fmt: skip
    assert [name for name in curves if name.startswith("question_type:")] == [
        "question_type:what", "question_type:which", "question_type:how", "question_type:why",
    ]  # fmt: skip
    improve = ["exam", "improve", str(taken / "matrix.tsv"), "-o", str(tmp_path / "better")]
    assert run([*improve, "--steps", "1", "--drop", "0.25", *files[:2]]) == 0
    assert len(table(tmp_path / "better" / "step-1" / "items.tsv")) == 1 + 6
