"""A track of questions about knowledge blocks, answers to them, and a judge behind a scripted server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripted_server import KEY, Exchange
from text_files import put_rows

BLOCKS = {"k1": "Heat pumps move heat.", "k2": "Frost settles on coils.", "k3": "Fans move air."}
#: The text of an answer that decides how it is judged.
SCORES = re.compile(r"\[(\S+) (\S+)\]")


def questions(blocks: Mapping[str, str] = BLOCKS) -> list[dict[str, Any]]:
    return [
        {"question_id": f"{key}/1", "question": f"What of {key}?", "content": text, "block_id": key}
        for key, text in blocks.items()
    ]


def make_track(root: Path, url: str, *, grader: str = "ragval", more: str = "", **settings: Any) -> Path:
    """A track with a question about each block; settings go into [grader]."""
    put_rows(root / "bank.questions.jsonl", *questions())
    words = {"name": grader, "model": "tiny", "base_url": url, "key_env": "TEST_KEY", **settings}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(f"[grader]\n{lines}[watch]\npoll = 0.1\nsettle = 0.1\n{more}")
    return root


def answer(key: str, truthfulness: object, relevance: object, **more: Any) -> dict[str, Any]:
    """A line with an answer to the question about a block, and the scores that the judge will give."""
    return {"question_id": f"{key}/1", "answer": f"It is so [{truthfulness} {relevance}] of {key}.", **more}


def judging(exchange: Exchange) -> None:
    """Judges as the answer says; without scores in the answer, it gives none."""
    found = SCORES.search(exchange.prompt)
    if found is None:
        exchange.say("I cannot tell.")
    else:
        exchange.say(f'{{"relevance": {found[2]}, "truthfulness": {found[1]}}}')


__all__ = ["KEY", "answer", "judging", "make_track", "questions"]
