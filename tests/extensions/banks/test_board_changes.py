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
