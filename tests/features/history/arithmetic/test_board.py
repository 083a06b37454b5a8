from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.history.arithmetic import (
    BoardChange,
    Counting,
    ItemKey,
    LeaderboardSnapshot,
    QuerySnapshot,
    RunState,
    board_change,
    ranks,
)

ITEMS = (ItemKey("q/1", "one"), ItemKey("q/2", "two"))


def standing(
    means: dict[str, float | None],
    labels: dict[str, tuple[int, int]] | None = None,
    *,
    measure: str = "P@5",
    values: dict[str, dict[str, float | None]] | None = None,
    digests: dict[str, str] | None = None,
) -> LeaderboardSnapshot:
    return LeaderboardSnapshot(
        (measure, "other"),
        {
            name: RunState(
                (digests or {}).get(name, name), (mean, 0.5), (values or {}).get(name, {"q": mean})
            )
            for name, mean in means.items()
        },
        {"q": QuerySnapshot(ITEMS, labels or {})},
    )


def change(
    before: LeaderboardSnapshot | None,
    after: LeaderboardSnapshot,
    rankings: dict[str, Sequence[str]] | None = None,
    counting: Counting = Counting(),  # noqa: B008 - frozen
) -> BoardChange:
    return board_change(before, after, lambda run, _: (rankings or {}).get(run, ()), counting, 5)


means = st.dictionaries(
    st.sampled_from("abcdefg"), st.sampled_from([0.0, 0.1, 0.2, 0.3, None]), min_size=1, max_size=7
)


@given(means)
def test_a_rank_counts_the_runs_that_are_better(given_means: dict[str, float | None]) -> None:
    worth = {name: -1.0 if mean is None else mean for name, mean in given_means.items()}
    assert ranks(standing(given_means)) == {
        name: 1 + sum(other > mean for other in worth.values()) for name, mean in worth.items()
    }


def test_means_that_differ_by_rounding_share_a_rank() -> None:
    assert ranks(standing({"a": 0.1 + 0.2, "b": 0.3, "c": 0.2})) == {"a": 1, "b": 1, "c": 3}


@given(means, means)
def test_runs_that_came_went_and_passed_add_up_to_the_move(
    old: dict[str, float | None], new: dict[str, float | None]
) -> None:
    found = change(standing(old), standing(new))
    assert [row.run for row in found.runs if row.change == "gone"] == sorted(
        old.keys() - new.keys(), key=lambda name: (ranks(standing(old))[name], name)
    )
    assert {row.run for row in found.runs if row.change == "new"} == new.keys() - old.keys()

    def better(board: dict[str, float | None], name: str, among: set[str]) -> int:
        worth = {n: -1.0 if mean is None else mean for n, mean in board.items()}
        return sum(worth[other] > worth[name] for other in among)

    both = old.keys() & new.keys()
    for row in found.runs:
        if row.run in both:
            assert row.came_above == better(new, row.run, new.keys() - old.keys())
            assert row.went_above == better(old, row.run, old.keys() - new.keys())
            assert row.passed_by == better(new, row.run, both) - better(old, row.run, both)
            assert row.rank_before is not None
            assert row.rank_after == row.rank_before + row.came_above - row.went_above + row.passed_by


@given(means)
def test_a_leaderboard_compared_with_itself_is_no_change(given_means: dict[str, float | None]) -> None:
    board = standing(given_means, {"d": (3, 0b01)})
    assert change(board, board).empty


def test_of_what_nothing_is_known_every_run_is_new_and_no_label_is_listed() -> None:
    found = change(None, standing({"a": 0.1, "b": 0.2}, {"d": (3, 0)}))
    assert [(row.run, row.change, row.rank_before, row.rank_after) for row in found.runs] == [
        ("b", "new", None, 1),
        ("a", "new", None, 2),
    ]
    assert found.labels == ()
    assert not found.empty
    assert not found.reranked


def test_labels_among_a_runs_first_passages_are_what_moved_it_and_others_are_beyond() -> None:
    old = standing({"a": 0.2, "b": 0.1}, {"d1": (3, 0), "d2": (3, 0), "d3": (1, 0), "d4": (2, 0)})
    new = standing({"a": 0.4, "b": 0.1}, {"d1": (4, 1), "d2": (3, 0), "d3": (5, 3), "d5": (1, 0)})
    found = change(old, new, {"a": ["d2", "d1"], "b": ["d3"]})
    a, b = found.runs
    assert (a.change, a.n_queries, a.labels, a.beyond) == ("moved", 1, 1, 3)
    assert [(row.doc_id, row.before, row.after, row.gained) for row in a.because] == [("d1", 3, 4, ("q/1",))]
    # Its labels changed, but its value did not: they moved nothing.
    assert (b.change, b.labels, b.because) == ("same", 0, ())
    assert [(row.doc_id, row.before, row.after) for row in found.labels] == [
        ("d1", 3, 4),
        ("d3", 1, 5),
        ("d4", 2, None),
        ("d5", None, 1),
    ]


