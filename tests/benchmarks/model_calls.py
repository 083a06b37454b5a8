# ruff: noqa: E501
"""Model calls and tokens for 301 responses, and after one of them changed. Writes results/model-calls.md.

    python tests/benchmarks/model_calls.py [--peers PYTHON]

PYTHON is an interpreter of a scratch environment, for `model_calls_of_peers.py`:
`pip install --no-deps nuggetizer==0.0.5 open-rag-eval==0.3.0` and `pip install numpy openai pandas pydantic python-dotenv tenacity`.
Half an hour on two busy cores; without it only trecexam is counted, in two minutes, and no file is written.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from outside import outside
from scripted_server import Exchange, Scripted, serving

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results" / "model-calls.md"

#: Passages that a query has, cited ones first; words of each; nuggets of each query.
N_PASSAGES, N_WORDS, N_NUGGETS = 20, 150, 20
STEPS = ("nuggets made", "importance", "assignment", "UMBRELA", "support", "answered at all")
LEXICON = (
    "the of in and river city war king species protein market theory church music north record early system energy water law school light "
    "treaty engine novel coast island trade cell metal method result large small first second major known called made used between after"
)
WORDS = LEXICON.split(" ")

INTRODUCTION = """# Model calls and tokens for 301 responses, and after one of them changed

Made by `python tests/benchmarks/model_calls.py --peers PYTHON`. The responses are TREC RAG 2024's GPT-4o baseline (`../shared/rag24`): {sentences:,} sentences with
{citations:,} citations. All else is made up: of each query {passages} retrieved passages of {words} words, those that the response cites first, and {nuggets} nuggets. A scripted server answers
at once, and as it should: no list has to be asked for again, and no figure hangs on the machine. Tokens are words and punctuation marks, those of the system's message included, of schemas not.

Each row is all that a program asks for the step, through its own commands or code. Every citation is looked at (`citations = "all"`), as by open-rag-eval; nuggetizer has no step for
passages or citations. Changed is one sentence of one response, which has {changed} citations.

"""

NOTES = """
- **trecexam**: `bank generate --prompt nuggetizer`, then `watch --once` on two tracks, one for UMBRELA and one for `NuggetAssign` with `[support]`; the same three commands again
  after the change. Nothing is chosen by hand.
- **nuggetizer** 0.0.5, its `Nuggetizer` (0.0.6 is not in the package registry; the loops of its sources make the same calls). Its batches skip a query whose id stands in the file of their output,
  whatever the response says by now (`cli/operations.py`, `run_assign_answers_batch`): run again, they ask for nothing, and the changed response keeps the labels of the former one. So "again" is
  without that file, with its nuggets kept; "by hand" with the line of that query taken out of it, which is as few calls as here.
- **open-rag-eval** 0.3.0: the metrics of `TRECEvaluator.evaluate` in its order, but that of HHEM, a local model. `run_eval` evaluates all lines of its file at each run, and reads no former result. It
  makes nuggets for each response anew, five times over the same passages (`nugget_creation_iters`), with passages that UMBRELA calls 1 or better: all of them, here.
  So a second system's responses would cost all of it once more there; here, and in nuggetizer, their assignments (and support) alone.
"""


class Cost(NamedTuple):
    """Model calls, and their tokens."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def plus(self, tokens_in: int, tokens_out: int) -> Cost:
        return Cost(self.calls + 1, self.tokens_in + tokens_in, self.tokens_out + tokens_out)


#: By step.
Costs = Mapping[str, Cost]


