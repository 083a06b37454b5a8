"""The gate of examples/ci-gate.md passes equal systems and stops worse ones."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from assigning import nuggets_in, passage_in
from cited import judging, response, write_responses
from scipy.stats import norm
from scripted_server import Exchange, serving
from support import ROOT, write_jsonl

import trecexam

PAGE = (ROOT / "examples" / "ci-gate.md").read_text()
(CODE,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
QUERIES = [f"q{number}" for number in range(10)]
Responses = list[dict[str, Any]]


def answer(exchange: Exchange) -> None:
    """A nugget is supported where the response has it; a sentence, where its words are in the citation."""
    if "Nugget List: " not in exchange.prompt:
        return judging(exchange)
    text = passage_in(exchange.prompt)
    labels = ["support" if nugget in text else "not_support" for nugget in nuggets_in(exchange.prompt)]
    return exchange.say(str(labels))


def responses(run: str, n_facts: Callable[[int], int], cited: Callable[[int], str]) -> Responses:
    """Responses that say so many of four facts, and cite these documents."""
    return [
        response(
            run,
            q,
            *((f"{q} has fact{fact}.", [0]) for fact in range(n_facts(number))),
            references=[f"{q}-{cited(number)}"],
        )
        for number, q in enumerate(QUERIES)
    ]


BASELINE = responses("baseline", lambda number: 2 + number % 3, lambda number: "good")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Responses], dict[str, str]]]:
    """Grades a candidate beside the baseline, and gives what the gate says of each grader that it fails."""
    root = tmp_path_factory.mktemp("gate") / "mytrack"
    write_responses(root / "runs" / "baseline.jsonl", *BASELINE)
    facts = [f"fact{fact}" for fact in range(4)]
    (root / "queries.tsv").write_text("".join(f"{q}\twhat of {q}?\n" for q in QUERIES))
    texts = [(f"{q}-good", " ".join([q, "has", *facts])) for q in QUERIES]
    texts += [(f"{q}-bad", "Cats purr.") for q in QUERIES]
    write_jsonl(root / "passages.jsonl", ({"docid": doc_id, "text": text} for doc_id, text in texts))
    rows = [
        {"query_id": q, "nuggets": [{"nugget_text": f"{q} has {fact}"} for fact in facts]} for q in QUERIES
    ]
    (root / "bank.nuggets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code: dict[str, Any] = {}
    exec(CODE, code)
    (test,) = (code[name] for name in code if name.startswith("test_"))
    (parameters,) = (mark.args[1] for mark in test.pytestmark)
    with serving(answer) as server:
        (root / "trecexam.toml").write_text(
            f'[grader]\nname = "openai"\nmodel = "m"\nbase_url = "{server.url}"\n'
            '[graders.nuggets]\nunit = "response"\nprompt = "NuggetAssign"\nbank = ["bank.nuggets.jsonl"]\n'
            "[graders.support]\n"
        )

        def failed(candidate: Responses) -> dict[str, str]:
            write_responses(root / "runs" / "candidate.jsonl", *candidate)
            with trecexam.open_track(root) as track:
                assert track.update().complete
            failures = {}
            for grader, measure in parameters:
                try:
                    with contextlib.chdir(root.parent):
                        test(grader, measure)
                except AssertionError as error:
                    failures[grader] = str(error).partition("\n")[0]
            return failures

        yield failed


def test_the_gate_passes_a_system_that_says_the_same(gate: Callable[[Responses], dict[str, str]]) -> None:
    assert gate([{**row, "run_id": "candidate"} for row in BASELINE]) == {}


def test_the_gate_stops_a_system_that_says_less(gate: Callable[[Responses], dict[str, str]]) -> None:
    failures = gate(responses("candidate", lambda number: 1 + number % 2, lambda number: "good"))
    assert failures.keys() == {"nuggets"}
    change = np.array([1 + number % 2 - (2 + number % 3) for number in range(10)]) / 4
    half = 2.262157 * change.std(ddof=1) / math.sqrt(10)
    said = re.fullmatch(r"all_score: (\S+) ± (\S+) \(95%\), p = (\S+)", failures["nuggets"])
    assert said is not None
    assert [float(each) for each in said.groups()[:2]] == pytest.approx([change.mean(), half], abs=6e-4)
    assert float(said[3]) < 0.05


def test_the_gate_stops_a_system_whose_citations_all_fail(
    gate: Callable[[Responses], dict[str, str]],
) -> None:
    # All queries lose the same, so a t test has no p value.
    failures = gate(responses("candidate", lambda number: 2 + number % 3, lambda number: "bad"))
    assert failures.keys() == {"support"}
    assert failures["support"].startswith("SupportF1: -1.000 ± 0.000 (95%), p = 0.0")


def test_the_numbers_of_queries_on_the_page_are_those_of_its_formula() -> None:
    factor = norm.ppf(0.975) + norm.ppf(0.8)
    assert f"{factor:.3f}" in PAGE
    rows = re.findall(r"^\| (0\.\d+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for loss, *counts in rows:
        for deviation, n in zip((0.2, 0.3), counts, strict=True):
            assert int(n.replace(",", "")) == math.ceil((factor * deviation / float(loss)) ** 2)
    assert f"{factor / norm.ppf(0.975):.1f} times as large" in PAGE
