from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.banks.board_changes import (
    BoardChange,
    ItemKey,
    LeaderboardSnapshot,
    QuerySnapshot,
    board_change,
    label_changes,
    ranks,
)

ITEMS = (ItemKey("q/1", "one"), ItemKey("q/2", "two"))


def snapshot(
    means: dict[str, float | None],
    labels: dict[str, tuple[int, int]] | None = None,
) -> LeaderboardSnapshot:
    return LeaderboardSnapshot(means, {"q": QuerySnapshot(ITEMS, labels or {})})


def change(
    before: LeaderboardSnapshot,
    after: LeaderboardSnapshot,
    rankings: dict[str, Sequence[str]] | None = None,
) -> BoardChange:
    return board_change(before, after, lambda run, _: (rankings or {}).get(run, ()), 5)


means = st.dictionaries(
    st.sampled_from("abcdefg"), st.sampled_from([0.0, 0.1, 0.2, 0.3, None]), min_size=1, max_size=7
)


@given(means)
def test_a_rank_is_one_plus_the_number_of_better_runs(given_means: dict[str, float | None]) -> None:
    worth = {name: mean for name, mean in given_means.items() if mean is not None}
    assert ranks(snapshot(given_means)) == {
        name: 1 + sum(other > mean for other in worth.values()) for name, mean in worth.items()
    }


def test_means_that_differ_by_rounding_share_a_rank() -> None:
    assert ranks(snapshot({"a": 0.1 + 0.2, "b": 0.3, "c": 0.2})) == {"a": 1, "b": 1, "c": 3}


@given(means)
def test_a_leaderboard_compared_with_itself_is_unchanged(given_means: dict[str, float | None]) -> None:
    board = snapshot(given_means, {"d": (3, 0b01)})
    found = change(board, board)
    assert not found.labels
    assert not any(row.moved for row in found.runs)


def test_a_moved_run_lists_the_changed_labels_among_its_first_passages() -> None:
    old = snapshot(
        {"a": 0.2, "b": 0.1}, {"d1": (3, 0), "d2": (3, 0), "d3": (1, 0), "d4": (2, 0), "d6": (4, 1)}
    )
    new = snapshot(
        {"a": 0.4, "b": 0.1}, {"d1": (4, 1), "d2": (3, 0), "d3": (5, 3), "d5": (1, 0), "d6": (4, 2)}
    )
    found = change(old, new, {"a": ["d2", "d1", "d6"], "b": ["d3"]})
    a, b = found.runs
    assert (a.moved, a.labels, a.items) == (True, 1, 1)
    assert a.because(5) == "1 label of its first 5 changed; 1 passage of its first 5 with other items"
    # Its labels changed, but its value did not: they moved nothing.
    assert (b.moved, b.labels, b.because(5)) == (False, 0, "")
    assert [(row.doc_id, row.before, row.after, row.gained, row.lost) for row in found.labels] == [
        ("d1", 3, 4, ("q/1",), ()),
        ("d3", 1, 5, ("q/1", "q/2"), ()),
        ("d4", 2, None, (), ()),
        ("d5", None, 1, (), ()),
        ("d6", 4, 4, ("q/2",), ("q/1",)),
    ]


def test_a_run_overtaken_by_others_says_so() -> None:
    found = change(snapshot({"a": 0.2, "b": 0.1}), snapshot({"a": 0.2, "b": 0.2001}))
    assert [(row.run, row.because(5)) for row in found.runs] == [("b", ""), ("a", "others moved")]


DOCS = ["d1", "d2", "d3", "d4"]


@st.composite
def states(draw: st.DrawFn) -> tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]]:
    """A query's state, and the same as sets of the texts that a passage reaches."""
    texts = draw(st.lists(st.sampled_from("ABCDEFGH"), max_size=6, unique=True))
    passages: dict[str, tuple[int, int]] = {}
    plain: dict[str, tuple[int, set[str]]] = {}
    for doc_id in draw(st.sets(st.sampled_from(DOCS))):
        label = draw(st.integers(0, 5))
        reached = draw(st.sets(st.sampled_from(texts))) if texts else set()
        passages[doc_id] = (label, sum(1 << texts.index(text) for text in reached))
        plain[doc_id] = (label, reached)
    return QuerySnapshot(tuple(ItemKey(f"id-{text}", text) for text in texts), passages), plain


@given(states(), states())
def test_changes_equal_a_comparison_of_sets(
    old: tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]],
    new: tuple[QuerySnapshot, dict[str, tuple[int, set[str]]]],
) -> None:
    labels = list(label_changes({"q": old[0]}, {"q": new[0]}))
    nothing: tuple[int | None, set[str]] = (None, set())
    expected = {}
    for doc_id in DOCS:
        (before, there), (after, here) = old[1].get(doc_id, nothing), new[1].get(doc_id, nothing)
        if before != after or there != here:
            expected[doc_id] = (
                before,
                after,
                {f"id-{text}" for text in here - there},
                {f"id-{text}" for text in there - here},
            )
    assert {r.doc_id: (r.before, r.after, set(r.gained), set(r.lost)) for r in labels} == expected
    assert [r.doc_id for r in labels] == sorted(expected)


def test_an_item_with_another_text_under_its_id_is_the_same_item() -> None:
    old = QuerySnapshot((ItemKey("1", "old"), ItemKey("2", "kept")), {"a": (4, 0b11), "b": (4, 0b01)})
    new = QuerySnapshot((ItemKey("1", "new"), ItemKey("2", "kept")), {"a": (4, 0b11), "b": (3, 0b00)})
    (label,) = label_changes({"q": old}, {"q": new})
    assert (label.doc_id, label.before, label.after, label.lost) == ("b", 4, 3, ("1",))


def test_items_in_another_order_or_under_other_ids_are_the_same_items() -> None:
    old = QuerySnapshot((ItemKey("1", "one"), ItemKey("2", "two")), {"a": (4, 0b01)})
    turned = QuerySnapshot((ItemKey("2", "two"), ItemKey("1", "one")), {"a": (4, 0b10)})
    renamed = QuerySnapshot((ItemKey("x", "one"), ItemKey("y", "two")), {"a": (4, 0b01)})
    assert list(label_changes({"q": old}, {"q": turned})) == []
    assert list(label_changes({"q": old}, {"q": renamed})) == []


def test_two_items_with_the_same_text_are_two_items() -> None:
    old = QuerySnapshot((ItemKey("1", "same"), ItemKey("2", "same")), {"a": (4, 0b11)})
    one = QuerySnapshot((ItemKey("2", "same"),), {"a": (4, 0b1)})
    (label,) = label_changes({"q": old}, {"q": one})
    assert label.lost == ("1",)


def test_more_items_than_bits_in_a_machine_word_are_distinguished() -> None:
    items = tuple(ItemKey(str(n), f"text {n}") for n in range(100))
    old = QuerySnapshot(items, {"a": (5, 1 << 99)})
    new = QuerySnapshot(items[1:], {"a": (5, 1 << 98)})
    assert list(label_changes({"q": old}, {"q": new})) == []


def test_added_and_removed_queries_change_all_their_labels() -> None:
    state = QuerySnapshot((ItemKey("1", "one"),), {"a": (4, 1)})
    labels = label_changes({"old": state}, {"new": state})
    assert [(r.query_id, r.before, r.after) for r in labels] == [("new", None, 4), ("old", 4, None)]
