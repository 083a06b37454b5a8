"""The regressions, against scikit-learn on the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from drawn_pools import drawn_track, without_background
from sklearn.linear_model import LogisticRegression

from trecexam.extensions.learn.arithmetic.passages import FEATURES, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import (
    adds,
    choose_columns,
    expected,
    fit_regression,
    scale_of,
    unseen,
)

ALL, BINARY = (0, 1, 2), np.array([0.0, 1.0])


def standardised(queries: Sequence[QueryPassages], columns: Sequence[int]) -> list[np.ndarray]:
    """The columns of each query's passages, standardised over all passages of all queries."""
    every = np.vstack([query.features for query in queries])[:, list(columns)]
    return [(query.features[:, list(columns)] - every.mean(axis=0)) / every.std(axis=0) for query in queries]


def by_sklearn(queries: Sequence[QueryPassages], columns: Sequence[int], step: float, of: int) -> np.ndarray:
    """P(judged at least `step`) for each passage of query `of`, from all judged ones."""
    tables = standardised(queries, columns)
    known = [query.judged for query in queries]
    rows = np.vstack([table[rows] for table, rows in zip(tables, known, strict=True)])
    labels = np.concatenate([q.judgments[rows] for q, rows in zip(queries, known, strict=True)])
    return LogisticRegression(max_iter=1000).fit(rows, labels >= step).predict_proba(tables[of])[:, 1]


def test_each_step_equals_the_logistic_regression_of_scikit_learn() -> None:
    queries = list(map(without_background, drawn_track(1, 5, known=0.5)))
    fitted = fit_regression(queries, ALL, scale_of(queries))
    assert fitted.scale.tolist() == [0, 1, 2, 3]
    assert (fitted.weights[:, 0] < 0).all()
    for at in range(5):
        by_hand = [by_sklearn(queries, ALL, step, at) for step in (1, 2, 3)]
        falling = np.minimum.accumulate(by_hand, axis=0)
        assert fitted.probabilities(queries[at]) == pytest.approx(falling, abs=1e-3)


def test_a_step_that_would_increase_with_fewer_votes_is_fitted_without_votes() -> None:
    queries = list(map(without_background, drawn_track(2, 5, labels=2)))
    turned = []
    for query in queries:
        features = query.features.copy()
        features[:, 0] = features[:, 0].min() + features[:, 0].max() - features[:, 0]
        turned.append(replace(query, features=features))
    fitted, usual = fit_regression(turned, ALL, BINARY), fit_regression(queries, ALL, BINARY)
    assert usual.weights[0, 0] < 0
    assert fitted.weights[0, 0] == 0
    assert fitted.probabilities(turned[0])[0] == pytest.approx(by_sklearn(turned, (1, 2), 1, 0), abs=1e-3)


def test_the_background_of_each_query_counts_as_one_passage_with_the_lowest_label() -> None:
    queries = drawn_track(3, 4, known=0.3, labels=2)
    queries[1] = replace(queries[1], background=queries[1].background[:2])
    fitted = fit_regression(queries, ALL, BINARY)
    every = np.vstack([query.features for query in queries])[:, ALL]
    tables, labels, weights = [], [], []
    for query in queries:
        n, m = query.judged.sum(), len(query.background)
        tables += [query.features[query.judged][:, ALL], query.background[:, ALL]]
        labels += [query.judgments[query.judged], np.zeros(m)]
        weights += [np.ones(n), np.full(m, 1 / m)]
    rows = (np.vstack(tables) - every.mean(axis=0)) / every.std(axis=0)
    by_hand = LogisticRegression(max_iter=1000).fit(
        rows, np.concatenate(labels) >= 1, np.concatenate(weights)
    )
    assert fitted.weights == pytest.approx(by_hand.coef_, abs=1e-3)
    assert fitted.intercepts == pytest.approx(by_hand.intercept_, abs=1e-3)
    # It has an effect: without background, votes have less weight.
    bare = fit_regression(list(map(without_background, queries)), ALL, BINARY)
    assert bare.weights[0, 0] > fitted.weights[0, 0]


