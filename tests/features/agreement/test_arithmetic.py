from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.agreement.arithmetic import Agreement, Crosstab, agreement
from trecexam.inputs.thresholds import Thresholds
from trecexam.scores.kappa import kappa, labels_of_both

#: (query, label, judgment) of a passage.
Passages = list[tuple[int, int, int]]
passages_of = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(-2, 3)), min_size=1, max_size=30
)
PUBLISHED = Thresholds(4, 2, 2)


def agree(
    passages: Passages,
    thresholds: Thresholds = PUBLISHED,
    best: int = 5,
    judgments: Sequence[int] = (-2, -1, 0, 1, 2, 3),
    *,
    same_scale: bool = False,
) -> Agreement:
    labels: dict[str, dict[str, int]] = {}
    judged: dict[str, dict[str, int]] = {}
    for number, (query, label, judgment) in enumerate(passages):
        labels.setdefault(f"q{query}", {})[f"d{number}"] = label
        judged.setdefault(f"q{query}", {})[f"d{number}"] = judgment
    at = thresholds._replace(max_rating=best, same_scale=same_scale)
    return agreement(labels_of_both(labels, judged), at, judgments)


def pairs_of(table: Crosstab) -> dict[str, str | None]:
    return {
        label: None if column is None else table.judgments[column]
        for label, column in zip(table.labels, table.paired, strict=True)
    }


def one_or_another(passages: Passages, labels: set[int], judgments: set[int]) -> float:
    """Kappa as the workbench computes it: predicted or not by relevant or not."""
    counts = np.zeros((3, 2, 2), np.int64)
    for query, label, judgment in passages:
        counts[query, int(label not in labels), int(judgment not in judgments)] += 1
    return kappa(counts).value


@given(passages_of)
def test_the_kappa_of_a_row_is_one_against_the_rest_on_both_sides(
    passages: Passages,
) -> None:
    found = agree(passages)
    for label, to, value in zip(
        found.graded.labels, pairs_of(found.graded).values(), found.graded.kappas, strict=True
    ):
        assert to is not None
        assert value.value == pytest.approx(one_or_another(passages, {int(label)}, {int(to)}), nan_ok=True)
    groups = [({4, 5}, {3}), ({1, 2, 3}, {2}), ({0}, {-2, -1, 0, 1})]
    for (labels, judgments), value in zip(groups, found.merged.kappas, strict=True):
        assert value.value == pytest.approx(one_or_another(passages, labels, judgments), nan_ok=True)
    reached = one_or_another(passages, {4, 5}, {2, 3})
    assert found.binary.kappa.value == pytest.approx(reached, nan_ok=True)
    assert [value.value for value in found.binary.kappas] == pytest.approx([reached] * 2, nan_ok=True)


@given(passages_of)
def test_accuracy_precision_and_recall_equal_their_definitions(passages: Passages) -> None:
    found = agree(passages)
    said = [a >= 4 for _, a, _ in passages]
    true = [b >= 2 for _, _, b in passages]
    hits = sum(a and b for a, b in zip(said, true, strict=True))
    assert found.accuracy == sum(a == b for a, b in zip(said, true, strict=True)) / len(passages)
    assert found.precision == pytest.approx(hits / sum(said) if any(said) else math.nan, nan_ok=True)
    assert found.recall == pytest.approx(hits / sum(true) if any(true) else math.nan, nan_ok=True)


def test_pairs_and_groups_equal_the_published_ones_of_dl19_and_car() -> None:
    passages = [(0, 5, 3), (1, 0, 0)]
    dl19 = agree(passages, Thresholds(4, 2, 2), judgments=(0, 1, 2, 3))
    assert pairs_of(dl19.graded) == {"5": "3", "4": "3", "3": "2", "2": "2", "1": "2", "0": "0"}
    assert pairs_of(dl19.merged) == {">=4": ">=3", "1..3": "2", "<1": "<2"}
    car = agree(passages, Thresholds(4, 1, 1), judgments=(0, 1, 2, 3))
    assert pairs_of(car.graded) == {"5": "2", "4": "2", "3": "1", "2": "1", "1": "1", "0": "0"}
    assert pairs_of(car.merged) == {">=4": ">=2", "1..3": "1", "<1": "<1"}


def test_equal_scales_pair_equal_values_and_have_an_overall_kappa() -> None:
    found = agree([(0, 3, 3), (0, 2, 1), (1, 0, -1), (1, 1, 1)], Thresholds(2, 1, 2), 3, same_scale=True)
    assert pairs_of(found.graded) == {"3": "3", "2": "2", "1": "1", "0": "0"}
    assert pairs_of(found.merged) == {">=3": ">=3", "2": "2", "<2": "<2"}
    # Labels 3, 2, 0, 1 against 3, 1, 0, 1: three of four agree, where 4/16 would by chance.
    assert found.graded.kappa.value == pytest.approx((3 / 4 - 4 / 16) / (1 - 4 / 16))
    assert found.graded.quadratic > found.graded.linear > found.graded.kappa.value


def test_count_labels_are_merged_around_min_answers() -> None:
    passages = [(0, 7, 3), (0, 2, 2), (1, 0, 0), (1, 3, 1)]
    found = agree(passages, Thresholds(4, 2, 2, "count"), judgments=(0, 1, 2, 3))
    assert found.graded.labels == ("7", "6", "5", "4", "3", "2", "0")
    assert pairs_of(found.merged) == {">=3": ">=3", "2": "2", "<2": "<2"}
    assert found.binary.labels == (">=2", "<2")
    assert found.binary.counts.tolist() == [[2, 1], [0, 1]]
    assert math.isnan(found.graded.kappa.value)
