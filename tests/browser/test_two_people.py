"""The recipe "two people check 50 labels" in a real Chromium, from the plan to the merged qrels."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, serving

from trecexam.cli.main import run
from trecexam.extensions.campaign.plan import read_plan
from trecexam.extensions.page.users import Users, add_tokens
from trecexam.folder import TrackFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOLES = [(query_id, f"{query_id}-d{number:02}") for query_id in ("q1", "q2") for number in (1, 3, 5)]
WORDS = ["irrelevant", "related", "highly relevant", "perfectly relevant"]


def opened(browser: Browser, served: Served, token: str) -> Page:
    """The browser of who follows a login link."""
    page = browser.new_context(locale="en-GB").new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{served.url}/login?token={token}")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()
    return page


def judge(page: Page, word: str) -> None:
    address = page.url
    page.get_by_role("button", name=word, exact=False).click()
    page.wait_for_url(lambda url: url != address)


def test_two_people_judge_undo_differ_and_fill_uses_what_they_said(
    graded_once: Path, tmp_path: Path, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    track = Path(shutil.copytree(graded_once, tmp_path / "track"))
    qrels = (track / "qrels.txt").read_text().splitlines(keepends=True)
    kept = [line for line in qrels if (line.split()[0], line.split()[2]) not in HOLES]
    (track / "qrels.txt").write_text("".join(kept))
    assert run(["judge", "plan", str(track), "--assessors", "ada,bob", "--overlap", "100%"]) == 0
    plan = read_plan(TrackFolder.open(track))
    assert plan is not None
    assert {row[1:3] for tasks in plan.values() for row in tasks} == set(HOLES)
    people = tmp_path / "users.toml"
    people.write_text('ada = "assessor"\nbob = "assessor"\norla = "organizer"\n')
    tokens = add_tokens(people, ["ada", "bob", "orla"])
    with serving(track, users=Users(people)) as served:
        ada, bob, orla = (opened(browser, served, tokens[name]) for name in ("ada", "bob", "orla"))
        labels = [" ".join(text.split()) for text in ada.locator(".steps button").all_inner_texts()]
        assert labels == [f"{word} {n}" for n, word in enumerate(WORDS)]
        first = ada.url
        judge(ada, "perfectly relevant")
        ada.get_by_role("button", name="Undo your last judgment").click()
        ada.wait_for_url(first)
        assert ada.get_by_text("Taken back.").is_visible()
        assert ada.locator(".steps .now").count() == 0
        for page, words in ((ada, ["related"] * 6), (bob, ["highly relevant", *["related"] * 5])):
            for word in words:
                judge(page, word)
            assert page.get_by_text("You are done with all 6 passages. Thank you.").is_visible()
        # Bob's plan begins with another topic.
        query_id, doc_id = plan["bob"][0][1:3]
        served.live.reload()
        orla.get_by_role("link", name="Campaign").click()
        orla.get_by_role("link", name="Agreement and disagreements").click()
        shown = orla.locator(".disagreements li").all_inner_texts()
        assert len(shown) == 1
        for text in (
            f"query number {query_id}",
            f"passage {int(doc_id[-2:])} about {query_id}",
            "ada: related",
            "bob: highly relevant",
        ):
            assert text in shown[0]
        for page in (ada, bob, orla):
            page.context.close()
    capsys.readouterr()
    assert run(["judge", "agreement", str(track)]) == 0
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t")
    assert (row["assessors"], row["cells"], row["same"]) == ("ada, bob", "6", "5")
    assert run(["judge", "export", str(track), "-o", str(tmp_path / "judged")]) == 0
    judged = {
        (query_id, doc_id): "2" if (query_id, doc_id) == plan["bob"][0][1:3] else "1"
        for query_id, doc_id in HOLES
    }
    exported = [line.split() for line in (tmp_path / "judged" / "qrels.txt").read_text().splitlines()]
    assert {(row[0], row[2]): row[3] for row in exported} == judged
    merged = tmp_path / "merged.qrels"
    assert run(["fill", str(track), "-o", str(merged)]) == 0
    lines = {(row[0], row[2]): row[3] for row in map(str.split, merged.read_text().splitlines())}
    assert {key: lines[key] for key in HOLES} == judged
    with merged.with_name("merged.qrels.sources.tsv").open() as file:
        whose = {(row["query_id"], row["doc_id"]): row["who"] for row in csv.DictReader(file, delimiter="\t")}
    assert {name for key in HOLES for name in whose[key].split("; ")} == {"ada", "bob"}
