"""Facts about items beside their grades, by whoever knows it."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.extension import extensions, named
from trecexam.line.assessment import Assessment


def item_values(
    track: Assessment, name: str, min_rating: int | None = None
) -> Mapping[tuple[str, str], float]:
    """(query_id, item_id) -> value, as the extension that knows it gives it; {} where none does.

    Args:
        name: of the value: "discrimination".
        min_rating: from which rating on a passage reaches an item; None for the track's.
    """
    for extension in extensions():
        if name in extension.item_values:
            values: Mapping[tuple[str, str], float] = named(extension.item_values[name])(track, min_rating)
            return values
    return {}
