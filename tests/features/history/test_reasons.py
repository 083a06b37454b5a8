from __future__ import annotations

from dataclasses import replace

import pytest

from trecexam.features.history.arithmetic import (
    BoardChange,
    Counting,
    Entry,
    FieldChange,
    ItemChange,
    OriginChange,
    QueryMove,
    RunChange,
)
from trecexam.features.history.reasons import cause, reason

BOARD = BoardChange(("P(rel=4)@5",), ("P(rel=4)@5",), Counting(rel=4, local=True), 5, ())
RUN = RunChange("a", None, "moved", 3, 2, {"P(rel=4)@5": (0.5, 0.6)})


def entry(board: BoardChange = BOARD, changed: OriginChange = OriginChange()) -> Entry:  # noqa: B008 - frozen
    return Entry(2, "2026-11-21T10:00:00+00:00", "known", "", changed, board, "1", "2")


def item(query_id: str, change: str) -> ItemChange:
    return ItemChange(query_id, f"{query_id}/1", change, 1, 2, 1, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "items", "said"),
    [
        (OriginChange(added=("runs/a.run",)), (), "runs/a.run added"),
        (OriginChange(removed=("a", "b", "c", "d", "e")), (), "5 files (a, b, c and 2 more) removed"),
        (OriginChange(renamed=(("runs/a.run", "runs/b.run"),)), (), "runs/a.run is called runs/b.run"),
        (
            OriginChange(edited=("bank.jsonl",)),
            (item("19335", "edited"), item("19335", "edited"), item("19335", "kept")),
            "bank.jsonl edited; 2 items edited in query 19335",
        ),
        (
            OriginChange(edited=("bank.jsonl",)),
            (item("q1", "edited"), item("q2", "added"), item("q3", "removed"), item("q4", "added")),
            "bank.jsonl edited; 4 items (1 edited, 2 added, 1 removed) in 4 queries (q1, q2, q3 and 1 more)",
        ),
        (
            OriginChange(edited=("bank.jsonl",)),
            (item("q1", "reweighed"), item("q1", "edited"), item("q1", "kept")),
            "bank.jsonl edited; 2 items (1 edited, 1 reweighed) in query q1",
        ),
        (
            OriginChange(edited=("overrides.tsv",), human={"ann": 3, "bob": 1}, withdrawn=1),
            (),
            "3 human labels by ann; 1 human label by bob; 1 human label withdrawn",
        ),
        (OriginChange(edited=("overrides.tsv",)), (), "overrides.tsv edited"),
        (OriginChange(removed=("runs/a.run",), withdrawn=1), (), "runs/a.run removed"),
        (
            OriginChange(settings=(FieldChange("[scores] min_rating", 4, 3),)),
            (),
            "[scores] min_rating 4 -> 3",
        ),
        (
            OriginChange(settings=(FieldChange("[scores] measures", None, ["P@5", "AP"]),)),
            (),
            "[scores] measures unset -> P@5, AP",
        ),
        (
            OriginChange(
                grader=(FieldChange("sha256", "0" * 64, "1" * 64), FieldChange("prompts", [{}], []))
            ),
            (),
            "grader: sha256 00000000 -> 11111111; grader: prompts changed",
        ),
        (OriginChange(versions=(FieldChange("trecexam", "1", "2"),)), (), "trecexam 1 -> 2"),
        (OriginChange(), (), "other grades, though no input changed"),
    ],
)
def test_the_cause_is_one_line(changed: OriginChange, items: tuple[ItemChange, ...], said: str) -> None:
    assert cause("known", changed, replace(BOARD, items=items)) == said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (replace(RUN, change="new"), "new"),
        (replace(RUN, change="gone"), "gone"),
        (replace(RUN, change="same"), ""),
        (replace(RUN, change="same", was="b"), "was called b"),
        (replace(RUN, labels=1, n_queries=1), "1 label of its first 5 crossed 4"),
        (replace(RUN, labels=2, beyond=3, n_queries=1),
         "2 labels of its first 5 crossed 4; 3 labels of other passages crossed 4"),
        (replace(RUN, file_changed=True, n_queries=1), "its file changed"),
        (replace(RUN, edited_queries=1, n_queries=1), "items came or went in 1 query"),
        (replace(RUN, reweighed_queries=2, n_queries=3), "items weigh otherwise in 2 queries"),
        (replace(RUN, means={"P(rel=4)@5": (0.5, 0.5)}, passed_by=-1),
         "its mean did not change; 1 run fell below it"),
        (replace(RUN, means={"P(rel=4)@5": (0.5, 0.5)}, came_above=2, passed_by=1, rank_after=6),
         "its mean did not change; 2 new runs above it; 1 run got past it"),
        (replace(RUN, means={"P(rel=4)@5": (0.5, 0.5)}, went_above=1),
         "its mean did not change; 1 run above it gone"),
        (replace(RUN, n_queries=1, queries=(QueryMove("q", None, 0.1),)), "queries came or went"),
        (replace(RUN, n_queries=1), "other ratings"),
    ],
)  # fmt: skip
def test_the_reason_of_a_run_is_what_moved_it(row: RunChange, said: str) -> None:
    assert reason(row, entry()) == said


def test_measures_of_items_and_of_all_labels_are_told_in_their_own_words() -> None:
    row = replace(RUN, labels=2, beyond=1, n_queries=1)
    by_item = replace(BOARD, counting=Counting(items=True))
    assert (
        reason(row, entry(by_item))
        == "2 passages of its first 5 reach other items; 1 passage that it lacks reaches other items"
    )
    by_any = replace(BOARD, counting=Counting())
    assert reason(row, entry(by_any)) == "2 labels of its first 5 changed; 1 label of other passages changed"


def test_a_setting_that_changes_how_means_are_taken_is_the_reason_of_every_run() -> None:
    changed = OriginChange(settings=(FieldChange("[scores] average", "all", "answered"),))
    assert reason(RUN, entry(changed=changed)) == "settings changed"


def test_another_first_measure_is_told_once_in_full_and_to_every_run() -> None:
    board = replace(BOARD, measures_before=("AP",))
    row = replace(RUN, rank_after=3, means={"P(rel=4)@5": (None, 0.6), "AP": (0.1, None)})
    assert reason(row, entry(board)) == "another measure ranks the runs"
    assert cause("known", OriginChange(), board) == "runs are ranked by P(rel=4)@5, no longer by AP"
