from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.records import HumanRating, Item
from trecexam.bank import Bank
from trecexam.inputs.overrides import Overrides, resolve

BANK = Bank.from_items([Item("q1", "q1/0", "Why?", "question")])
Rule = Literal["latest", "majority", "adjudicated"]


def line(who: str, rating: int | None, kind: str = "") -> HumanRating:
    """-1: cannot judge."""
    cannot = rating == -1
    return HumanRating("q1", "d1", "q1/0", None if cannot else rating, who, "x", kind=kind, cannot=cannot)


def resolved(lines: list[HumanRating], rule: Rule) -> Overrides:
    rows = list(enumerate(lines, 2))
    return resolve(rows, "overrides.tsv", BANK, {"q1": ["d1"]}, {"d1": "text"}, 5, rule)


def counting(lines: list[HumanRating], rule: Rule) -> int | None:
    row = resolved(lines, rule).ratings.get(("q1", "d1", "q1/0"))
    return None if row is None else row.rating


def states(lines: list[HumanRating], rule: Rule) -> list[str]:
    return [decision.state for decision in resolved(lines, rule).decisions]


ANN, BOB, EVE = line("ann", 3), line("bob", 1), line("eve", 1)


@pytest.mark.parametrize(
    ("rule", "lines", "rating", "became"),
    [
        ("latest", [ANN, BOB], 1, ["replaced", "counts"]),
        ("majority", [BOB, EVE, ANN], 1, ["counts", "counts", "overruled"]),
        # The lowest of equally frequent ones.
        ("majority", [ANN, BOB], 1, ["overruled", "counts"]),
        # Each person has one vote, the last one.
        (
            "majority",
            [BOB, BOB, BOB, ANN, line("eve", 3)],
            3,
            ["replaced", "replaced", "overruled"] + ["counts"] * 2,
        ),
        ("adjudicated", [ANN, BOB], None, ["not adjudicated"] * 2),
        ("adjudicated", [BOB, EVE], 1, ["counts", "counts"]),
        ("adjudicated", [ANN], 3, ["counts"]),
        ("adjudicated", [ANN, BOB, line("org", 2, "adjudicated")], 2, ["overruled", "overruled", "counts"]),
        # A reason that begins with the word is not an adjudication.
        (
            "adjudicated",
            [ANN, BOB, line("org", 2)._replace(why="adjudicated")],
            None,
            ["not adjudicated"] * 3,
        ),
        # A decision stays, whatever is rated later, until it is withdrawn.
        (
            "adjudicated",
            [ANN, BOB, line("org", 2, "adjudicated"), line("bob", 4)],
            2,
            ["overruled", "replaced", "counts", "overruled"],
        ),
        (
            "adjudicated",
            [ANN, BOB, line("org", 2, "adjudicated"), line("org", None, "adjudicated")],
            None,
            ["not adjudicated"] * 2 + ["replaced", "withdrawn"],
        ),
        ("majority", [BOB, EVE, line("org", 5, "adjudicated")], 5, ["overruled", "overruled", "counts"]),
        # An adjudicator can also have a rating.
        (
            "adjudicated",
            [ANN, BOB, line("ann", 2, "adjudicated"), line("ann", None, "adjudicated")],
            None,
            ["not adjudicated"] * 2 + ["replaced", "withdrawn"],
        ),
    ],
)
def test_a_rule_decides_whose_rating_counts(
    rule: Rule, lines: list[HumanRating], rating: int | None, became: list[str]
) -> None:
    assert counting(lines, rule) == rating
    assert states(lines, rule) == became


@pytest.mark.parametrize("rule", ["latest", "majority", "adjudicated"])
def test_cannot_judge_is_not_a_rating_and_does_not_change_that_of_others(rule: Rule) -> None:
    assert counting([line("ann", -1)], rule) is None
    assert counting([ANN, line("bob", -1)], rule) == 3
    assert states([ANN, line("bob", -1)], rule) == ["counts", "cannot judge"]
    # It replaces her own rating.
    assert counting([BOB, ANN, line("ann", -1)], rule) == 1
    assert counting([ANN, line("ann", -1)], rule) is None


def test_withdrawing_a_rating_keeps_those_of_others() -> None:
    undone = line("bob", None, "undone")
    assert counting([ANN, BOB, undone], "latest") == 3
    assert states([ANN, BOB, undone], "latest") == ["counts", "replaced", "withdrawn"]
    assert counting([ANN, line("eve", None, "undone")], "latest") == 3
    for rule in ("majority", "adjudicated"):
        assert counting([ANN, BOB, line("bob", None)], rule) == 3
    # Without that kind, as in older files, a withdrawal withdraws everything.
    assert counting([ANN, BOB, line("bob", None)], "latest") is None
    assert counting([ANN, BOB, line("eve", None)], "latest") is None


OPINION = st.integers(-1, 3)
LINES = st.lists(st.builds(line, st.sampled_from(["ann", "bob", "eve"]), OPINION), max_size=8)


@given(LINES)
def test_the_rules_equal_a_naive_recount(lines: list[HumanRating]) -> None:
    last: dict[str, int] = {}
    for row in lines:
        last.pop(row.who, None)
        if row.rating is not None:
            last[row.who] = row.rating
    votes = Counter(last.values())
    most = max(votes.values(), default=0)
    assert counting(lines, "latest") == (list(last.values())[-1] if last else None)
    assert counting(lines, "majority") == min((r for r in votes if votes[r] == most), default=None)
    assert counting(lines, "adjudicated") == (next(iter(votes)) if len(votes) == 1 else None)
