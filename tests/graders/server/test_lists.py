"""Several nuggets in one prompt: requests, and parsing of the returned lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from assigning import LABELS, assign, label_of, nuggets_in, passage_in
from scripted_server import Exchange, Scripted, serving
from support import ask, write_run
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.graders import Answer, Cell
from trecexam.graders.base import UngradedError
from trecexam.graders.prompts import published
from trecexam.graders.server.grader import ServerGrader

Make = Callable[..., ServerGrader]
RATINGS = {"support": 5, "partial_support": 3, "not_support": 0}


def cells_of(passage: str, number: int) -> list[Cell]:
    return [
        ask(passage, f"Nugget {place} is so.", place, doc_id=passage, kind="nugget")
        for place in range(number)
    ]


def graded(grader: ServerGrader, cells: list[Cell]) -> dict[tuple[str, str], Answer]:
    pairs = [(cell, answer) for batch in grader.grade(cells) for cell, answer in batch]
    assert len(pairs) == len({cell for cell, _ in pairs})
    return {(cell.doc_id, cell.item.text): answer for cell, answer in pairs}


def labels(answers: dict[tuple[str, str], Answer]) -> list[str]:
    return [answer.raw for answer in answers.values()]


def list_grader(make: Make, url: str, prompt: str = "NuggetAssign", **settings: object) -> ServerGrader:
    return make(url, prompt=prompt, concurrency=1, **settings)


def test_ten_nuggets_of_a_passage_are_one_call_in_the_order_of_the_bank(make: Make) -> None:
    cells = cells_of("one passage", 23) + cells_of("another", 10)
    with serving(assign) as server:
        answers = graded(list_grader(make, server.url), cells)
    asked = [nuggets_in(prompt) for prompt in server.seen]
    assert [len(nuggets) for nuggets in asked] == [10, 10, 3, 10]
    assert [nugget for nuggets in asked[:3] for nugget in nuggets] == [cell.item.text for cell in cells[:23]]
    assert set(server.seen.values()) == {1}
    for cell in cells:
        answer, label = answers[cell.doc_id, cell.item.text], label_of(cell.item.text, cell.text)
        assert (answer.rating, answer.status) == (RATINGS[label], "ok")
        assert answer.raw == label


@pytest.mark.parametrize(
    "bad",
    ["['support']", str(["support"] * 9), "The passage supports them all.", "", str(["maybe"] * 3)],
    ids=["short", "long", "prose", "nothing", "unknown"],
)
def test_an_unreadable_list_is_requested_by_nugget(make: Make, bad: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.say(bad) if len(nuggets_in(exchange.prompt)) > 1 else assign(exchange)

    with serving(script) as server:
        answers = graded(list_grader(make, server.url), cells_of("a passage", 3))
    assert [len(nuggets_in(body["messages"][-1]["content"])) for body in server.bodies] == [3, 1, 1, 1]
    assert labels(answers) == [label_of(f"Nugget {place} is so.", "a passage") for place in range(3)]


def test_a_nugget_that_is_unreadable_alone_is_unparsed(make: Make) -> None:
    def script(exchange: Exchange) -> None:
        nuggets = nuggets_in(exchange.prompt)
        if len(nuggets) > 1 or "1" in nuggets[0]:
            exchange.say("I would say that it depends.")
        else:
            assign(exchange)

    with serving(script) as server:
        answers = graded(list_grader(make, server.url), cells_of("a passage", 3))
    assert [answer.status for answer in answers.values()] == ["ok", "unparsed", "ok"]
    assert [answer.rating is None for answer in answers.values()] == [False, True, False]
    unread = answers["a passage", "Nugget 1 is so."]
    assert unread.raw == "I would say that it depends."
    assert answers["a passage", "Nugget 2 is so."].raw == label_of("Nugget 2 is so.", "a passage")


def test_a_refusal_counts_for_all_nuggets_of_the_call(make: Make) -> None:
    def script(exchange: Exchange) -> None:
        exchange.say(None, content=None, refusal="No.") if "bad" in passage_in(exchange.prompt) else assign(
            exchange
        )

    with serving(script) as server:
        answers = graded(list_grader(make, server.url), cells_of("a bad one", 3) + cells_of("fine", 3))
    assert [answer.status for answer in answers.values()] == ["refused"] * 3 + ["ok"] * 3
    assert len(server.bodies) == 2


def test_a_server_that_goes_down_midway_leaves_the_rest_for_the_next_update(make: Make) -> None:
    def script(exchange: Exchange) -> None:
        nuggets = nuggets_in(exchange.prompt) if not exchange.is_probe else []
        if len(nuggets) > 1:
            exchange.say("Hm.")
        elif nuggets and "2" in nuggets[0]:
            exchange.fail(500)
        else:
            exchange.say("['support']")

    with serving(script) as server:
        answers: list[tuple[Cell, Answer]] = []
        with pytest.raises(UngradedError, match="gave no answer to 3 cells"):
            answers.extend(
                pair
                for batch in list_grader(make, server.url, retries=1).grade(cells_of("a passage", 5))
                for pair in batch
            )
    assert [cell.item.text for cell, _ in answers] == ["Nugget 0 is so.", "Nugget 1 is so."]
    assert sum(server.seen.values()) <= 2 + 2 + 2 + 1


@pytest.mark.parametrize("structured", ["json_schema", "choice"])
def test_structured_output_restricts_a_server_to_a_list_of_that_length(make: Make, structured: str) -> None:
    def script(exchange: Exchange) -> None:
        found = nuggets_in(exchange.prompt)
        of = [label_of(nugget, passage_in(exchange.prompt)) for nugget in found]
        exchange.say(json.dumps({"labels": of}) if structured == "json_schema" else str(of))

    with serving(script) as server:
        answers = graded(list_grader(make, server.url, structured=structured), cells_of("a passage", 12))
    assert len(answers) == 12
    assert {answer.status for answer in answers.values()} == {"ok"}
    for body, number in zip(server.bodies, (10, 2), strict=True):
        if structured == "choice":
            expression = body["structured_outputs"]["regex"]
            assert "choice" not in body["structured_outputs"]
            for length in (number - 1, number, number + 1):
                permitted = re.fullmatch(expression, str([LABELS[n % 3] for n in range(length)]))
                assert bool(permitted) == (length == number)
            assert not re.fullmatch(expression, str(["maybe"] * number))
        else:
            schema = body["response_format"]["json_schema"]["schema"]["properties"]["labels"]
            assert (schema["minItems"], schema["maxItems"]) == (number, number)
            assert schema["items"]["enum"] == list(LABELS)


def nugget_track(root: Path, url: str, *, nuggets: int, extra: str = "") -> Path:
    """One query with a run of three passages."""
    root.mkdir(parents=True, exist_ok=True)
    write_bank(root, nuggets)
    (root / "queries.tsv").write_text("q1\twhat is so?\n")
    rows = [{"docid": f"d{n}", "text": f"passage {n}"} for n in range(3)]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "runs").mkdir(exist_ok=True)
    (root / "runs" / "a.run").write_text("".join(f"q1 Q0 d{n} {n + 1} {3 - n} a\n" for n in range(3)))
    (root / "trecexam.toml").write_text(
        f'[grader]\nname = "openai"\nmodel = "tiny"\nprompt = "NuggetAssign"\nbase_url = "{url}"\n'
        f'key_env = "TEST_KEY"\nconcurrency = 1\n{extra}'
    )
    return root


def write_bank(root: Path, nuggets: int) -> None:
    listed = [
        {"text": f"Nugget {n} is so.", "importance": "vital" if n % 2 else "okay"} for n in range(nuggets)
    ]
    (root / "bank.nuggets.jsonl").write_text(json.dumps({"qid": "q1", "nuggets": listed}) + "\n")


def test_an_added_nugget_is_requested_alone_and_nothing_is_requested_twice(tmp_path: Path) -> None:
    with serving(assign) as server:
        root = nugget_track(tmp_path / "track", server.url, nuggets=12)
        assert run(["watch", str(root), "--once"]) == 0
        assert sorted(len(nuggets_in(prompt)) for prompt in server.seen) == [2, 2, 2, 10, 10, 10]
        server.seen.clear()
        write_bank(root, 13)
        assert run(["watch", str(root), "--once"]) == 0
        assert [nuggets_in(prompt) for prompt in server.seen] == [["Nugget 12 is so."]] * 3
        server.seen.clear()
        (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text() + "max_length = 900\n")
        assert run(["watch", str(root), "--once"]) == 0
        assert not server.seen
    with trecexam.open_track(root) as track:
        assert track.status()["stored_grades"] == 39


def test_a_budget_that_lists_could_exceed_stops_before_them(tmp_path: Path) -> None:
    with serving(assign) as server:
        root = nugget_track(
            tmp_path / "track", server.url, nuggets=10, extra="budget_tokens = 3000\nmax_new_tokens = 20\n"
        )
        assert run(["watch", str(root), "--once"]) == 1
        asked = len(server.bodies)
        assert asked == 0
        text = (root / "trecexam.toml").read_text()
        (root / "trecexam.toml").write_text(text.replace("3000", "30000"))
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 3


def test_a_kill_keeps_the_received_lists_and_requests_the_others(tmp_path: Path) -> None:
    from trecexam.grades.grading import Progress

    with serving(assign) as server:
        root = nugget_track(tmp_path / "track", server.url, nuggets=10)

        def stop_at_first(progress: Progress) -> None:
            if progress.graded:
                raise KeyboardInterrupt

        with trecexam.open_track(root) as track, pytest.raises(KeyboardInterrupt):
            track.update(progress=stop_at_first)
        before = sum(server.seen.values())
        with trecexam.open_track(root) as track:
            stored = track.status()["stored_grades"]
            assert stored in {10, 20, 30}
            track.update()
        assert sum(server.seen.values()) - before == 3 - stored // 10


# The number of calls that `--estimate` shows equals the number that a server gets.


OWN = {
    "own.toml": 'template = "Rate from 0 to 5: {question} {passage}"\n',
    "own-list.toml": 'group = 3\nparser = "assignment"\n'
    'template = "{passage}\\nNugget List: {nuggets}\\n{num_nuggets} labels:"\n',
}
QUERIES = ("q1", "q2")
BY_KIND = {kind: [name for name, each in published().items() if each.asks == kind] for kind in (
    "question", "nugget", "query")}  # fmt: skip
LISTS = {name for name, prompt in published().items() if prompt.group > 1} | {"own-list.toml"}


def supported(exchange: Exchange) -> None:
    """All nuggets of a list are supported."""
    exchange.say(str(["support"] * len(nuggets_in(exchange.prompt))))


def estimated(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*(words or ("watch", str(root))), "--estimate", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found: dict[str, Any] = row
    return found


def calls_made(root: Path, server: Scripted, *words: str) -> int:
    server.bodies.clear()
    assert run([*(words or ("watch", str(root), "--once"))]) in {0, 1}
    return len(server.bodies)


def track(root: Path, url: str, **settings: Any) -> Path:
    """Two queries with five passages each; 13 nuggets, and three questions of which one has no answer key."""
    root.mkdir()
    (root / "queries.tsv").write_text("".join(f"{q}\tquery {q}\n" for q in QUERIES))
    texts = {f"{q}-d{n}": f"Passage {n} about {q}." for q in QUERIES for n in range(5)}
    put_rows(root / "passages.jsonl", *({"docid": d, "text": text} for d, text in texts.items()))
    questions: list[Any] = [
        {"query_id": q, "questions": [
            {"question_id": f"{q}/{n}", "question_text": f"What of {q} is {n}?",
             **({"gold_answers": [str(n)]} if n else {})}
            for n in range(3)]}
        for q in QUERIES
    ]  # fmt: skip
    nuggets: list[Any] = [
        {"query_id": q, "nuggets": [
            {"nugget_id": f"{q}/n{n}", "nugget_text": f"Nugget {n} of {q}."} for n in range(13)]}
        for q in QUERIES
    ]  # fmt: skip
    put_rows(root / "bank.questions.jsonl", *questions)
    put_rows(root / "bank.nuggets.jsonl", *nuggets)
    write_run(root / "runs" / "one.run", {q: [f"{q}-d{n}" for n in range(4)] for q in QUERIES})
    words = {"name": "openai", "model": "tiny", "base_url": url, "max_new_tokens": 50, **settings}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    for name, content in OWN.items():
        (root / name).write_text(content)
    (root / "trecexam.toml").write_text(f"[report]\nwrite = false\n[grader]\n{lines}")
    return root


#: These have one call per cell, as UMBRELA has.
ALIKE = {"Sun", "Sun_few", "HELM", "FagB", "FagB_few", "Thomas"}


@pytest.mark.parametrize(
    "prompt",
    sorted({*BY_KIND["question"], *BY_KIND["nugget"], *BY_KIND["query"], *OWN} - ALIKE),
)
def test_the_estimate_counts_every_call_of_a_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prompt: str
) -> None:
    with serving(supported if prompt in LISTS else Exchange.say) as server:
        root = track(tmp_path / "track", server.url, prompt=prompt)
        found = estimated(root, capsys)
        assert not server.bodies
        assert calls_made(root, server) == found["calls"] <= found["calls_at_most"]
        assert found["calls_at_most"] == found["calls"] or prompt in LISTS
        assert estimated(root, capsys)["cells"] == 0


def test_unreadable_lists_take_at_most_the_estimated_number_of_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readable: list[str] = []

    def script(exchange: Exchange) -> None:
        # All but one: where none can be read, the grader is not asked on.
        readable.append(exchange.prompt)
        if exchange.prompt == readable[0]:
            supported(exchange)
        else:
            exchange.say("It depends.")

    with serving(script) as server:
        root = track(tmp_path / "track", server.url, prompt="NuggetAssign")
        found = estimated(root, capsys)
        # The nuggets of that one are not requested one by one.
        calls = calls_made(root, server)
        assert calls == found["calls_at_most"] - len(nuggets_in(readable[0])) > found["calls"]


def test_quotes_in_nuggets_and_passages_break_neither_the_prompt_nor_the_parser(make: Make) -> None:
    texts = ['It\'s "so".', "a ] b [ c", "['support', 'support']", "back\\slash\nnew line"]
    cells = [ask("It's a \"passage\" ['x'].", text, n, kind="nugget") for n, text in enumerate(texts)]
    with serving(assign) as server:
        answers = graded(list_grader(make, server.url), cells)
    assert nuggets_in(next(iter(server.seen))) == texts
    assert {answer.status for answer in answers.values()} == {"ok"}
