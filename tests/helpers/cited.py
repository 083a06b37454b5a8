"""A track of generated responses that cite passages, and a server that labels support."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from scripted_server import Exchange

#: doc_id -> text; "lost" is cited and has no text.
PASSAGES = {
    "q1-heat": "Pumps move heat. They freeze.",
    "q1-cost": "Pumps cost money.",
    "q2-sea": "The sea is salt.",
}
ASKED = re.compile(r"Statement: (.*)\n\nCitation: (.*)\Z", re.DOTALL)


def judging(exchange: Exchange) -> None:
    """Full support where all words of the statement are in the citation, partial where some are."""
    asked = ASKED.search(exchange.prompt)
    assert asked is not None, exchange.prompt
    exchange.say(label_of(asked[1], asked[2]))


def label_of(statement: str, citation: str) -> str:
    words, known = ({*re.findall(r"\w+", text.lower())} for text in (statement, citation))
    return f"{'full' if words <= known else 'partial' if words & known else 'no'}_support"


def response(
    run: str, query_id: str, *sentences: tuple[str, list[Any]], references: list[str]
) -> dict[str, Any]:
    """A response in TREC RAG 2024's form."""
    answer = [{"text": text, "citations": cited} for text, cited in sentences]
    return {"run_id": run, "topic_id": query_id, "references": references, "answer": answer}


def write_responses(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


REFERENCES = ["q1-heat", "q1-cost", "lost"]
GOOD = (
    response(
        "good",
        "q1",
        ("Pumps move heat.", [0, 1]),
        ("Pumps cost time.", [1]),
        ("Why?", []),
        references=REFERENCES,
    ),
    response("good", "q2", ("The sea is salt.", [0]), references=["q2-sea"]),
)
POOR = (
    response("poor", "q1", ("Cats purr.", [0]), ("Gone.", [2]), ("Odd.", [7]), references=REFERENCES),
)  # fmt: skip


def make_cited_track(
    root: Path, url: str = "http://127.0.0.1:9/v1", *, more: str = "", rubric: bool = False, **settings: Any
) -> Path:
    """Two runs of responses; settings go into [graders.support], `more` after it.

    Args:
        rubric: adds a first grader, whose grades of the bank are recorded.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "queries.tsv").write_text("q1\tpumps\nq2\tsea\n")
    (root / "passages.jsonl").write_text(
        "".join(json.dumps({"docid": doc_id, "text": text}) + "\n" for doc_id, text in PASSAGES.items())
    )
    (root / "bank.nuggets.jsonl").write_text(
        "".join(
            json.dumps({"query_id": q, "nuggets": [{"nugget_id": f"{q}/n", "nugget_text": f"what {q} says"}]})
            + "\n"
            for q in ("q1", "q2")
        )
    )
    (root / "grades.jsonl").write_text(
        "".join(
            json.dumps({"query_id": q, "doc_id": f"{run}/{q}/1", "item_id": f"{q}/n", "rating": 5}) + "\n"
            for run in ("good", "poor")
            for q in ("q1", "q2")
        )
    )
    write_responses(root / "runs" / "good.jsonl", *GOOD)
    write_responses(root / "runs" / "poor.jsonl", *POOR)
    words = {"name": "openai", "model": "tiny", "base_url": url, **settings}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    first = '[graders.rubric]\nname = "recorded"\nrecorded = "grades.jsonl"\n' if rubric else ""
    (root / "trecexam.toml").write_text(f"{first}[graders.support]\n{lines}{more}")
    return root