def test_each_query_has_its_own_intercept_under_the_same_penalty() -> None:
    queries = list(map(without_background, drawn_track(5, 4, known=0.6, labels=2)))
    high = queries[0].judgments
    queries[0] = replace(queries[0], judgments=np.where(np.arange(40) % 3, np.minimum(high + 1, 1), high))
    blank = queries[3].hiding(queries[3].judged)
    queries[3] = blank
    fitted = fit_regression(queries, ALL, BINARY, by_query=True)
    tables = standardised(queries, ALL)
    rows = np.vstack([table[query.judged] for table, query in zip(tables, queries, strict=True)])
    asked = np.concatenate([np.full(query.judged.sum(), at) for at, query in enumerate(queries)])
    labels = np.concatenate([query.judgments[query.judged] for query in queries])
    one_hot = (asked[:, None] == np.arange(3)).astype(float)
    by_hand = LogisticRegression(max_iter=1000).fit(np.hstack([rows, one_hot]), labels >= 1)
    for at, query in enumerate(queries):
        own = np.tile(np.eye(4)[at][:3], (40, 1))
        p = by_hand.predict_proba(np.hstack([tables[at], own]))[:, 1]
        assert fitted.probabilities(query)[0] == pytest.approx(p, abs=1e-3)
    assert fitted.of_queries["q00"] > max(fitted.of_queries["q01"], fitted.of_queries["q02"])
    assert "q03" not in fitted.of_queries


def test_a_step_without_positive_examples_has_no_probability() -> None:
    queries = drawn_track(6, 3, labels=2)
    fitted = fit_regression(queries, ALL, np.array([0.0, 1.0, 2.0]))
    p = fitted.probabilities(queries[0])
    assert p[1].max() < 1e-100
    assert p[0].max() > 0.5
    assert expected(p, np.array([0.0, 1.0, 3.0])) == pytest.approx(p[0])


def test_far_from_all_judged_passages_nothing_overflows() -> None:
    queries = drawn_track(7, 3, labels=2)
    far = queries[0].features.copy()
    far[:, 1] = 1e6
    fitted = fit_regression(queries, ALL, BINARY)
    assert (fitted.probabilities(replace(queries[0], features=far)) == 1).all()
    assert (fitted.probabilities(replace(queries[0], features=-far)) < 1e-300).all()


@pytest.mark.parametrize("known", [1.0, 0.4])
def test_a_query_is_predicted_without_its_own_judgments(known: float) -> None:
    queries = drawn_track(9, 7, known=known)
    scale = scale_of(queries)
    found = unseen(queries, ALL, scale)
    for fold in range(5):
        left = [query for at, query in enumerate(queries) if at % 5 != fold]
        fitted = fit_regression(left, ALL, scale)
        for at in range(fold, 7, 5):
            assert (found[at] == fitted.probabilities(queries[at])).all()


def naive_likelihood(queries: Sequence[QueryPassages], columns: Sequence[int]) -> np.ndarray:
    sums = []
    for at, query in enumerate(queries):
        left = [other for number, other in enumerate(queries) if number % 5 != at % 5]
        p = fit_regression(left, columns, np.arange(4.0)).probabilities(query)
        total = 0.0
        for step, row in itertools.product((1, 2, 3), np.flatnonzero(query.judged)):
            reached = min(max(float(p[step - 1, row]), 1e-4), 1 - 1e-4)
            total += np.log(reached if query.judgments[row] >= step else 1 - reached)
        sums.append(total)
    return np.array(sums)


@pytest.mark.slow
def test_a_feature_is_added_if_it_improves_by_more_than_one_standard_error() -> None:
    """Words make passages relevant in these pools; ratings do in some, where they are given."""
    chosen = set()
    for seed, told in itertools.product(range(3), (0.0, 0.6)):
        queries = []
        for query in drawn_track(20 + seed, 10, known=0.25):
            ratings = np.random.default_rng(seed).normal(size=40) + told * np.nan_to_num(query.judgments)
            features = np.column_stack([query.features[:, :4], ratings])
            queries.append(replace(query, features=features))
        columns: tuple[int, ...] = ALL
        for more in (3, 4):
            gained = naive_likelihood(queries, (*columns, more)) - naive_likelihood(queries, columns)
            if gained.sum() > gained.std(ddof=1) * np.sqrt(len(queries)):
                columns = (*columns, more)
        assert choose_columns(queries, np.arange(4.0))[0] == columns
        chosen.add(columns)
    assert len(chosen) > 1
    nothing = [replace(query, features=query.features * (np.arange(5) != 3)) for query in queries]
    assert FEATURES.index("lexical") not in choose_columns(nothing, np.arange(4.0))[0]


def test_a_single_query_gives_no_evidence_on_other_queries() -> None:
    assert not adds(np.array([9.0]))
    assert not adds(np.array([3.0, -1.0]))
    assert adds(np.array([3.0, 2.0]))