def n_tokens(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def step_of(prompt: str) -> str:
    """The step that a prompt is of, whoever asks."""
    marks = ("Updated Nugget List:", "Vital nuggets represent", "label each of the", "trustworthy the passage is", "according to the citation", "an attempt to answer")  # fmt: skip
    steps = ("nuggets made", "importance", "assignment", "UMBRELA", "support", "answered at all")
    return next(step for step, mark in zip(steps, marks, strict=True) if mark in prompt)


def answer_to(step: str, prompt: str, *, as_json: bool) -> str:
    """A right answer; JSON as open-rag-eval's schemas want it."""
    if step == "nuggets made":
        query = re.search(r"Search Query: (.*)", prompt)
        assert query is not None
        value: Any = [f"{query[1][:30]} has made-up fact number {n}".replace('"', "") for n in range(N_NUGGETS)]  # fmt: skip
    elif step in {"importance", "assignment"}:
        line = re.search(r"Nugget List: (\[.*\])", prompt)
        assert line is not None
        labels = ("vital", "okay") if step == "importance" else ("support", "partial_support", "not_support")
        value = [labels[n % len(labels)] for n in range(len(ast.literal_eval(line[1])))]
    else:
        value = {"UMBRELA": "2", "support": "full_support", "answered at all": "yes"}[step]
    if as_json:
        names = dict(zip(STEPS, ("nuggets", "importance", "assignment", "score", "support", "answered"), strict=True))  # fmt: skip
        return json.dumps({names[step]: value})
    return f"##final score: {value}" if step == "UMBRELA" else str(value)


class Counting:
    """A script of a server, which answers and counts."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}

    def __call__(self, exchange: Exchange) -> None:
        step = step_of(exchange.prompt)
        answer = answer_to(step, exchange.prompt, as_json="response_format" in exchange.body)
        asked = sum(n_tokens(message["content"]) for message in exchange.body["messages"])
        with exchange.server.lock:
            self.costs[step] = self.costs.get(step, Cost()).plus(asked, n_tokens(answer))
            # What it keeps of former requests would be some hundred megabytes.
            exchange.server.bodies.clear()
            exchange.server.seen.clear()
        exchange.say(answer)

    def since(self) -> Costs:
        """What was asked since the last call of this."""
        costs, self.costs = self.costs, {}
        return costs


def responses() -> list[dict[str, Any]]:
    with gzip.open(outside("rag24/responses.gpt-4o.jsonl.gz"), "rt") as file:
        return [json.loads(line) for line in file]


def passages_of(response: Mapping[str, Any]) -> dict[str, str]:
    """The passages that a response's query has: those that it cites, and others."""
    topic = response["topic_id"]
    doc_ids = [*response["references"], *(f"{topic}-{n}" for n in range(N_PASSAGES))][:N_PASSAGES]
    return {
        doc_id: " ".join(random.Random(f"{topic}{doc_id}").choices(WORDS, k=N_WORDS)) for doc_id in doc_ids
    }


def changed(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str, int]:
    """The responses with another sentence in one of them, its query and the citations of that sentence."""
    row = next(row for row in rows[100:] if len(row["answer"][1]["citations"]) == 2)
    first, second, *rest = row["answer"]
    second = {**second, "text": f"It was found later that this does not hold: {second['text']}"}
    others = [{**row, "answer": [first, second, *rest]} if each is row else each for each in rows]
    return others, row["topic_id"], len(second["citations"])


def write_tracks(work: Path, rows: list[dict[str, Any]], url: str) -> None:
    """A track for UMBRELA, of a run that retrieved the passages, and one of the responses."""
    model = f'name = "openai"\nmodel = "counted"\nbase_url = "{url}"\n'
    retrieval, answers = work / "retrieval", work / "responses"
    for root in (retrieval, answers):
        (root / "runs").mkdir(parents=True)
        (root / "queries.tsv").write_text("".join(f"{row['topic_id']}\t{row['topic']}\n" for row in rows))
    texts = {doc_id: text for row in rows for doc_id, text in passages_of(row).items()}
    lines = "".join(json.dumps({"docid": doc_id, "text": text}) + "\n" for doc_id, text in texts.items())
    (retrieval / "passages.jsonl").write_text(lines)
    (answers / "passages.jsonl").symlink_to(retrieval / "passages.jsonl")
    (retrieval / "runs" / "top20.run").write_text(
        "".join(
            f"{row['topic_id']} Q0 {doc_id} {rank} {N_PASSAGES - rank} top20\n"
            for row in rows
            for rank, doc_id in enumerate(passages_of(row))
        )
    )
    (retrieval / "trecexam.toml").write_text(
        f'[grader]\nprompt = "UMBRELA"\n{model}[generator]\n{model}max_new_tokens = 2048\n'
    )
    (answers / "trecexam.toml").write_text(
        f'[track]\nunit = "response"\n[grader]\nprompt = "NuggetAssign"\n{model}[support]\ncitations = "all"\n{model}'
    )
    write_responses(work, rows)


def write_responses(work: Path, rows: list[dict[str, Any]]) -> None:
    file = work / "responses" / "runs" / "gpt-4o.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def trecexam(work: Path) -> None:
    """Everything, or what is new of it."""
    bank = work / "responses" / "bank.nuggets.jsonl"
    for words in (
        ["bank", "generate", "retrieval", "--prompt", "nuggetizer", "--passages", str(N_PASSAGES)],
        ["watch", "retrieval", "--once"],
        ["watch", "responses", "--once"],
    ):
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-m", "trecexam", *words], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        if not bank.exists():
            bank.symlink_to(work / "retrieval" / "bank.nuggets.jsonl")


class Peers:
    """nuggetizer and open-rag-eval, in an environment of their own."""

    def __init__(self, python: Path, work: Path, url: str) -> None:
        self._python, self._work, self._url = python, work, url

    def evaluate(self, peer: str, rows: list[dict[str, Any]], *only: str) -> None:
        """All of the responses, or those of some queries."""
        data = [
            {
                "query_id": row["topic_id"],
                "query": row["topic"],
                "passages": passages_of(row),
                "answer": [
                    {"text": part["text"], "citations": [row["references"][n] for n in part["citations"]]}
                    for part in row["answer"]
                ],
            }
            for row in rows
        ]
        file = self._work / "responses.json"
        file.write_text(json.dumps(data))
        script = Path(__file__).with_name("model_calls_of_peers.py")
        environment = os.environ | {"NUGGETS": str(self._work / "nuggets.json")}
        words = [str(self._python), str(script), peer, str(file), self._url, *only]
        subprocess.run(words, env=environment, check=True)


def measured(work: Path, server: Scripted, counts: Counting, peers: Path | None) -> dict[str, Costs]:
    """What each asked for, by who and when."""
    rows = responses()
    others, query_id, _ = changed(rows)
    columns: dict[str, Costs] = {}
    write_tracks(work, rows, server.url)
    trecexam(work)
    columns["trecexam, first"] = counts.since()
    trecexam(work)
    columns["trecexam, nothing changed"] = counts.since()
    write_responses(work, others)
    trecexam(work)
    columns["trecexam, one changed"] = counts.since()
    if peers is not None:
        others_ask = Peers(peers, work, server.url)
        for name, peer, of, only in (
            ("nuggetizer, first", "nuggetizer", rows, ()),
            ("nuggetizer, one changed, again", "nuggetizer", others, ()),
            ("nuggetizer, one changed, by hand", "nuggetizer", others, (query_id,)),
            ("open-rag-eval, first", "open-rag-eval", rows, ()),
            ("open-rag-eval, one changed", "open-rag-eval", others, ()),
        ):
            others_ask.evaluate(peer, of, *only)
            columns[name] = counts.since()
    return columns


def table(columns: Mapping[str, Costs]) -> str:
    lines = ["| | " + " | ".join(STEPS) + " | all calls | tokens in | tokens out |", "|---|" + "---:|" * 9]
    for name, costs in columns.items():
        calls = [f"{costs[step].calls:,}" if step in costs else "" for step in STEPS]
        sums = [f"{sum(values):,}" for values in zip(*costs.values(), strict=True)] or ["0"] * 3
        lines.append("| " + " | ".join([name, *calls, *sums]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", type=Path, metavar="PYTHON")
    given = parser.parse_args()
    counts = Counting()
    with tempfile.TemporaryDirectory() as folder, serving(counts) as server:
        shown = table(measured(Path(folder), server, counts, given.peers))
    print(shown)
    if given.peers:
        rows = responses()
        introduction = INTRODUCTION.format(
            sentences=sum(len(row["answer"]) for row in rows),
            citations=sum(len(part["citations"]) for row in rows for part in row["answer"]),
            passages=N_PASSAGES,
            words=N_WORDS,
            nuggets=N_NUGGETS,
            changed=changed(rows)[2],
        )
        RESULTS.write_text(introduction + shown + NOTES)


if __name__ == "__main__":
    main()
