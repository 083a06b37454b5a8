from __future__ import annotations

import json
from pathlib import Path

import pytest
from campaign import SCALE, campaign, to_rate
from support import Terminal

from trecexam.cli.main import run
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.plan import read_plan


def test_a_campaign_runs_from_the_plan_to_the_qrels(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], on_terminal: Terminal
) -> None:
    with campaign(graded) as track:
        folder, queries = (
            track.folder,
            {query_id: to_rate(track, query_id) for query_id in ("q1", "q2", "q3")},
        )
    name = str(graded)
    assert run(["judge", "plan", name, "--assessors", "ada, bob", "--overlap", "50%"]) == 0
    out, err = capsys.readouterr()
    plan = read_plan(folder)
    assert plan is not None
    of = {name: {row[1:3] for row in plan.rows if row.assessor == name} for name in ("ada", "bob")}
    both = of["ada"] & of["bob"]
    n_passages = len(of["ada"] | of["bob"])
    assert 0 < len(both) < n_passages
    said = (
        f"{n_passages} passages, {len(both)} of them for two people: {len(plan.rows)} tasks for 2 assessors"
    )
    assert said in err
    header, *rows = (line.split("\t") for line in out.splitlines())
    assert header == ["assessor", "topics", "tasks", "shared"]
    assert [(row[0], *row[2:]) for row in rows] == [
        (name, str(len(of[name])), str(len(both))) for name in ("ada", "bob")
    ]
    for assessor in plan.assessors:
        for place, (query_id, doc_id) in enumerate(plan.tasks(assessor)):
            rating = (place + len(assessor)) % 3 if assessor == "ada" else len(doc_id) % 3
            record_assessment(folder, queries[query_id], doc_id, "", rating, who=assessor, seconds=2.0)
    assert run(["judge", "agreement", name, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["agreement"][0]["cells"] == sum(task.overlap for task in plan.rows)
    assert f"people differ on {len(found['disagreements'])} judgment" in err
    with on_terminal():
        assert run(["judge", "agreement", name]) == 0
    assert "adjudicated" in capsys.readouterr().out
    assert run(["judge", "export", name, "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert run(["check", str(tmp_path / "out/qrels.txt"), "--as", "qrels"]) == 0
    capsys.readouterr()
    assert run(["judge", "import", name, str(tmp_path / "out/judgments.tsv")]) == 0
    assert f"0 new judgments, {len(plan.rows)} already in the track" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["plan"], "Missing option '--assessors'"),
        (["plan", "--assessors", "ada,bob", "--overlap", "lots"], "'lots': a share, 10% or 0.1"),
        (["plan", "--assessors", "ada,bob", "--overlap", "110%"], "a share"),
        (["plan", "--assessors", "ada,,bob"], "an assessor has no name"),
        (["export"], "Missing option '-o'"),
        (["planning"], "did you mean plan"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    graded: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    config = graded / "trecexam.toml"
    config.write_text(config.read_text() + SCALE)
    command, *others = arguments
    assert run(["judge", command, str(graded), *others]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert len(err.splitlines()) == 1
