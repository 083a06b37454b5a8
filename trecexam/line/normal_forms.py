"""Ids that look alike and differ in their Unicode normal form: "ü" is one character in NFC, two in NFD."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

_FORMS: tuple[Literal["NFC"], Literal["NFD"]] = ("NFC", "NFD")


def other_forms(ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (id, the same id in another normal form)."""
    for each in ids:
        if not each.isascii():
            forms = {unicodedata.normalize(form, each) for form in _FORMS}
            yield from ((each, other) for other in sorted(forms - {each}))


def differing_in_form(ids: Iterable[str], known: Collection[str]) -> str:
    """Say which ids differ from known ones in their Unicode normal form alone, and what to do; "" of none."""
    alike = {each: other for each, other in other_forms(ids) if other in known}
    if not alike:
        return ""
    first, other = next(iter(alike.items()))
    ids_differ = f"{len(alike):,} ids differ" if len(alike) > 1 else "1 id differs"
    return (
        f"; {ids_differ} in Unicode normal form alone: '{first}' is {_form(first)} here, and {_form(other)} "
        "in another file; write both in one: uconv -x any-nfc FILE"
    )


def _form(text: str) -> str:
    return next((form for form in _FORMS if unicodedata.is_normalized(form, text)), "neither NFC nor NFD")
