"""Which values are computed again, and that they equal a full computation."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trecexam.scores.value_cache import Stale, ValueCache
from trecexam.scores.values import MeasureValues

Contents = Mapping[str, Hashable]
Tokens = Mapping[str, Hashable]
MEASURES = ("P@5", "nDCG@10")


def value(content: Hashable, query_id: str, token: Hashable, measure: str) -> float:
    """Different for other arguments."""
    return float(int.from_bytes(repr((str(content), query_id, token, measure)).encode()[-80:]) % 1_000_003)


@dataclass
class Asked:
    """Calls a cache, and records what it has evaluated."""

    cache: ValueCache = field(default_factory=ValueCache)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    fails: bool = False

    def values(self, contents: Contents, tokens: Tokens, measures: Sequence[str] = MEASURES) -> MeasureValues:
        self.pairs.clear()

        def evaluate(part: Stale) -> Iterator[np.ndarray]:
            for run in part.runs:
                if self.fails:
                    raise KeyboardInterrupt
                self.pairs += [(str(contents[run]), q) for q in part.query_ids]
                rows = [[value(contents[run], q, tokens[q], m) for m in measures] for q in part.query_ids]
                yield np.array(rows, np.float64).reshape(len(part.query_ids), len(measures))

        before = self.cache.evaluated
        stale = self.cache.stale(contents, measures, tokens)
        values = self.cache.put(contents, measures, tokens, ((part, evaluate(part)) for part in stale))
        assert self.cache.evaluated - before == len(self.pairs)
        return values


def expected(contents: Contents, tokens: Tokens, measures: Sequence[str] = MEASURES) -> np.ndarray:
    rows = [[[value(c, q, t, m) for m in measures] for q, t in tokens.items()] for c in contents.values()]
    return np.array(rows, np.float64).reshape(len(contents), len(tokens), len(measures))


@pytest.fixture
def counted_cache() -> Asked:
    """Two runs on three queries, evaluated."""
    made = Asked()
    values = made.values({"a": 1, "b": 2}, {"q1": 0, "q2": 0, "q3": 0})
    assert len(made.pairs) == 6
    assert (values.runs, values.query_ids, values.measures) == (("a", "b"), ("q1", "q2", "q3"), MEASURES)
    return made


@pytest.mark.parametrize(
    ("contents", "tokens"),
    [({"a": 1, "b": 2}, {"q1": 0, "q2": 7, "q3": 0}), ({"a": 9, "b": 2}, {"q1": 0, "q2": 7, "q4": 0})],
)
def test_an_interrupted_evaluation_is_completed_at_the_next_call(
    counted_cache: Asked, contents: Contents, tokens: Tokens
) -> None:
    counted_cache.fails = True
    with pytest.raises(KeyboardInterrupt):
        counted_cache.values(contents, tokens)
    counted_cache.fails = False
    np.testing.assert_array_equal(counted_cache.values(contents, tokens).array, expected(contents, tokens))


NAMES = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))
QUERIES = st.permutations(["q1", "q2", "q3", "q4"]).flatmap(
    lambda order: st.lists(st.integers(0, 1), max_size=4).map(
        lambda tokens: dict(zip(order, tokens, strict=False))
    )
)


@given(st.lists(st.tuples(NAMES, QUERIES, st.sampled_from([MEASURES, ("AP",)])), min_size=2, max_size=8))
@settings(deadline=None)
def test_after_any_changes_values_equal_a_full_computation_without_wasted_work(
    states: list[tuple[Contents, Tokens, tuple[str, ...]]],
) -> None:
    asked = Asked()
    before: tuple[Contents, Tokens, tuple[str, ...]] = {}, {}, ()
    for contents, tokens, measures in states:
        values = asked.values(contents, tokens, measures)
        np.testing.assert_array_equal(values.array, expected(contents, tokens, measures))
        same = before[2] == measures
        assert sorted(asked.pairs) == sorted(
            (str(content), q)
            for name, content in contents.items()
            for q, token in tokens.items()
            if not (same and before[0].get(name) == content and before[1].get(q) == token)
        )
        before = contents, tokens, measures
