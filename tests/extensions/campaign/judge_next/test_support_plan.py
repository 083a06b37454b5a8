"""`judge-next` of a grader of support: which citations a person should label."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cited import make_cited_track, response, write_responses
from scripted_server import Exchange, serving

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError

DOCS = ["q1-heat", "q1-cost", "q2-sea", "lost"]


def answers(name: str, *of_queries: tuple[str, ...]) -> list[dict[str, object]]:
    """Responses of a run: each sentence cites the passage whose index in DOCS it ends with."""
    return [
        response(
            name, f"q{number}", *((text, [int(text[-1])]) for text in sentences), references=DOCS
        )
        for number, sentences in enumerate(of_queries, 1)
    ]  # fmt: skip


def judging_with_unreadable_answers(exchange: Exchange) -> None:
    """As `judging`, but answers on sentences with "Odd" are unreadable."""
    if "Statement: Odd" in exchange.prompt:
        exchange.say("I would rather not.")
    else:
        judging(exchange)


@pytest.fixture(scope="module")
def planned_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with serving(judging_with_unreadable_answers) as server:
        root = make_cited_track(tmp_path_factory.mktemp("plan") / "track", server.url)
        for name, of_queries in {
            "good": (("Pumps 0", "Freeze 0", "Odd 1", "Heat 0"), ("Salt 2",)),
            "poor": (("Pumps 0", "Cats 1"), ("Sea 2", "Gone 3")),
        }.items():
            write_responses(root / "runs" / f"{name}.jsonl", *answers(name, *of_queries))
        with trecexam.open_track(root) as track:
            track.update()
        yield root


@pytest.fixture
def root(planned_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(planned_once, tmp_path / "track"))


def sentences(root: Path, **options: object) -> list[str]:
    with trecexam.open_track(root) as track:
        rows = track.judge_next(**options).rows  # type: ignore[arg-type]
    return [row.item.text for row in rows]


def test_unlabelled_citations_come_first_then_those_shared_by_runs_spread_over_queries(
    root: Path,
) -> None:
    order = sentences(root)
    assert order[0] == "Odd 1"
    # The first response of each query comes before the second of any.
    assert order[1] == "Pumps 0"
    assert set(order[2:4]) == {"Salt 2", "Sea 2"}
    assert set(order[4:]) == {"Freeze 0", "Heat 0", "Cats 1"}
    assert "Gone 3" not in order
    assert sentences(root, query_ids=["q2"]) == [text for text in order if text in {"Salt 2", "Sea 2"}]
    assert sentences(root, top=2) == order[:2]
    assert sentences(root) == order


def test_the_command_prints_what_to_type_and_skips_citations_labelled_by_people(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(root)]) == 0
    shown = capsys.readouterr()
    header, first, *_ = shown.out.splitlines()
    assert header.split("\t") == [
        "place", "query_id", "doc_id", "item_id", "label", "runs", "sentence", "text",
    ]  # fmt: skip
    assert first.split("\t")[6:] == ["Odd 1", "Pumps cost money."]
    assert "0 citations are labelled by people, 7 are not, 1 of these has no label" in shown.err
    assert "left out 1 citation of passages without a text" in shown.err
    assert not {"good", "poor"} & set(shown.out.replace("\t", "\n").splitlines())
    item_id = first.split("\t")[3]
    assert f"--item {item_id} --grader support --rating full|partial|no" in shown.err
    where = ["--query", "q1", "--doc", "q1-cost", "--item", item_id]
    assert run(["override", str(root), *where, "--rating", "no", "--who", "ann", "--why", "w"]) == 0
    capsys.readouterr()
    assert run(["judge-next", str(root), "--top", "3", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["level"], plan["candidates"], len(plan["judgments"])) == ("citation", 6, 3)
    assert plan["judgments"][0]["sentence"] == plan["texts"][0]["sentence"] == "Pumps 0"
    assert plan["judgments"][0]["runs"] == 2


def test_a_measure_is_rejected(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge-next", str(root), "-m", "P@5"]) == 2
    assert "the grader support labels citations: leave out the measure" in capsys.readouterr().err


def test_an_unknown_query_is_reported(root: Path) -> None:
    with trecexam.open_track(root) as track, pytest.raises(TrecexamError, match="no response to query 'q7'"):
        track.judge_next(query_ids=["q7"])
