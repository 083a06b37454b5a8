"""The cache keeps a value while its token is the same, and the most recently used of several."""

from __future__ import annotations

from weakref import ref

import pytest

from trecexam.files.cache import Cache


class Value:
    """A value that supports weak references."""


def unexpected() -> Value:
    raise AssertionError("made again")


def test_a_value_is_computed_once_per_token() -> None:
    cache = Cache()
    first = cache.get("a", 1, Value)
    assert cache.get("a", 1, unexpected) is first
    assert cache.get("b", 1, Value) is not first
    assert cache.get("a", 2, Value) is not first
    assert cache.get("a", 1, Value) is not first


def test_of_several_tokens_the_most_recently_used_are_kept() -> None:
    cache = Cache()
    made = {token: cache.get("a", token, Value, most=3) for token in range(3)}
    assert cache.get("a", 0, unexpected, most=3) is made[0]
    cache.get("a", 3, Value, most=3)
    assert cache.get("a", 0, unexpected, most=3) is made[0]
    assert cache.get("a", 2, unexpected, most=3) is made[2]
    assert cache.get("a", 1, Value, most=3) is not made[1]


def test_the_earlier_value_is_freed_before_another_is_computed() -> None:
    cache = Cache()
    earlier = ref(cache.get("a", 1, Value))

    def make() -> Value:
        assert earlier() is None
        return Value()

    cache.get("a", 2, make)


def test_a_failed_computation_is_not_cached() -> None:
    def fail() -> Value:
        raise KeyboardInterrupt

    cache = Cache()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cache.get("a", 1, fail)
    assert isinstance(cache.get("a", 1, Value), Value)


def test_a_computation_may_use_other_cached_values() -> None:
    cache = Cache()
    assert cache.get("a", 1, lambda: cache.get("a", 2, lambda: cache.get("b", 1, lambda: 2)) + 1) == 3
    assert cache.get("a", 1, lambda: 0) == 3
