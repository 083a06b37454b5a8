"""A memo lives as long as the immutable value that it is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from trecexam.files.cache import memoized


@dataclass(frozen=True)
class Value:
    """An immutable value."""

    number: int
    memo: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, compare=False)


def test_a_result_is_computed_once_for_each_value_and_function() -> None:
    computed: list[str] = []

    @memoized
    def double(value: Value) -> int:
        computed.append("double")
        return 2 * value.number

    @memoized
    def half(value: Value) -> int | None:
        computed.append("half")
        return double(value) // 4 if value.number else None

    two, none = Value(2), Value(0)
    assert (double(two), half(two), half(two), half(none), half(none)) == (4, 1, 1, None, None)
    assert computed == ["double", "half", "half"]
    assert (double(replace(two, number=3)), double(two)) == (6, 4)
    assert computed == ["double", "half", "half", "double"]
