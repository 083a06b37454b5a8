"""Which way to fill is the best, of what cross-validation shows."""

from __future__ import annotations

import pytest

from trecexam.extensions.learn.verdict import SplitFigures, best_way

Figures = dict[str, tuple[float, float]]


@pytest.mark.parametrize(
    ("splits", "best"),
    [
        # Each way has tau and kappa.
        ([{"learned": (0.9, 0.5), "grader": (0.8, 0.4), "label:1": (0.7, 0)}], "learned"),
        ([{"learned": (0.8, 0.5), "grader": (0.8, 0.4), "label:1": (0.7, 0)}], "grader"),
        ([{"learned": (0.9, 0.3), "grader": (0.8, 0.4), "label:1": (0.85, 0)}], "grader"),
        ([{"learned": (0.9, 0), "label:0": (0.7, 0), "label:1": (0.8, 0)}], "learned"),
        (
            [{"learned": (0.9, 0.5), "label:0": (0.1, 0)}, {"learned": (0.3, 0.5), "label:0": (0.9, 0)}],
            "learned",
        ),
        (
            [{"learned": (0.9, 0.5), "label:0": (0.4, 0)}, {"learned": (0.3, 0.5), "label:0": (0.9, 0)}],
            "label:0",
        ),
    ],
)
def test_learning_is_the_best_where_mean_tau_is_greater_and_kappa_not_below_any_other(
    splits: list[Figures], best: str
) -> None:
    figures = [
        SplitFigures(
            split=str(at),
            tau={way: tau for way, (tau, _) in of_ways.items()},
            kappa={way: kappa for way, (_, kappa) in of_ways.items()},
        )
        for at, of_ways in enumerate(splits)
    ]
    assert best_way(figures) == best


def test_a_split_without_kappa_counts_by_its_tau_alone() -> None:
    whole = SplitFigures(
        split="a", tau={"learned": 0.8, "label:0": 0.7}, kappa={"learned": 0.4, "label:0": 0.0}
    )
    without = SplitFigures(split="b", tau={"learned": 0.8, "label:0": 0.9}, kappa={})
    assert best_way([whole]) == "learned"
    assert best_way([whole, without]) == "label:0"
