"""A small track with gold outputs, and a server that answers from the document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from scripted_server import Exchange
from support import write_run
from text_files import put_rows

QUERIES = {"q1": "where the French parliament sits", "q2": "who wrote Hamlet", "q3": "what is nowhere"}
GOLD = {"q1": ["Paris"], "q2": ["Shakespeare", "William Shakespeare"], "q3": ["x y z"]}
#: The model's answer to each document: its text ends with it.
SAYS = {"d1": "paris.", "d2": "London", "d3": "William Shakespeare", "d4": "the bard", "d5": "x y", "d6": ""}
RUNS: Mapping[str, Mapping[str, list[str]]] = {
    "one": {"q1": ["d1", "d2"], "q2": ["d4", "d3", "d6"], "q3": ["d5"]},
    "two": {"q1": ["d2", "d1"], "q2": ["d3"]},
}


def answer(exchange: Exchange) -> None:
    """The answer in the document of the prompt; empty if there is none."""
    document = exchange.prompt.partition("Document: ")[2].partition("\n")[0]
    exchange.say(document.partition("says: ")[2].strip())


def gold_file(path: Path) -> Path:
    return put_rows(path, *({"query_id": key, "outputs": outputs} for key, outputs in GOLD.items()))


def outputs_file(path: Path) -> Path:
    """The server's answers for every document of every run."""
    pairs = {(q, d) for run in RUNS.values() for q, docs in run.items() for d in docs}
    return put_rows(path, *({"query_id": q, "doc_id": d, "output": SAYS[d]} for q, d in sorted(pairs)))


def erag_track(root: Path, url: str | None = None, *, name: str = "erag", **settings: object) -> Path:
    """A track with queries and runs; with a server also passages, gold outputs and a grader.

    Args:
        name: with "erag", [grader] names the model and the gold outputs are the bank; else they are
            in root/gold.jsonl, and this is the grader.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / "queries.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in QUERIES.items()))
    for run, ranking in RUNS.items():
        write_run(root / "runs" / f"{run}.run", dict(ranking))
    if url is None:
        (root / "trecexam.toml").write_text("[track]\ndepth = 5\n")
        gold_file(root / "gold.jsonl")
        return root
    put_rows(root / "passages.jsonl", *({"docid": d, "text": f"It says: {said}"} for d, said in SAYS.items()))
    gold_file(root / ("bank.gold.jsonl" if name == "erag" else "gold.jsonl"))
    words = {"name": name, "model": "tiny", "base_url": url, "max_new_tokens": 20, **settings}
    grader = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(
        f"[track]\ndepth = 5\n[grader]\n{grader}[report]\nwrite = false\n[watch]\npoll = 0.1\n"
    )
    return root
