"""Which knowledge blocks are chosen: by date, by any field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trecexam.extensions.ragval.knowledge.dates import Span, span


@dataclass(frozen=True)
class Where:
    """A condition on a field: it has this value, or (`differs`) another one, or none.

    Of a list one member is enough; numbers and truth values are compared as JSON writes them.
    """

    field: str
    value: str
    differs: bool = False

    @classmethod
    def of(cls, text: str) -> Where:
        """From FIELD=VALUE or FIELD!=VALUE.

        Raises:
            ValueError: it is neither.
        """
        field, sign, value = text.partition("=")
        differs = field.endswith("!")
        field = field.removesuffix("!").strip()
        if not sign or not field:
            raise ValueError(f"'{text}' is not FIELD=VALUE or FIELD!=VALUE")
        return cls(field, value.strip(), differs)

    def __str__(self) -> str:
        return f"{self.field}{'!' * self.differs}={self.value}"

    def fails(self, row: Mapping[str, Any]) -> str:
        """Why a block does not have it, "" where it does."""
        value = row.get(self.field)
        values = [_text(each) for each in value] if isinstance(value, list) else [_text(value)]
        if value is not None and (self.value in values) != self.differs:
            return ""
        if value is None:
            return "" if self.differs else f"no {self.field}"
        shown = ", ".join(values)
        return f"{self.field} is {shown[:80]}"


#: The field that has a block's date.
_DATE = "date"


@dataclass(frozen=True)
class Conditions:
    """What a block must have.

    Attributes:
        after: a day (a month, a moment ...): all of the block's date lies at its beginning or later.
        before: the same: all of the block's date lies before its beginning.
    """

    after: Span | None = None
    before: Span | None = None
    where: tuple[Where, ...] = ()

    def names(self) -> list[str]:
        """Of all filters, in the order of the table."""
        dated = ["missing-date", "unreadable-date"] if self.after or self.before else []
        bounds = [name for name in ("after", "before") if getattr(self, name) is not None]
        return [*dated, *bounds, *(f"where {each}" for each in self.where)]

    def fails(self, row: Mapping[str, Any]) -> dict[str, str]:
        """The filters that a block does not pass, and why of each."""
        reasons = self._dated(row) if self.after or self.before else {}
        for each in self.where:
            reason = each.fails(row)
            if reason:
                reasons[f"where {each}"] = reason
        return reasons

    def _dated(self, row: Mapping[str, Any]) -> dict[str, str]:
        value = row.get(_DATE)
        if value is None or value == "":
            return {"missing-date": f"no {_DATE}"}
        try:
            start, end = span(value)
        except ValueError as error:
            return {"unreadable-date": f"{_DATE} {_text(value)[:80]!r} {error}"}
        reasons = {}
        shown = f"{_DATE} is {_text(value)[:80]}"
        if self.after is not None and start < self.after.start:
            reasons["after"] = shown
        if self.before is not None and (end > self.before.start or start >= self.before.start):
            reasons["before"] = shown
        return reasons


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
