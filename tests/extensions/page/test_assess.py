"""The page of assessors: blind, private, without lost input; and what organizers see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from served import client_of, rows_of
from starlette.testclient import TestClient
from team import Team, csrf_in, users_file

from converters.records import HumanRating
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.plan import PlannedTask, write_plan
from trecexam.extensions.page import assessing
from trecexam.extensions.page.assessing import name_of
from trecexam.extensions.page.users import Users, add_tokens
from trecexam.features.override import overriding
from trecexam.folder import TrackFolder

SCALE = '[judging]\nscale = ["off topic", "related", "to the point"]\nguidelines = "guide.md"\n'
#: What assessors judge where no scale is set, in a track that has official judgments.
ITEMS = "[judging]\nwhole_passage = false\n"
PLAN = (
    PlannedTask("ada", "q1", "q1-d03"),
    PlannedTask("ada", "q1", "q1-d00"),
    PlannedTask("ada", "q2", "q2-d01"),
    PlannedTask("bob", "q1", "q1-d03", overlap=True),
)


def prepared(track: Path, settings: str, plan: tuple[PlannedTask, ...] = PLAN) -> Path:
    config = track / "trecexam.toml"
    config.write_text(config.read_text() + settings)
    (track / "guide.md").write_text("# How\n\nJudge *strictly*.\n\n<script>alert(1)</script>\n")
    if plan:
        write_plan(TrackFolder.open(track), plan)
    return track


@pytest.fixture
def open_team(track: Path, tmp_path: Path) -> Iterator[Callable[..., Team]]:
    """(settings, plan) -> the page of the track with these."""
    opened: list[Any] = []
    (tmp_path / "people").mkdir()
    path, tokens = users_file(tmp_path / "people")
    with path.open("a") as file:
        file.write('bob = "assessor"\n')
    tokens |= add_tokens(path, ["bob"])

    def team(settings: str = "", plan: tuple[PlannedTask, ...] = PLAN) -> Team:
        opened.append(client_of(prepared(track, settings or ITEMS, plan), users=Users(path)))
        return Team(opened[-1].__enter__().app, path, tokens)

    yield team
    for client in opened:
        client.__exit__(None, None, None)


def fields(page: str, form: str = "rate-form") -> dict[str, str]:
    """The hidden fields of a form of a page: the one with that id or containing this text."""
    chosen = next(
        text for text in re.findall(r"<form method=\"post\".*?</form>", page, re.DOTALL) if form in text
    )
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', chosen)
    return {name: unescape(value) for name, value in hidden}


def first(browser: TestClient) -> str:
    answer = browser.get("/assess")
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def judge(browser: TestClient, address: str, form: str = "rate-form", **given: str) -> Any:
    """Submits a form of a page."""
    given = {name.replace("item_", "item-"): value for name, value in given.items()}
    return browser.post("/assess", data={**fields(browser.get(address).text, form), **given})


def lines(track: Path, name: str) -> list[tuple[str, ...]]:
    """doc_id, item_id, rating, who, note of each line of a ratings file."""
    rows = [line.split("\t") for line in (track / name).read_text().splitlines()]
    columns = [rows[0].index(column) for column in ("doc_id", "item_id", "rating", "who")]
    note = rows[0].index("note") if "note" in rows[0] else None
    return [
        (*(row[column] for column in columns), row[note] if note is not None and note < len(row) else "")
        for row in rows[1:]
    ]


def test_an_assessor_judges_her_tasks_in_the_order_of_the_plan(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team(SCALE).client("ada")
    page = browser.get(first(browser)).text
    assert "0 of 3 passages rated, 3 left. This topic: 0 of 2 rated, 2 left." in page
    for name in ("off topic", "related", "to the point"):
        assert f"{name} <kbd>" in page
    one = judge(browser, first(browser), item_1="2", note="cites nothing")
    two = judge(browser, one.headers["location"], item_1="0")
    assert "That topic is finished" in browser.get(two.headers["location"]).text
    end = judge(browser, two.headers["location"], item_1="1")
    assert "You are done with all 3 passages" in browser.get(end.headers["location"]).text
    assert lines(track, "judgments.tsv") == [
        ("q1-d03", "", "2", "ada", "cites nothing"),
        ("q1-d00", "", "0", "ada", ""),
        ("q2-d01", "", "1", "ada", ""),
    ]
    assert not (track / "overrides.tsv").exists()


def test_all_items_of_a_passage_are_rated_on_one_page_and_missing_ones_are_reported(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team().client("ada")
    address = first(browser)
    n_items = browser.get(address).text.count("data-question")
    assert n_items > 1
    answer = judge(browser, address, item_1="4")
    assert answer.headers["location"] == address
    page = browser.get(address).text
    assert f"Saved; {n_items - 1} more here." in page
    assert re.search(r'name="item-1" value="4"[^>]* checked', page)
    done = judge(browser, address, **{f"item_{n}": "1" for n in range(2, n_items + 1)})
    assert done.headers["location"].split("?")[0] != address
    assert [row[2] for row in lines(track, "overrides.tsv")] == ["4", *["1"] * (n_items - 1)]


def test_responses_to_an_assessor_reveal_no_document_run_grade_or_other_rating(
    open_team: Callable[..., Team], track: Path
) -> None:
    team = open_team(SCALE)
    bob, ada = team.client("bob"), team.client("ada")
    judge(bob, first(bob), item_1="1", note="bobs-note")
    addresses = ["/assess", "/assess/passage/nosuch", "/static/assess.js"]
    seen = []
    for _ in range(3):
        addresses.append(first(ada))
        seen.append(judge(ada, addresses[-1], item_1="2", note="mine"))
        addresses.append(seen[-1].headers["location"])
        seen.append(
            ada.post("/assess", data={**fields(ada.get(addresses[-2]).text), "item-1": "0", "seen": "x"})
        )
        seen.append(judge(ada, addresses[-2], "Take this", act="withdraw"))
        seen.append(judge(ada, addresses[-2], "cannot-why", act="cannot", why="no idea"))
    seen += [ada.get(address, follow_redirects=True) for address in addresses]
    view = team.app.state.live.view
    secrets = {"-d0", "bobs-note", "bob", "run0", "run1", "run2", "rank", "grader", "· track", *view.runs}
    assert len(seen) > 15
    for answer in seen:
        told = answer.text + str(answer.url) + "\n".join(map(str, answer.headers.items()))
        for step in answer.history:
            told += str(step.headers.items())
        for secret in secrets:
            assert secret not in told, (secret, answer.url)


def test_passage_names_cannot_be_computed_without_the_secret_of_the_track(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team(SCALE).client("ada")
    name = first(browser).rsplit("/", 1)[1]
    key = track / ".trecexam" / "passage-names.key"
    assert key.stat().st_mode & 0o777 == 0o600
    secret = assessing.secret_of(TrackFolder.open(track))
    assert name == name_of(secret, "q1", "q1-d03") != name_of(b"other", "q1", "q1-d03")


def test_a_damaged_secret_is_rejected(open_team: Callable[..., Team], track: Path) -> None:
    browser = open_team(SCALE).client("ada")
    first(browser)
    key = track / ".trecexam" / "passage-names.key"
    for damaged in (b"", b"a few letters", key.read_bytes()[:-1] + b"x"):
        key.write_bytes(damaged)
        with pytest.raises(TrecexamError, match="not the key that was written: put it back, or delete it"):
            assessing.secret_of(TrackFolder.open(track))
    answer = browser.get("/assess")
    assert answer.status_code >= 400
    assert "passage-names.key" not in answer.text
    key.unlink()
    assert len(assessing.secret_of(TrackFolder.open(track))) == 64


def test_an_assessor_cannot_judge_tasks_of_another_assessor(
    open_team: Callable[..., Team], track: Path
) -> None:
    team = open_team(SCALE)
    ada, bob = team.client("ada"), team.client("bob")
    second = judge(ada, first(ada), item_1="1").headers["location"].split("?")[0]
    assert bob.get(second).status_code == 404
    form = {"csrf": csrf_in(bob.get(first(bob)).text), "passage": second.rsplit("/", 1)[1], "item-1": "2"}
    assert bob.post("/assess", data=form).status_code == 404
    assert len(lines(track, "judgments.tsv")) == 1


def test_a_rating_from_another_window_is_shown_before_it_is_replaced(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team(SCALE).client("ada")
    address = first(browser)
    stale = fields(browser.get(address).text)
    judge(browser, address, item_1="2")
    answer = browser.post("/assess", data={**stale, "item-1": "0", "note": "typed"})
    assert answer.headers["location"] == address
    assert [row[2] for row in lines(track, "judgments.tsv")] == ["2"]
    page = browser.get(address).text
    assert "You judged this passage in another window meanwhile. Nothing was saved" in page
    assert 'class="r2 now"' in page
    again = {**fields(page), "item-1": "0", "note": "typed"}
    # Sending the same again, as by a double click, is not a conflict and adds no line.
    for _ in range(2):
        assert browser.post("/assess", data=again).status_code == 303
        assert [(row[2], row[4]) for row in lines(track, "judgments.tsv")] == [("2", ""), ("0", "typed")]


@pytest.mark.parametrize("rating", ["2", "3"], ids=["the same", "another"])
def test_of_two_windows_saving_at_once_the_second_sees_the_ratings_of_the_first(
    open_team: Callable[..., Team], track: Path, monkeypatch: pytest.MonkeyPatch, rating: str
) -> None:
    browser = open_team().client("ada")
    address = first(browser)
    page = browser.get(address).text
    n_items, hidden = page.count("data-question"), fields(page)
    forms = {value: {f"item-{n}": value for n in range(1, n_items + 1)} for value in ("2", rating)}
    answers = []

    def send() -> None:
        answers.append(browser.post("/assess", data={**hidden, **forms[rating]}))

    second, record = Thread(target=send), record_assessment

    def between_two_items(*args: Any, **more: Any) -> Any:
        assessment = record(*args, **more)
        if second.ident is None:
            second.start()
            second.join(0.5)
        return assessment

    monkeypatch.setattr("trecexam.extensions.page.pages.assess.record_assessment", between_two_items)
    assert browser.post("/assess", data={**hidden, **forms["2"]}).status_code == 303
    second.join(10)
    assert answers[0].status_code == 303
    assert (answers[0].headers["location"] == address) is (rating == "3")
    assert [row[2] for row in lines(track, "overrides.tsv")] == ["2"] * n_items


def test_undo_on_the_next_page_restores_the_earlier_rating(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team(SCALE).client("ada")
    address = first(browser)
    judge(browser, address, item_1="2")
    after = judge(browser, address, item_1="0").headers["location"]
    back = judge(browser, after, "undo-form", act="withdraw")
    assert back.headers["location"] == address
    page = browser.get(address).text
    assert re.search(r'value="2" class="[^"]* now"', page)
    judge(browser, address, "Take this", act="withdraw")
    assert ' now"' not in browser.get(address).text
    assert first(browser) == address


def test_undo_of_items_withdraws_only_those_rated_last(open_team: Callable[..., Team], track: Path) -> None:
    browser = open_team().client("ada")
    address = first(browser)
    items = range(1, browser.get(address).text.count("data-question") + 1)
    judge(browser, address, item_1="5")
    after = judge(browser, address, **{f"item_{n}": "2" for n in items if n > 1}).headers["location"]
    judge(browser, after, "undo-form", act="withdraw")
    assert re.findall(r'name="item-(\d+)" value="(\d)"[^>]* checked', browser.get(address).text) == [
        ("1", "5")
    ]


@pytest.mark.parametrize("settings", [SCALE, ""], ids=["a scale", "items"])
def test_after_cannot_judge_with_a_reason_the_passage_may_still_be_judged(
    open_team: Callable[..., Team], track: Path, settings: str
) -> None:
    browser = open_team(settings).client("ada")
    address, file = first(browser), "judgments.tsv"
    refused = judge(browser, address, "cannot-why", act="cannot", why=" ")
    assert "Nothing was saved: give a reason." in browser.get(refused.headers["location"]).text
    assert not (track / file).exists()
    gone_on = judge(browser, address, "cannot-why", act="cannot", why="in another language")
    assert gone_on.headers["location"].split("?")[0] != address
    assert lines(track, file) == [("q1-d03", "", "cannot", "ada", "")]
    page = browser.get(address).text
    assert 'You cannot judge it: <span dir="auto">in another language' in page
    n_items = max(1, page.count("data-question"))
    judge(browser, address, **{f"item_{n}": "1" for n in range(1, n_items + 1)})
    assert "You cannot judge it" not in browser.get(address).text
    assert "This topic: 1 of 2 rated, 1 left." in browser.get(address).text


@pytest.mark.parametrize("change", ["retire", "edit"])
def test_a_rating_is_never_saved_for_a_question_other_than_the_one_shown(
    open_team: Callable[..., Team], track: Path, change: str
) -> None:
    team = open_team()
    browser, organizer = team.client("ada"), team.client("orla")
    address = first(browser)
    old = fields(browser.get(address).text)
    bank = organizer.get("/bank/q1").text
    form = re.findall(rf'<form method="post" action="/bank/q1/item/{change}".*?</form>', bank, re.DOTALL)[0]
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
    more = {"text": "Something else altogether?"} if change == "edit" else {}
    done = organizer.post(f"/bank/q1/item/{change}", data={**hidden, **more})
    assert done.status_code == 303, done.text
    team.app.state.live.reload()
    answer = browser.post("/assess", data={**old, "item-1": "4"})
    assert answer.headers["location"] == address
    assert "changed meanwhile" in browser.get(address).text
    assert not (track / "overrides.tsv").exists()
    assert judge(browser, address, item_1="4").status_code == 303
    assert lines(track, "overrides.tsv")[0][2] == "4"


def test_seconds_count_visible_time_divided_among_items_with_a_limit(
    open_team: Callable[..., Team], track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = open_team(SCALE).client("ada")
    now = [1000.0]
    monkeypatch.setattr("trecexam.extensions.page.pages.assess.time.time", lambda: now[0])
    said = []
    for elapsed, active in ((30.0, ""), (40.0, "12.5"), (86400.0, "")):
        address = first(browser)
        form = fields(browser.get(address).text)
        now[0] += elapsed
        browser.post("/assess", data={**form, "item-1": "1", "active": active})
        row = (track / "judgments.tsv").read_text().splitlines()[-1].split("\t")
        said.append(float(row[9]))
    assert HumanRating._fields[9] == "seconds"
    assert said == [30.0, 12.5, 600.0]


def test_guidelines_are_next_to_the_passage_with_html_shown_as_text(
    open_team: Callable[..., Team],
) -> None:
    browser = open_team(SCALE).client("ada")
    page = browser.get(first(browser)).text
    assert "<em>strictly</em>" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_a_rating_outside_the_scale_is_rejected_and_nothing_is_written(
    open_team: Callable[..., Team], track: Path
) -> None:
    browser = open_team(SCALE).client("ada")
    for rating in ("3", "x", "-1"):
        assert judge(browser, first(browser), item_1=rating).status_code == 422
    assert judge(browser, first(browser)).headers["location"] == first(browser)
    assert not (track / "judgments.tsv").exists()


def test_without_a_plan_concurrent_judgments_of_a_passage_are_both_accepted(
    open_team: Callable[..., Team], track: Path
) -> None:
    (track / "qrels.txt").unlink()
    team = open_team(SCALE, ())
    ada, bob = team.client("ada"), team.client("bob")
    address = first(ada)
    form = fields(ada.get(address).text)
    judge(bob, address, item_1="2")
    team.app.state.live.reload()
    assert first(ada) != address
    taken = ada.post("/assess", data={**form, "item-1": "1", "note": "long thought"})
    assert taken.status_code == 303
    assert [row[2:] for row in lines(track, "judgments.tsv")] == [
        ("2", "bob", ""),
        ("1", "ada", "long thought"),
    ]
    assert "Undo your last judgment" in ada.get(taken.headers["location"]).text
    team.app.state.live.reload()
    assert 'class="r1 now"' in ada.get(address).text
    assert 'class="r2 now"' in bob.get(address).text


def test_organizers_see_progress_and_adjudicate_differences(
    open_team: Callable[..., Team], track: Path
) -> None:
    team = open_team(SCALE + 'rule = "adjudicated"\n')
    ada, bob, orla = (team.client(name) for name in ("ada", "bob", "orla"))
    judge(ada, first(ada), item_1="2")
    judge(bob, first(bob), item_1="0")
    team.app.state.live.reload()
    rows = rows_of(orla.get("/campaign").text)
    assert [row[:4] for row in rows[:2]] == [["ada", "3", "1", "2"], ["bob", "1", "1", "0"]]
    page = orla.get("/campaign/agreement").text
    assert "<bdi>ada</bdi>: <strong>to the point</strong>" in page
    assert "<bdi>bob</bdi>: <strong>off topic</strong>" in page
    assert "1 of 1 are open" in page
    stale = fields(page, "/campaign/adjudicate")
    judge(bob, "/assess/passage/" + first_name(track), item_1="1")
    refused = orla.post("/campaign/adjudicate", data={**stale, "rating": "2"})
    page = orla.get(refused.headers["location"]).text
    assert "Nothing was saved: the ratings changed meanwhile" in page
    assert "<bdi>bob</bdi>: <strong>related</strong>" in page
    form = {**fields(page, "/campaign/adjudicate"), "rating": "1", "why": "bob is right"}
    assert orla.post("/campaign/adjudicate", data=form).status_code == 303
    team.app.state.live.reload()
    page = orla.get("/campaign/agreement?which=all").text
    assert "0 of 1 are open" in page
    assert 'decided 1: <span dir="auto">bob is right' in page
    line = (track / "judgments.tsv").read_text().splitlines()[-1].split("\t")
    assert (line[1], line[3], line[4], line[-1]) == ("q1-d03", "1", "orla", "adjudicated")
    form = {**fields(page, "Withdraw the decision"), "rating": "withdraw"}
    assert orla.post("/campaign/adjudicate", data=form).status_code == 303
    team.app.state.live.reload()
    assert "1 of 1 are open" in orla.get("/campaign/agreement").text


def test_a_rating_saved_during_adjudication_is_shown_before_the_decision_is_written(
    open_team: Callable[..., Team], track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = open_team(SCALE + 'rule = "adjudicated"\n')
    ada, bob, orla = (team.client(name) for name in ("ada", "bob", "orla"))
    judge(ada, first(ada), item_1="2")
    judge(bob, first(bob), item_1="0")
    team.app.state.live.reload()
    form = fields(orla.get("/campaign/agreement").text, "/campaign/adjudicate")
    locked = overriding.exclusive_lock

    @contextmanager
    def after_bob(path: Path) -> Iterator[None]:
        monkeypatch.setattr(overriding, "exclusive_lock", locked)
        judge(bob, "/assess/passage/" + first_name(track), item_1="1")
        with locked(path):
            yield

    monkeypatch.setattr(overriding, "exclusive_lock", after_bob)
    refused = orla.post("/campaign/adjudicate", data={**form, "rating": "2"})
    assert "the ratings changed meanwhile" in orla.get(refused.headers["location"]).text
    lines = (track / "judgments.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[4] for line in lines] == ["ada", "bob", "bob"]


def first_name(track: Path) -> str:
    return name_of(assessing.secret_of(TrackFolder.open(track)), "q1", "q1-d03")
