"""The input files of a RAG track, and a server that answers the prompts of its four graders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from assigning import assign
from cited import judging
from scripted_server import Exchange
from support import ROOT

import trecexam

#: Arguments of `init --rag` besides a grader.
FILES = ("--queries", "queries.tsv", "--passages", "passages.jsonl", "--runs", "runs/")

#: Topics of questions.
PARTS = ("cause", "cost", "risk", "price", "rule")


TWO_GRADERS = """\
[track]
queries = "queries.tsv"
passages = "passages.jsonl"
bank = ["bank.questions.jsonl"]
qrels = "qrels.txt"
depth = 10

[graders.rubric]
name = "recorded"
recorded = "grades.jsonl.gz"
min_rating = 4
measures = ["Cover(rel=4)@10", "P(rel=4)@10", "nDCG@10", "AP(rel=4)", "nCover(rel=4)@10", "alpha_nDCG@10"]

[graders.support]
name = "recorded"
recorded = "support.tsv"

[scores]
official_measures = ["nDCG@10", "P(rel=2)@10"]
"""


def make_demo_with_two_graders(folder: Path) -> None:
    """Make the demo track with recorded ratings of `rubric` and labels of `support`, not graded yet."""
    trecexam.make_demo_track(folder, rag=True)
    (folder / "trecexam.toml").write_text(TWO_GRADERS)


def lay_out_two_queries(folder: Path) -> None:
    """Queries, passages, judgments, two runs and a file of responses of the demo track, of two queries."""
    track = ROOT / "examples" / "track"
    (folder / "runs").mkdir()
    shutil.copy(track / "passages.jsonl", folder)
    for name in ("queries.tsv", "qrels.txt", "runs/dense.run", "runs/random.run", "runs/rag-demo.jsonl"):
        lines = (track / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if re.search(r"\bq0[12]\b", line)))


def write_other_responses(folder: Path) -> None:
    """A second system: it has every second sentence of the first, with its second sentence reworded."""
    rows = [json.loads(line) for line in (folder / "runs" / "rag-demo.jsonl").read_text().splitlines()]
    for row in rows:
        row["run_id"] = "other"
        row["answer"] = row["answer"][::2]
        row["answer"][-1]["text"] += " Or so they say."
    (folder / "runs" / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def answer_as_a_judge(exchange: Exchange) -> None:
    """Answers any prompt of a RAG track; nuggets are the first words of passages."""
    prompt = exchange.prompt
    if "Updated Nugget List:" in prompt:
        passages = re.findall(r"^\[\d+\] (.*)$", prompt, re.MULTILINE)
        exchange.say(str([" ".join(text.split()[:6]).replace("'", "") for text in passages[:4]]))
    elif "vital or okay" in prompt:
        exchange.say(str(["vital", "okay", "okay", "vital"][: prompt.count("', '") + 1]))
    elif "concise insightful questions" in prompt:
        exchange.say(json.dumps({"questions": [f"Which {part} matters here?" for part in PARTS]}))
    elif "Nugget List: " in prompt:
        assign(exchange)
    elif "Statement: " in prompt:
        judging(exchange)
    elif "##final score" in prompt:
        exchange.say(f"##final score: {len(prompt) % 4}")
    else:
        exchange.say()


def writes_a_bank(prompt: str) -> bool:
    """Whether a prompt generates a test bank."""
    marks = ("Updated Nugget List:", "vital or okay", "concise insightful questions")
    return any(mark in prompt for mark in marks)