def test_only_labels_that_the_measure_counts_are_named() -> None:
    old = standing({"a": 0.2}, {"d1": (3, 0), "d2": (4, 0b01), "d3": (4, 0b01)})
    new = standing({"a": 0.4}, {"d1": (4, 0), "d2": (5, 0b01), "d3": (4, 0b11)})
    first = {"a": ["d1", "d2", "d3"]}
    by_label = change(old, new, first, Counting(rel=4, local=True)).runs[0]
    assert [row.doc_id for row in by_label.because] == ["d1"]
    by_item = change(old, new, first, Counting(items=True)).runs[0]
    assert [row.doc_id for row in by_item.because] == ["d3"]
    by_any = change(old, new, first).runs[0]
    assert [row.doc_id for row in by_any.because] == ["d1", "d2"]


def test_a_measure_that_sees_a_runs_own_passages_has_none_beyond() -> None:
    old, new = standing({"a": 0.2}, {"d1": (3, 0)}), standing({"a": 0.4}, {"d1": (4, 0)})
    assert change(old, new, {}, Counting(rel=4)).runs[0].beyond == 1
    assert change(old, new, {}, Counting(rel=4, local=True)).runs[0].beyond == 0


def test_the_query_that_moved_a_run_most_comes_first() -> None:
    old = standing({"a": 0.2}, values={"a": {"q1": 0.1, "q2": 0.5, "q3": 0.2, "gone": 0.4}})
    new = standing({"a": 0.3}, values={"a": {"q1": 0.2, "q2": 0.1, "q3": 0.2, "came": 0.05}})
    (row,) = change(old, new).runs
    assert [(q.query_id, q.before, q.after) for q in row.queries] == [
        ("gone", 0.4, None),
        ("q2", 0.5, 0.1),
        ("q1", 0.1, 0.2),
        ("came", None, 0.05),
    ]


def test_values_of_another_measure_are_not_compared() -> None:
    found = change(standing({"a": 0.2, "b": 0.3}), standing({"a": 0.9, "b": 0.3}, measure="nDCG@5"))
    assert found.reranked
    assert [(row.run, row.change, row.n_queries) for row in found.runs] == [
        ("a", "moved", 0),
        ("b", "moved", 0),
    ]
    assert found.runs[0].means == {"nDCG@5": (None, 0.9), "other": (0.5, 0.5), "P@5": (0.2, None)}


def test_a_file_that_is_called_otherwise_is_the_same_run() -> None:
    old = standing({"bm25": 0.2, "x": 0.1}, digests={"bm25": "file"})
    new = standing({"sub/bm25": 0.2, "y": 0.3}, digests={"sub/bm25": "file"})
    rows = {row.run: row for row in change(old, new).runs}
    assert (rows["sub/bm25"].was, rows["sub/bm25"].rank_before) == ("bm25", 1)
    assert (rows["x"].change, rows["y"].change) == ("gone", "new")
    two = standing({"one": 0.2, "two": 0.2}, digests={"one": "file", "two": "file"})
    assert {row.change for row in change(old, two).runs} == {"new", "gone"}


def test_a_run_whose_file_changed_says_so() -> None:
    old = standing({"a": 0.2}, digests={"a": "1"})
    assert change(old, standing({"a": 0.3}, digests={"a": "2"})).runs[0].file_changed


def test_more_than_a_screenful_of_causes_is_counted_and_not_listed() -> None:
    docs = [f"d{n:02}" for n in range(50)]
    old = standing({"a": 0.2}, dict.fromkeys(docs, (0, 0)))
    new = standing({"a": 0.3}, dict.fromkeys(docs, (1, 0)))
    (row,) = change(old, new, {"a": docs}).runs
    assert (row.labels, len(row.because)) == (50, 20)
    assert len(change(old, new).labels) == 50


def test_a_leaderboard_of_other_measures_only_is_a_change() -> None:
    old = standing({"a": 0.2})
    new = LeaderboardSnapshot(("P@5",), {"a": RunState("a", (0.2,), {"q": 0.2})}, old.queries)
    assert not change(old, new).empty
