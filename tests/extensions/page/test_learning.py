"""Learning on the judging page: what it shows, and that no request waits for it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest
from learnable import WordEncoder, make_learnable
from served import client_of, csrf_of
from starlette.testclient import TestClient

import trecexam
import trecexam.extensions.learn.learned_pool as learned_pool
from trecexam.extensions.learn.arithmetic.settling import standing, undecided
from trecexam.extensions.page import child, learning
from trecexam.extensions.page.learning import LearnAgain, learn_on_demand

PAGE = "/judge?query=q0&doc=q0-d00&item="


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> WordEncoder:
    words = WordEncoder()
    monkeypatch.setattr(learned_pool, "TextEncoder", lambda *_: words)
    return words


@pytest.fixture
def learnable(tmp_path: Path, encoder: WordEncoder) -> Path:
    return make_learnable(tmp_path / "learnable")


@contextmanager
def page_of(root: Path, work: child.Work = learn_on_demand) -> Iterator[TestClient]:
    with (
        LearnAgain(root, make=lambda: child.Thread(work, root)) as again,
        client_of(root, learning=again) as client,
    ):
        yield client


def line_of(client: TestClient, *, wait: bool = True) -> str:
    """The text of the page after it has learned from the present judgments."""
    state = client.app.state  # type: ignore[attr-defined]
    if wait:
        client.get(PAGE)
        # The track may have been read again since: then no visit has requested the present state.
        version = state.live.view.version
        state.learning.want(state.live.view.own, version)
        assert state.learning.wait(state.live.view.own, version, 60)
    found = re.search(r'id="judge-learned">(.*?)</p>', client.get(PAGE).text, re.DOTALL)
    assert found
    return unescape(found[1])


def rate(client: TestClient, doc_id: str, rating: int) -> None:
    form = {"query": "q0", "doc": doc_id, "item": "", "rating": str(rating), "who": "Ann", "why": "because"}
    answer = client.post("/override", data={"csrf": csrf_of(client), "from": "judge", "seen": "none", **form})
    assert answer.status_code == 303


@pytest.mark.slow
def test_after_each_judgment_the_page_learns_and_shows_how_much_is_undecided(learnable: Path) -> None:
    with trecexam.open_track(learnable) as track:
        n = track.learn.labels().identity["judgments"]["count"]
    with page_of(learnable) as client:
        line = line_of(client)
        assert line.startswith(f"Learned from {n} judgments: by nDCG@10, ")
        rate(client, "q0-d00", 2)
        assert line_of(client).startswith(f"Learned from {n + 1} judgments")
        qrels = learnable / "qrels.txt"
        qrels.write_text(qrels.read_text() + "q1 0 q1-d00 1\n")
        client.app.state.live.reload()  # type: ignore[attr-defined]
        assert line_of(client).startswith(f"Learned from {n + 2} judgments")
        with trecexam.open_track(learnable) as track:
            loaded = track._loader.load()
            pool = learned_pool.learn_pool(loaded, official=learned_pool.people_judgments(loaded)[0])
        left = undecided(standing(pool.learned, pool.data.queries, 10))
        assert left.n_neighbours == 3
        assert f"{left.neighbours} of the 3 pairs" in line_of(client)
        assert f"{left.pairs} of all 6 pairs" in line_of(client)


def test_a_visit_encodes_nothing_and_the_page_says_what_to_do(learnable: Path, encoder: WordEncoder) -> None:
    with page_of(learnable) as client:
        assert "not encoded yet: run `trecexam learn`" in line_of(client)
    assert not encoder.encoded


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda root, _: (root / "qrels.txt").unlink(), "no passage is judged yet"),
        (
            lambda root, _: (root / "qrels.txt").write_text("q0 0 q0-d01 1\n"),
            "nothing to learn: the only judgment is 1",
        ),
        (
            lambda _, patch: patch.setattr(learned_pool, "find_spec", lambda _: None),
            "learning needs scikit-learn",
        ),
    ],
)
def test_if_nothing_can_be_learned_the_reason_is_shown_and_the_page_works(
    learnable: Path,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[Path, pytest.MonkeyPatch], object],
    reason: str,
) -> None:
    with trecexam.open_track(learnable) as track:
        track.learn.labels()
    break_it(learnable, monkeypatch)
    with page_of(learnable) as client:
        assert reason in line_of(client)
        rate(client, "q0-d00", 2)
        assert "<bdi>Ann</bdi> says" in client.get(PAGE).text


def test_no_request_waits_for_learning(learnable: Path) -> None:
    go_on = threading.Event()

    def slow(root: Path, receive: child.Receive, say: child.Say) -> None:
        receive(60.0)
        go_on.wait()
        say(learning.Learnt("slow"))

    with page_of(learnable, slow) as client:
        try:
            assert "Learning from the judgments" in line_of(client, wait=False)
            rate(client, "q0-d00", 2)
            assert "Learning from the judgments" in line_of(client, wait=False)
        finally:
            go_on.set()


def test_a_process_that_died_is_reported_and_restarted_after_the_next_judgment(learnable: Path) -> None:
    starts = []

    def mortal(root: Path, receive: child.Receive, say: child.Say) -> None:
        starts.append(root)
        receive(60.0)

    with page_of(learnable, mortal) as client:
        assert "the process that learns ended" in line_of(client)
        n_starts = len(starts)
        rate(client, "q0-d00", 2)
        assert "the process that learns ended" in line_of(client)
    assert len(starts) > n_starts


def test_with_learning_off_the_page_does_not_mention_it(learnable: Path) -> None:
    with client_of(learnable) as client:
        assert "judge-learned" not in client.get(PAGE).text
